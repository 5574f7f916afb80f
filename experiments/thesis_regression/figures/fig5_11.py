"""Fig. 5.11: 90 % predictive intervals at pir = 0.25 over the people of three tracts, ε = 4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.regression_paper.study import pick
from experiments.reproduce.canvas import grid, legend_beside
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore
from experiments.thesis_regression.casestudy import OI, STUDY, people, table
from experiments.thesis_regression.figures.shared import PAPER, style

TITLE = "90 % predictive intervals at pir = 0.25 in three tracts, ε = 4"
METHODS = (
    ("non-private", "as printed"),
    ("naive", "as printed"),
    ("gibbs-update", "as printed"),
    ("exact", "as printed"),
    ("naive", "ours"),
    ("exact", "ours"),
)


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Intervals of all tracts, and the people of a small, a middling and a large one."""
    every = pick(table(settings, trials), epsilon=4).assign(row="interval")
    known = people(settings)
    order = np.argsort(known.sizes)
    frames = [every[every["method"] != OI]]
    for share in (0.1, 0.5, 0.97):
        number = int(order[int(share * len(order))])
        pir, kir = known.people(number)
        frames.append(pd.DataFrame({"row": "person", "tract": number, "pir": pir, "kir": kir}))
    # How many of a tract's own people its interval holds, by their distance from the line's point.
    return pd.concat([*frames, _held(every, settings)], ignore_index=True)


def _held(every: pd.DataFrame, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Share of each tract's people inside, moved along the true trend to pir = 0.25."""
    known = people(settings)
    slope = 0.1 if known.truth is None else known.truth[known.tract, 0]
    at = known.kir - slope * (known.pir - 0.25)
    rows = []
    for (method, noise), some in every[every["method"] != OI].groupby(["method", "sensitivity"]):
        low, high = (some.set_index("tract")[f"new90_{s}"].to_numpy() for s in ("low", "high"))
        inside = (low[known.tract] <= at) & (at <= high[known.tract])
        share = np.bincount(known.tract, inside) / known.sizes
        width = float((high - low).mean())
        told = {"row": "held", "method": method, "sensitivity": noise}
        rows.append({**told, "share": float(share.mean()), "width": width})
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame) -> Any:
    """One panel per tract."""
    persons = table[table["row"] == "person"]
    numbers = list(dict.fromkeys(persons["tract"]))
    more = "Dots are people; bars around pir = 0.25, from left to right, the legend's methods."
    figure, axes = grid(1, len(numbers), TITLE, more, width=3.4, height=3.2)
    intervals = table[table["row"] == "interval"]
    for axis, number in zip(axes[0], numbers, strict=True):
        here = persons[persons["tract"] == number]
        axis.plot(here["pir"], here["kir"], "o", ms=2.5, alpha=0.35, color="#555555")
        places = 0.25 + np.linspace(-0.15, 0.15, len(METHODS))
        for place, (method, noise) in zip(places, METHODS, strict=True):
            one = pick(intervals, tract=number, method=method, sensitivity=noise).iloc[0]
            look = style(method)
            look.update(ls="--" if noise == "ours" else "-", lw=2, label=_label(method, noise))
            look.pop("marker")
            axis.plot([place] * 2, [one["new90_low"], one["new90_high"]], **look)
            axis.plot([place], [one["point"]], "o", ms=4, color=look["color"])
        axis.axvline(0.25, color="grey", ls=":", lw=0.8, zorder=0)
        axis.set_xlim(0, 1)
        axis.set_xlabel("parents' income rank (pir)", fontsize=9)
        axis.set_title(f"{len(here)} people", fontsize=9)
    axes[0, 0].set_ylabel("children's income rank (kir)", fontsize=9)
    legend_beside(figure)
    return figure


def _label(method: str, noise: str) -> str:
    return method if method == "non-private" else f"{method}, {noise}"


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Mean share of a tract's people inside its interval, and the mean width."""
    found = {}
    for _, row in table[table["row"] == "held"].iterrows():
        told = f"{row['method']}, {row['sensitivity']}"
        found[f"people inside: {told}"] = float(row["share"])
        found[f"width: {told}"] = float(row["width"])
    for base, name in (
        ("non-private", "non-private's"),
        ("gibbs-update", "gibbs-update's as printed"),
    ):
        width = found[f"width: {base}, as printed"]
        for told in [k.removeprefix("width: ") for k in found if k.startswith("width: ")]:
            found[f"width over {name}: {told}"] = found[f"width: {told}"] / width
    return found


FIGURE = Figure("case-study-5.11", PAPER, TITLE, run, draw, measure, STUDY)

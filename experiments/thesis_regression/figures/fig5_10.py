"""Fig. 5.10: children's against parents' income ranks in two tracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore
from experiments.thesis_regression.casestudy import STUDY, people
from experiments.thesis_regression.figures.shared import PAPER

TITLE = "Income ranks of children and parents in two tracts"


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """People of a low and of a high tract, both large; and what all tracts look like."""
    known = people(settings)
    means = np.bincount(known.tract, known.kir) / known.sizes
    large = np.flatnonzero(known.sizes >= np.quantile(known.sizes, 0.9))
    order = large[np.argsort(means[large])]
    frames = []
    for label, number in (("low", order[len(order) // 10]), ("high", order[-len(order) // 10])):
        pir, kir = known.people(number)
        frames.append(pd.DataFrame({"which": label, "tract": number, "pir": pir, "kir": kir}))
    rows = pd.concat(frames, ignore_index=True)
    asked = settings["tracts"]
    return rows.assign(
        tracts=asked, kept=len(known.names), smallest=known.sizes.min(), largest=known.sizes.max()
    )


def draw(table: pd.DataFrame) -> Any:
    """Two scatter plots side by side."""
    caption = (
        f"Generated to the published form: {table['kept'].iloc[0]:,} of "
        f"{table['tracts'].iloc[0]:,} tracts pass the filter on medians."
    )
    figure, axes = grid(1, 2, TITLE, caption, sharey=True)
    for axis, (label, some) in zip(axes[0], table.groupby("which", sort=False), strict=True):
        axis.plot(some["pir"], some["kir"], "o", ms=3, alpha=0.6, color="#2e86c1")
        axis.axvline(0.25, color="grey", ls=":", lw=1)
        axis.set(xlim=(0, 1), ylim=(0, 1))
        axis.set_xlabel("parents' income rank (pir)", fontsize=9)
        axis.set_title(f"a {label}-opportunity tract, {len(some)} people", fontsize=9)
    axes[0, 0].set_ylabel("children's income rank (kir)", fontsize=9)
    return figure


def measure(table: pd.DataFrame) -> dict[str, float]:
    """How far apart they are, and whether the tracts have the published form."""
    by = table.groupby("which")
    return {
        "difference of mean kir": float(by["kir"].mean()["high"] - by["kir"].mean()["low"]),
        "least range of pir": float((by["pir"].max() - by["pir"].min()).min()),
        "share filtered": 1 - float(table["kept"].iloc[0] / table["tracts"].iloc[0]),
        "smallest tract": float(table["smallest"].iloc[0]),
        "largest tract": float(table["largest"].iloc[0]),
    }


FIGURE = Figure("case-study-5.10", PAPER, TITLE, run, draw, measure, STUDY)

"""Fig. 5.12: point estimates and intervals against the non-private estimate, by ε."""

from __future__ import annotations

from typing import Any

import pandas as pd

from experiments.regression_paper.study import pick
from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.thesis_regression.casestudy import STUDY, table
from experiments.thesis_regression.figures.shared import PAPER, caption

TITLE = "Estimates against the non-private estimate, with 90 % and 50 % intervals"
ROWS = (("gibbs-update", "as printed"), ("exact", "ours"))


def draw(rows: pd.DataFrame) -> Any:
    """One column per ε; dots near the diagonal are good."""
    epsilons = sorted(rows["epsilon"].unique())
    more = "Bars: predictive intervals (pale 90 %, darker 50 %)."
    figure, axes = grid(
        2, len(epsilons), TITLE, caption(rows, more), width=2.7, sharex=True, sharey=True
    )
    for line, (method, noise) in zip(axes, ROWS, strict=True):
        for axis, epsilon in zip(line, epsilons, strict=True):
            some = pick(rows, method=method, sensitivity=noise, epsilon=epsilon)
            for level, colour in ((90, "#cfe3f1"), (50, "#7fb5da")):
                axis.vlines(
                    some["reference"], some[f"new{level}_low"], some[f"new{level}_high"],
                    color=colour, lw=0.8,
                )  # fmt: skip
            axis.plot(some["reference"], some["point"], ".", ms=2, color="#154360")
            axis.plot([0, 1], [0, 1], color="black", lw=0.8, ls=":")
            axis.set(xlim=(0, 1), ylim=(0, 1))
            axis.set_title(f"{method}, noise {noise}, ε = {epsilon:g}", fontsize=8)
        line[0].set_ylabel("estimate of kir", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("non-private estimate", fontsize=9)
    return figure


def measure(rows: pd.DataFrame) -> dict[str, float]:
    """Correlation with the non-private estimate, and widths at the ends of the range of ε."""
    found = {}
    for (method, noise, epsilon), some in rows.groupby(["method", "sensitivity", "epsilon"]):
        told = f"{method}, {noise}, ε = {epsilon:g}"
        found[f"correlation: {told}"] = float(some["point"].corr(some["reference"]))
        found[f"width: {told}"] = float((some["new90_high"] - some["new90_low"]).mean())
    least, most = rows["epsilon"].min(), rows["epsilon"].max()
    for method, noise in ROWS:
        wide, narrow = (found[f"width: {method}, {noise}, ε = {e:g}"] for e in (least, most))
        found[f"width at most over least ε: {method}, {noise}"] = narrow / wide
    return found


FIGURE = Figure("case-study-5.12", PAPER, TITLE, table, draw, measure, STUDY)

"""Fig. 5.13: coverage of 90 % and 50 % intervals against ε."""

from __future__ import annotations

from typing import Any

import pandas as pd

from experiments.regression_paper.pictures import SENSITIVITIES
from experiments.regression_paper.study import pick
from experiments.reproduce.canvas import grid, legend_beside
from experiments.reproduce.figure import Figure
from experiments.thesis_regression.casestudy import LEVELS, OI, STUDY, covered, table
from experiments.thesis_regression.figures.shared import PAPER, caption, methods, style

TITLE = "Coverage against ε"
TARGETS = (
    ("new", "reference", "predictive interval,\nnon-private estimate"),
    ("line", "reference", "line's interval,\nnon-private estimate"),
    ("line", "truth", "line's interval,\ntrue line"),
    ("new", "person", "predictive interval,\na fresh person"),
)


def shares(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per method, sensitivity, ε, level and target."""
    found = []
    for level in LEVELS:
        for interval, target, told in TARGETS:
            inside = covered(rows, f"{interval}{level}", target)
            by = inside.groupby([rows["method"], rows["sensitivity"], rows["epsilon"]]).mean()
            found.append(by.rename("coverage").reset_index().assign(level=level, target=told))
    every = pd.concat(found, ignore_index=True)
    return every[every["method"] != OI]


def draw(rows: pd.DataFrame) -> Any:
    """The thesis measures the first column; the others are what intervals are for."""
    found = shares(rows)
    noises = [s for s in SENSITIVITIES if (found["sensitivity"] == s).any()]
    lines = [(level, noise) for noise in noises for level in LEVELS]
    more = "The thesis shows the first column. A predictive interval should hold a fresh person."
    figure, axes = grid(
        len(lines), len(TARGETS), TITLE, caption(rows, more), width=2.7, height=2.3, sharey=True
    )
    for line, (level, noise) in zip(axes, lines, strict=True):
        for axis, (_, _, told) in zip(line, TARGETS, strict=True):
            some = pick(found, level=level, sensitivity=noise, target=told)
            axis.axhline(level / 100, color="grey", ls="--", lw=1)
            for method in methods(some):
                one = pick(some, method=method)
                axis.plot(one["epsilon"], one["coverage"], **style(method))
            axis.set(xscale="log", ylim=(0, 1.03), xticks=[1, 2, 4, 8])
            axis.set_xticklabels(["1", "2", "4", "8"])
            axis.minorticks_off()
            axis.set_title(told, fontsize=8)
        short = "as printed" if noise == "as printed" else "ours"
        line[0].set_ylabel(f"{level} % intervals,\nnoise {short}", fontsize=8.5)
    for axis in axes[-1]:
        axis.set_xlabel("privacy budget ε", fontsize=9)
    legend_beside(figure)
    return figure


def measure(rows: pd.DataFrame) -> dict[str, float]:
    """Distances from the level: at ε = 4, and the mean over ε."""
    found = {}
    every = shares(rows)
    off = every.assign(off=(every["coverage"] - every["level"] / 100).abs())
    names = {told: told.replace("\n", " ") for _, _, told in TARGETS}
    for (method, noise, target), some in off.groupby(["method", "sensitivity", "target"]):
        told = f"{method}, {noise}; {names[str(target)]}"
        found[f"off level: {told}"] = float(some["off"].mean())
        for _, row in some[some["epsilon"] == 4].iterrows():
            found[f"{row['level']} % at ε = 4: {told}"] = float(row["coverage"])
        nine = some[some["level"] == 90].sort_values("epsilon")["coverage"]
        found[f"90 % gained from least to most ε: {told}"] = float(nine.iloc[-1] - nine.iloc[0])
    return found


FIGURE = Figure("case-study-5.13", PAPER, TITLE, table, draw, measure, STUDY)

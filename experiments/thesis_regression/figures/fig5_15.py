"""Fig. 5.15: residuals against the non-private estimate by tract size, and how they shrink."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from experiments.regression_paper.study import pick
from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.thesis_regression.casestudy import STUDY, table
from experiments.thesis_regression.figures.fig5_12 import ROWS
from experiments.thesis_regression.figures.shared import PAPER, caption

TITLE = "Residuals against the non-private estimate, by tract size"


def draw(rows: pd.DataFrame) -> Any:
    """On logarithmic axes, with the fitted rate."""
    epsilons = sorted(rows["epsilon"].unique())
    figure, axes = grid(
        2, len(epsilons), TITLE, caption(rows, "Line: fitted power of the tract's size."),
        width=2.7, height=2.5, sharex=True, sharey=True,
    )  # fmt: skip
    for line, (method, noise) in zip(axes, ROWS, strict=True):
        for axis, epsilon in zip(line, epsilons, strict=True):
            some = pick(rows, method=method, sensitivity=noise, epsilon=epsilon)
            gap = np.maximum((some["point"] - some["reference"]).abs(), 1e-5)
            axis.loglog(some["size"], gap, ".", ms=2.5, alpha=0.5, color="#2e86c1")
            power, start = rate(some)
            at = np.array([some["size"].min(), some["size"].max()], float)
            axis.plot(at, np.exp(start) * at**power, color="#c0392b", lw=1.5)
            told = f"{method}, noise {noise}\nε = {epsilon:g}, rate {power:.2f}"
            axis.set_title(told, fontsize=8)
        line[0].set_ylabel("absolute residual of kir", fontsize=8.5)
    for axis in axes[-1]:
        axis.set_xlabel("people in the tract", fontsize=9)
        axis.set_xticks([20, 50, 100, 200, 400], labels=["20", "50", "100", "200", "400"])
        axis.minorticks_off()
    return figure


def rate(some: pd.DataFrame) -> tuple[float, float]:
    """Slope and start of log|residual| against log size, by least squares."""
    gap = np.maximum((some["point"] - some["reference"]).abs(), 1e-5)
    power, start = np.polyfit(np.log(some["size"]), np.log(gap), 1)
    return float(power), float(start)


def measure(rows: pd.DataFrame) -> dict[str, float]:
    """The rate at every ε, and its change from the least to the most."""
    found = {}
    for method, noise in ROWS:
        rates: dict[Any, float] = {}
        for epsilon, some in pick(rows, method=method, sensitivity=noise).groupby("epsilon"):
            rates[epsilon] = rate(some)[0]
            found[f"rate: {method}, {noise}, ε = {epsilon:g}"] = rates[epsilon]
        change = rates[max(rates)] - rates[min(rates)]
        found[f"rate at most less rate at least ε: {method}, {noise}"] = change
    return found


FIGURE = Figure("case-study-5.15", PAPER, TITLE, table, draw, measure, STUDY)

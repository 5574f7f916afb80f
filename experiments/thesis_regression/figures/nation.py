"""Beyond the thesis: as many tracts as the United States have, 73,000, by ``exact`` at ε = 4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from experiments.regression_paper.study import pick
from experiments.reproduce.canvas import grid, legend_beside
from experiments.reproduce.figure import Figure
from experiments.thesis_regression import casestudy
from experiments.thesis_regression.figures import fig5_13, fig5_14
from experiments.thesis_regression.figures.shared import caption, style

TITLE = "The case study at the scale of the United States, ε = 4"


def draw(rows: pd.DataFrame) -> Any:
    """Shares of tracts whose residual is within a distance."""
    figure, axes = grid(1, 1, TITLE, caption(rows), width=6)
    for method in ("naive", "exact", casestudy.MATCHED):
        some = pick(rows, method=method)
        gap = np.sort(np.maximum((some["point"] - some["reference"]).abs(), 1e-5))
        look = style(method)
        look.pop("marker")
        axes[0, 0].plot(gap, np.arange(1, len(gap) + 1) / len(gap), **look)
    axes[0, 0].set(xscale="log", xlabel="absolute residual against the non-private estimate")
    axes[0, 0].set_ylabel("share of tracts up to it")
    legend_beside(figure)
    return figure


def measure(rows: pd.DataFrame) -> dict[str, float]:
    """Errors and coverage, as in the state."""
    return {
        **fig5_13.measure(rows),
        **fig5_14.measure(rows),
        "least ESS of exact": float(rows[rows["method"] == "exact"]["ess"].min()),
    }


FIGURE = Figure("case-study-nation", "beyond the thesis", TITLE, casestudy.table, draw, measure)

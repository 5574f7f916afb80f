"""Beyond the thesis: as many tracts as the United States have, 73,000, by ``exact`` at ε = 4."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore
from experiments.thesis_regression import casestudy
from experiments.thesis_regression.figures import fig5_13, fig5_14

TITLE = "The case study at the scale of the United States, ε = 4"


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Rows as in the case study, with the seconds that each method took."""
    start = time.perf_counter()
    rows = casestudy.table(settings, trials)
    return rows.assign(seconds=np.round(time.perf_counter() - start, 1))


def draw(rows: pd.DataFrame) -> Any:
    """Residuals of naive and exact, as shares of tracts within a distance."""
    from experiments.regression_paper.study import pick
    from experiments.reproduce.canvas import grid, legend_beside
    from experiments.thesis_regression.figures.shared import caption, style

    figure, axes = grid(1, 1, TITLE, caption(rows), width=6)
    for method in ("naive", "exact"):
        some = pick(rows, method=method)
        gap = np.sort(np.maximum((some["point"] - some["reference"]).abs(), 1e-5))
        look = style(method)
        look.pop("marker")
        axes[0, 0].plot(gap, np.arange(1, len(gap) + 1) / len(gap), **look)
    axes[0, 0].set(xscale="log", xlabel="absolute residual against the non-private estimate")
    axes[0, 0].set_ylabel("share of tracts up to it")
    legend_beside(figure, axes[0, 0])
    return figure


def measure(rows: pd.DataFrame) -> dict[str, float]:
    """Errors and coverage, as in the state."""
    return {
        **fig5_13.measure(rows),
        **fig5_14.measure(rows),
        "least ESS of exact": float(rows[rows["method"] == "exact"]["ess"].min()),
    }


FIGURE = Figure("case-study-nation", "beyond the thesis", TITLE, run, draw, measure)

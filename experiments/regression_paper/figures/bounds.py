"""Section 4.2 in the text: do at least 95 % of x and y lie within the bounds [-1, 1]?

The sensitivity assumes it, nothing enforces it. Λ0 of the prior is a precision (errata E13).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.regression_paper.simulate import records
from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore

TITLE = "Records of the synthetic study and the bounds that its sensitivity assumes"


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """One record per draw from the prior."""
    rng = np.random.default_rng(settings["seed"])
    x, y, _ = records(rng, settings["draws"], 1, 1)
    return pd.DataFrame({"x": x[:, 0, 0], "y": y[:, 0]})


def draw(table: pd.DataFrame) -> Any:
    """Histograms with the bounds."""
    figure, axes = grid(1, 2, TITLE, f"{len(table):,} records, each from a prior draw of its own.")
    for axis, column, told in zip(axes[0], "xy", ("covariate x", "response y"), strict=True):
        axis.hist(table[column].clip(-4, 4), 80, color="#2e86c1")
        for bound in (-1, 1):
            axis.axvline(bound, color="#c0392b", ls="--", lw=1.2)
        share = (table[column].abs() <= 1).mean()
        axis.set_title(f"{told}: {share:.1%} within [-1, 1]", fontsize=9)
        axis.set_yticks([])
    return figure


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Shares within the bounds."""
    return {f"inside: {c}": float((table[c].abs() <= 1).mean()) for c in "xy"}


FIGURE = Figure("regression-bounds", "regression paper", TITLE, run, draw, measure)

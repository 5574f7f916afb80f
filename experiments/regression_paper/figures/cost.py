"""Section 4.2 in the text: the cost of one Gibbs-SS sweep against the number of features.

Each sweep inverts the covariance of t(x, y), a matrix of d² + d + 1 rows as the paper counts them
(d features, the constant among them). It should cost d⁶, and be within reach up to d = 100.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore

TITLE = "What one sweep of Gibbs-SS costs, by the number of features"
SWEEPS = 25_000
"""5,000 to burn in and 20,000 kept: the paper's least."""
REACH = 100


def inversion(d: int, seed: int, repeats: int) -> dict[str, float]:
    """The fastest of a few inversions, in seconds of one core: it is less noisy than a clock."""
    rows = d * d + d + 1
    wide = np.random.default_rng([seed, d]).standard_normal((rows, rows))
    matrix = wide @ wide.T / rows + np.eye(rows)
    times = []
    with threadpool_limits(1):
        for _ in range(repeats):
            start = time.process_time()
            cho_solve(cho_factor(matrix), np.eye(rows))
            times.append(time.process_time() - start)
    return {"rows": rows, "seconds": min(times)}


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """One row per number of features."""
    rows = []
    for d in settings["features"]:
        rows += trials.cell(
            {"d": d}, lambda d=d: inversion(d, settings["seed"], settings["repeats"])
        )
    return pd.DataFrame(rows)


def fitted(table: pd.DataFrame) -> tuple[float, float]:
    """Power of d and hours of all sweeps at d = 100, from the larger matrices."""
    large = table[table["d"] >= table["d"].median()]
    power, start = np.polyfit(np.log(large["d"]), np.log(large["seconds"]), 1)
    return float(power), float(np.exp(start + power * np.log(REACH)) * SWEEPS / 3600)


def draw(table: pd.DataFrame) -> Any:
    """Measured, and carried on to d = 100."""
    power, hours = fitted(table)
    caption = (
        f"Cholesky inversion, the fastest of a few, one core of this machine. {SWEEPS:,} sweeps."
    )
    figure, axes = grid(1, 1, TITLE, caption, width=5.5)
    axis = axes[0, 0]
    axis.loglog(
        table["d"], table["seconds"] * SWEEPS / 3600, "o-", color="#2e86c1", label="measured"
    )
    at = np.array([table["d"].max(), REACH])
    label = f"carried on: power {power:.1f}, {hours:.0f} hours at d = {REACH}"
    axis.loglog(at, hours * (at / REACH) ** power, "--", color="#c0392b", label=label)
    axis.set(xlabel="features d", ylabel="hours for all sweeps")
    axis.legend(frameon=False, fontsize=8)
    return figure


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Power, and hours at d = 100."""
    power, hours = fitted(table)
    return {"power of d": power, "hours at d = 100": hours}


FIGURE = Figure("regression-cost", "regression paper", TITLE, run, draw, measure)

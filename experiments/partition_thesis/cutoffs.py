"""What Figures 3.1 to 3.4 share: their rows and columns, and the numbers behind the claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from experiments.partition_thesis.boxes import panels
from experiments.partition_thesis.probabilities import study
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore

AXIS = "cutoff b, in posterior deviations\nfrom the true slope"
TAIL = 2.9
"""Cutoffs further from the truth than this, in posterior deviations, are the tails."""


ROWS = {
    "normality": {
        "as printed": "as printed\n(g = 100 in partitions)",
        "thesis' formula": "thesis' formula,\nprior carried once",
        "corrected": "corrected (E16)",
    },
    "fisher": {
        "as printed": "as printed (g = 100,\nnoise / M: not ε-DP)",
        "thesis' formula": "prior carried once,\nnoise / M: not ε-DP",
        "corrected": "true sensitivity\n(E4)",
    },
}


def probability_figure(
    number: str, method: str, title: str, draw: Callable[[Any, pd.DataFrame, str, str], None],
    columns: tuple[str, ...],
) -> Figure:  # fmt: skip
    """Figures 3.1 to 3.4 differ in the method, and in what is drawn of it."""

    def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
        table = study(settings, trials)
        return table[table["method"] == method]

    def picture(table: pd.DataFrame) -> Any:
        clip = ", p* = 0.001" if method == "fisher" else ""
        caption = (
            f"{table['data_set'].nunique()} data sets of 100,000 records in 1,000 partitions, "
            f"ε = 0.25{clip}. Boxes: quartiles; whiskers: 5 % to 95 %; dots: means."
        )
        heading = f"{title} (partition thesis Fig. {number})"
        figure, axes = panels(ROWS[method], columns, heading, caption)
        for line, version in zip(axes, ROWS[method], strict=True):
            own = table[table["version"] == version]
            for axis, column in zip(line, columns, strict=True):
                draw(axis, own, "step", column)
        for axis in axes[-1]:
            axis.set_xlabel(AXIS)
        return figure

    return Figure(
        f"partition-{number}", "partition_thesis", title, run, picture, measures,
        study="partition-probabilities",
    )  # fmt: skip


def measures(table: pd.DataFrame) -> dict[str, float]:
    """By version: biases, curves, spreads and errors, without ("plain") and with noise."""
    found: dict[str, float] = {}
    short = {"as printed": "printed", "thesis' formula": "formula", "corrected": "corrected"}
    for version, own in table.groupby("version"):
        name = short[str(version)]
        for column in ("plain", "noisy"):
            error = own[column] - own["full"]
            by = error.groupby(own["step"])
            bias, spread = by.mean(), by.std()
            steps = bias.index.to_numpy()
            below, above = bias[steps < 0], bias[steps > 0]
            middle, tails = spread[steps == 0].mean(), spread[np.abs(steps) > TAIL].mean()
            found |= {
                f"{name}_{column}_bias": float(bias.abs().max()),
                f"{name}_{column}_curve": _off_a_normal_curve(own, column),
                f"{name}_{column}_spread_ratio": float(middle / tails),
                f"{name}_{column}_over_below": float(below.mean()),
                f"{name}_{column}_under_above": float(-above.mean()),
                f"{name}_{column}_rmse": float(np.sqrt((error**2).mean())),
            }
        found[f"{name}_spent"] = float(own["spent"].max())
    return found


def _off_a_normal_curve(own: pd.DataFrame, column: str) -> float:
    """Largest distance of the means from the nearest normal distribution function (probit line)."""
    mean = own.groupby("step")[column].mean().clip(1e-6, 1 - 1e-6)
    line = np.polynomial.Polynomial.fit(mean.index, stats.norm.ppf(mean), 1)
    return float(np.abs(stats.norm.cdf(line(mean.index.to_numpy())) - mean).max())

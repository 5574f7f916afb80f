"""Posterior quantiles by partitions (thesis chapter 4): each bound search on the same data sets.

Set-up of 4.1: n = 100,000, y = 1 + 2x + N(0, 100), partitions of 1,000, ε₁ = ε₂ = 0.45. The thesis
states neither the share θ nor the first bound μ of its search: one half and 1 here. Searches and
noise are the library's own, from OpenDP, which has no seed: figures differ a little between runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from experiments.partition_thesis.blocks import in_blocks
from experiments.partition_thesis.probabilities import evenly
from experiments.reproduce.store import TrialStore
from noisewise.artifact import SearchError
from noisewise.artifact.partition_answer import Answer
from noisewise.artifact.sensitivity import sensitivity
from noisewise.models.partition.conjugate_regression import CoefficientPosteriors, Zellner, fit
from noisewise.models.partition.posterior_quantile import IntervalSearch, draw_quantile
from noisewise.privacy.mechanisms import calibrate
from tests.reference.partition_simulation import quantile_blank, table, whole

SEARCHES = ("as printed", "thesis' formula", "corrected")
"""A threshold of θn quantiles of M (E5); of θM, around zero; and with a centre of its own."""
DOUBLINGS = 40


def study(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Data set, p, version: full-data quantile, the partitions' mean, and the release."""
    return in_blocks(settings, trials, one)


def one(number: int, settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """One data set; every quantile is a release of its own with the whole budget."""
    rng = np.random.default_rng([settings["seed"], number])
    n, count = settings["n"], settings["n"] // settings["partition_size"]
    columns = table(rng, n, 10.0)
    full = whole(columns)
    posterior = fit(evenly(columns, count, rng), 0, Zellner(float(n)), float(count), 1.0)
    rows: list[Mapping[str, Any]] = []
    for p in settings["probabilities"]:
        for version in SEARCHES:
            noisy, radius = released(posterior, p, version, settings)
            rows.append(
                {
                    "version": version,
                    "data_set": number,
                    "p": p,
                    "full": float(full.quantiles(p)[0]),
                    "sd": float(full.scale[0]),
                    "plain": float(posterior.quantiles(p).mean()),
                    "noisy": noisy,
                    "radius": radius,
                }
            )
    return rows


def released(
    posterior: CoefficientPosteriors, p: float, version: str, settings: Mapping[str, Any]
) -> tuple[float, float]:
    """The private quantile and the interval's half-width; NaN where no interval was found."""
    count, cost = len(posterior.location), settings["epsilon_bounds"]
    centred = version == "corrected"
    share = settings["share"]
    if version == "as printed":
        share *= settings["n"] / count
    blank = quantile_blank(count, p, "centred" if centred else "symmetric", cost)
    noise = calibrate("laplace", sensitivity(blank, "replace-one"), settings["epsilon_value"])
    try:
        block = draw_quantile(
            posterior, blank, IntervalSearch(centred, 1.0, share, DOUBLINGS, cost), noise
        )
    except SearchError:
        return float("nan"), float("nan")
    answer = Answer(block.statistic, block.noise, block.values[:, 0], True)  # type: ignore[arg-type]
    return answer.quantile, float(block.statistic.radius)  # type: ignore[attr-defined]


def measures(table: pd.DataFrame) -> dict[str, float]:
    """Errors in units of the coefficient; "width" is the full data's middle 90 %."""
    sd = float(table["sd"].mean())
    once = table[table["version"] == "corrected"]
    plain = (once["plain"] - once["full"]).groupby(once["p"])
    found = {
        "plain_bias_in_sd": float(plain.mean().abs().max() / sd),
        "plain_curve_in_sd": _off_a_normal_curve(once, "plain") / sd,
        "full_curve_in_sd": _off_a_normal_curve(once, "full") / sd,
        "plain_rmse_in_sd": float(np.sqrt(((once["plain"] - once["full"]) ** 2).mean()) / sd),
    }
    ends = once.groupby("p")["full"].mean()
    width = float(ends.iloc[-1] - ends.iloc[0])
    for version, name in zip(SEARCHES, ("printed", "formula", "corrected"), strict=True):
        own = table[table["version"] == version]
        error = (own["noisy"] - own["full"]).dropna()
        found[f"{name}_found"] = float(own["noisy"].notna().mean())
        if len(error):
            rmse = float(np.sqrt((error**2).mean()))
            found |= {
                f"{name}_bias_in_sd": float(abs(error.mean()) / sd),
                f"{name}_rmse_in_widths": rmse / width,
                f"{name}_radius": float(own["radius"].mean()),
                f"{name}_rmse_over_plain": rmse / sd / found["plain_rmse_in_sd"],
            }
    found["radius_ratio"] = found["formula_radius"] / found["corrected_radius"]
    return found


def _off_a_normal_curve(own: pd.DataFrame, column: str) -> float:
    mean = own.groupby("p")[column].mean()
    z = stats.norm.ppf(mean.index.to_numpy())
    line = np.polynomial.Polynomial.fit(z, mean.to_numpy(), 1)
    return float(np.abs(line(z) - mean.to_numpy()).max())

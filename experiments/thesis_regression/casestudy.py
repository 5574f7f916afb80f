"""The social-mobility case study (thesis 5.4): kir at pir = 0.25 in every tract, by every method.

Tract sizes are public and neighbours replace a person within a tract: every tract has the full ε.
Three targets, because the thesis measures predictive intervals against the non-private estimate,
which is not what a predictive interval is for: the line's interval against that estimate and
against the true line, and the predictive interval against a fresh person.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from experiments.regression_paper.tables import WAYS, Sums, release, sums
from experiments.reproduce.store import TrialStore
from experiments.thesis_regression import oi
from experiments.thesis_regression.tracts import (
    AT,
    LEVEL,
    SLOPE,
    SPREAD,
    VARIANCE,
    Tracts,
    filtered,
    generated,
    loaded,
)
from noisewise.inference import methods as methods_of
from noisewise.priors import NormalInverseGamma, NormalInverseWishart

RESPONSE = NormalInverseGamma([0.1, 0.5], np.diag([0.001, 0.001]), 1000, 0.5)
COVARIATES = NormalInverseWishart([0.5], 1, [[1.0]], 50)
LEVELS = (90, 50)
SIDES = (("low", -1), ("high", 1))
OI = "OI (not private)"
MATCHED = "exact, matched prior"
"""``exact`` with a prior as wide as tracts differ; the thesis' is three times as wide."""
STUDY = "case-study"


@lru_cache(maxsize=2)
def data(tracts: int, seed: int, file: str | None) -> Tracts:
    """The user's file, where there is one; otherwise generated."""
    return filtered(loaded(file) if file else generated(tracts, seed))


def people(settings: Mapping[str, Any]) -> Tracts:
    """The tracts that these settings speak of."""
    return data(settings["tracts"], settings["seed"], settings.get("file"))


def table(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """One row per tract, ε, method and sensitivity."""
    frames = []
    for sensitivity, methods in settings["methods"].items():
        for epsilon in settings["epsilons"]:
            for method in methods:
                key = {"method": method, "sensitivity": sensitivity, "epsilon": epsilon}
                (cell,) = trials.cell(
                    key, lambda m=method, s=sensitivity, e=epsilon: estimated(m, s, e, settings)
                )
                frames.append(pd.DataFrame(cell))
    every = pd.concat(frames, ignore_index=True)
    honest = every[every["method"] == "non-private"]
    columns = ["sensitivity", "epsilon", "tract"]
    reference = honest.set_index(columns)["point"].rename("reference")
    return every.join(reference, on=columns)


def estimated(
    method: str, sensitivity: str, epsilon: float, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Point and intervals of every tract, as lists; rounded to 10⁻⁵, far below any noise."""
    known, way, seed = people(settings), WAYS[sensitivity], settings["seed"]
    exact = sums(way.boxed(known.pir), way.boxed(known.kir), known.tract, len(known.names))
    noise = np.random.default_rng([seed, round(1000 * epsilon), *sensitivity.encode()])
    told: dict[str, Any] = {"tract": np.arange(len(known.names)), "size": known.sizes}
    if method == OI:
        plain = sums(known.pir, known.kir, known.tract, len(known.names))
        told["point"] = oi.released(noise, known, plain.gram, epsilon)
    else:
        told |= intervals(draws(method, way, exact, epsilon, noise, settings), seed)
    if known.truth is not None:
        slope, intercept, variance = known.truth.T
        told["truth"] = intercept + slope * AT
        fresh = np.random.default_rng([seed, 2]).standard_normal(len(slope))
        told["person"] = told["truth"] + np.sqrt(variance) * fresh
    return {k: np.round(v, 5).tolist() for k, v in told.items()}


def draws(
    method: str, way: Any, exact: Sums, epsilon: float, noise: np.random.Generator,
    settings: Mapping[str, Any],
) -> Mapping[str, np.ndarray]:  # fmt: skip
    """Posterior draws (tract, chain, draw) by parameter, in the units of the ranks."""
    prior = matched() if method == MATCHED else RESPONSE
    problem = release(
        noise, way, exact, epsilon, prior, COVARIATES, monomials=method == "gibbs-noisy",
        private=method != "non-private",
    )  # fmt: skip
    known = {"non-private": "naive", MATCHED: "exact"}
    run = methods_of("linear-regression")[known.get(method, method)]
    post: Any = run(problem, settings["seed"], settings["chains"], settings["draws"], None)
    return {**post.draws, "ess": np.min(list(post.ess.values()), axis=0)}


def matched() -> NormalInverseGamma:
    """Slope and level independent with the generator's spread, level at mean wealth (0.5)."""
    to_intercept = np.array([[1.0, 0.0], [-0.5, 1.0]])
    # Wealth varies by 0.028 between tracts, which moves intercepts by slope times that.
    extra = np.diag([0.0, (SPREAD**2 + SLOPE**2) * 0.028])
    spread = to_intercept @ (np.eye(2) * SPREAD**2) @ to_intercept.T + extra
    mean = to_intercept @ np.array([SLOPE, LEVEL])
    precision = VARIANCE * np.linalg.inv(spread)
    return NormalInverseGamma(mean, (precision + precision.T) / 2, RESPONSE.shape, RESPONSE.rate)


def intervals(drawn: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Of the line ("line90_low" …) and of a new person ("new90_low" …)."""
    line = drawn["intercept"] + drawn["x"] * AT
    white = np.random.default_rng([seed, 1]).standard_normal(line.shape)
    new = line + np.sqrt(drawn["sigma2"]) * white
    found = {"point": line.mean(axis=(1, 2)), "ess": drawn["ess"]}
    ends = {f"{level}_{side}": 50 + sign * level / 2 for level in LEVELS for side, sign in SIDES}
    for name, values in (("line", line), ("new", new)):
        # All quantiles of flat rows at once: a quarter of the time, which 73,000 tracts feel.
        flat = values.reshape(len(values), -1)
        cuts = np.quantile(flat, np.array(list(ends.values())) / 100, axis=1)
        found |= {f"{name}{end}": cut for end, cut in zip(ends, cuts, strict=True)}
    return found


def covered(table: pd.DataFrame, interval: str, target: str) -> pd.Series:
    """Does "line90" (and so on) hold the target column? Missing where a method has no intervals."""
    low, high = table[f"{interval}_low"], table[f"{interval}_high"]
    inside = (low <= table[target]) & (table[target] <= high)
    return inside.astype(float).where(low.notna())

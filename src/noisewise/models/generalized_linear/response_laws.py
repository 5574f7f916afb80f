"""Laws of a response given its predictor t, in NumPy: means, slopes, new records.

What predictions and effects need; ``links.py`` has what the sampler needs, in JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

LARGEST_LOG_RATE = 40.0
"""Predictors of counts are cut here, so that no rate overflows (chosen)."""


@dataclass(frozen=True)
class ResponseLaw:
    """The law of a response: mean h(t), slope h'(t), variance, and new records.

    ``ratio`` names what exp(slope) multiplies, where it has a name; ``mean_name`` the mean.
    """

    mean: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    variance: Callable[[np.ndarray], np.ndarray]
    records: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    ratio: str | None
    mean_name: str


def _probit_slope(t: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi))


def _rate(t: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(np.minimum(t, LARGEST_LOG_RATE)))


def _binary(rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
    return np.asarray(rng.random(mean.shape) < mean, float)


def _counts(rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
    # NumPy draws no Poisson variate of a rate near 2⁶³; no table holds such counts.
    return np.asarray(rng.poisson(np.minimum(mean, 1e15)), float)


RESPONSE_LAWS = {
    "logistic": ResponseLaw(
        expit, lambda t: expit(t) * expit(-t), lambda t: expit(t) * expit(-t), _binary,
        "odds_ratio", "probability",
    ),
    "probit": ResponseLaw(
        ndtr, _probit_slope, lambda t: ndtr(t) * ndtr(-t), _binary, None, "probability"
    ),
    "poisson": ResponseLaw(_rate, _rate, _rate, _counts, "rate_ratio", "rate"),
}  # fmt: skip
"""The laws by the name of the link."""

"""Simulation-based calibration: are the truth's ranks among posterior draws uniform?

If (β, z) is drawn from the model, the quantile u of β in its posterior given z is uniform (Cook,
Gelman & Rubin 2006; Talts et al. 2018). The KS statistic is the largest distance between the
empirical CDF of u over the trials and the diagonal; the same picture drawn is the QQ plot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import stats

SIMULATIONS = 10_000


def ranks(draws: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The share of draws (trial, draw, …) below the truth (trial, …), ties counted half."""
    draws, truth = np.asarray(draws), np.asarray(truth)
    if draws.ndim != truth.ndim + 1 or draws.shape[:1] + draws.shape[2:] != truth.shape:
        raise ValueError(
            "draws: must have the shape of truth with an axis of draws after the first, "
            f"not {draws.shape} beside {truth.shape}"
        )
    below, equal = draws < truth[:, None], draws == truth[:, None]
    return np.asarray(below.mean(axis=1) + 0.5 * equal.mean(axis=1))


@dataclass(frozen=True)
class KS:
    """Distance from uniform, and how often chance alone gives as large a one."""

    statistic: float
    p_value: float


def ks(u: np.ndarray) -> KS:
    """Kolmogorov's test of u (trial,) against the uniform law on [0, 1]."""
    u = np.asarray(u, float)
    if u.ndim != 1 or not len(u) or not ((u >= 0) & (u <= 1)).all():
        raise ValueError("u: must be one row of numbers from 0 to 1")
    found = stats.kstest(u, "uniform")
    return KS(float(found.statistic), float(found.pvalue))


def ks_limit(trials: int, false_alarm: float = 0.05) -> float:
    """The distance that uniform ranks exceed with this probability (exact, any trials)."""
    return float(stats.kstwo.isf(false_alarm, trials))


def uniform_band(trials: int, sure: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Where the sorted u of a calibrated posterior lie, all at once with probability ``sure``.

    The i-th of m sorted uniforms is Beta(i, m + 1 - i). Central intervals of all of them are
    widened together until they hold jointly: the idea of Säilynoja, Bürkner & Vehtari (2022).
    """
    order = np.arange(1, trials + 1)
    law = stats.beta(order, trials + 1 - order)
    tail = _joint_tail(trials, sure) / 2
    return law.ppf(tail), law.ppf(1 - tail)


@lru_cache(maxsize=32)
def _joint_tail(trials: int, sure: float) -> float:
    """Both tails of the pointwise intervals that hold jointly; from simulated uniforms."""
    rng = np.random.default_rng(0)
    order = np.arange(1, trials + 1)
    law = stats.beta(order, trials + 1 - order)
    least = []
    # In pieces, so that memory does not grow with the number of trials.
    piece = max(1, 2_000_000 // trials)
    for begin in range(0, SIMULATIONS, piece):
        size = min(piece, SIMULATIONS - begin)
        at = law.cdf(np.sort(rng.random((size, trials)), axis=1))
        least.append(2 * np.minimum(at, 1 - at).min(axis=1))
    return float(np.quantile(np.concatenate(least), 1 - sure))

"""Simulation-based calibration: are the truth's ranks among posterior draws uniform?

If (β, z) is drawn from the model, the quantile u of β in its posterior given z is uniform (Cook,
Gelman & Rubin 2006; Talts et al. 2018). The KS statistic is the largest distance between the
empirical CDF of u over the trials and the diagonal; the same picture drawn is the QQ plot.

Coverage asks less of a posterior: how often its central intervals hold the truth, and how far that
share may be from the level by chance alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import stats

BAND_SIMULATIONS = 10_000
"""Simulated sets of uniforms behind a joint band (chosen): its level is right to 0.2 percent."""
BAND_NUMBERS = 2_000_000
"""Uniforms simulated at a time (chosen), so that memory does not grow with the trials."""


def ranks(draws: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the truth's ranks among posterior draws, from 0 to 1.

    Args:
        draws: posterior draws, shape (trial, draw, …).
        truth: what they are draws of, shape (trial, …).

    Returns:
        The share of draws below the truth (trial, …), ties counted half.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> draws = np.array([[1.0, 2.0, 3.0, 4.0]])
        >>> nw.diagnostics.ranks(draws, truth=np.array([2.5])).tolist()
        [0.5]
    """
    draws, truth = _matched(draws, truth)
    below, equal = draws < truth[:, None], draws == truth[:, None]
    return np.asarray(below.mean(axis=1) + 0.5 * equal.mean(axis=1))


@dataclass(frozen=True)
class KS:
    """Distance from uniform, and how often chance alone gives as large a one.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> test = nw.diagnostics.ks(np.array([0.1, 0.3, 0.6, 0.8]))
        >>> round(test.statistic, 2), test.p_value > 0.5
        (0.2, True)
    """

    statistic: float
    p_value: float


def ks(u: np.ndarray) -> KS:
    """Return Kolmogorov's test of ranks against the uniform law on [0, 1].

    Args:
        u: ranks from 0 to 1, shape (trial,).

    Example:
        >>> import noisewise as nw, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.normal(size=200)
        >>> draws = rng.normal(size=(200, 100))
        >>> nw.diagnostics.ks(nw.diagnostics.ranks(draws, truth)).p_value > 0.01
        True
    """
    u = np.asarray(u, float)
    if u.ndim != 1 or not len(u) or not ((u >= 0) & (u <= 1)).all():
        raise ValueError("u: must be one row of numbers from 0 to 1")
    test = stats.kstest(u, "uniform")
    return KS(float(test.statistic), float(test.pvalue))


def ks_limit(trials: int, false_alarm: float = 0.05) -> float:
    """Return the distance that uniform ranks exceed with a given probability.

    Args:
        trials: number of ranks; the law is exact for any number.
        false_alarm: that probability.

    Example:
        >>> import noisewise as nw
        >>> round(nw.diagnostics.ks_limit(100), 3)
        0.134
    """
    return float(stats.kstwo.isf(false_alarm, trials))


def uniform_band(trials: int, sure: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Return where sorted ranks of a calibrated posterior lie, all with probability ``sure``.

    The i-th of m sorted uniforms is Beta(i, m + 1 - i). Central intervals of all of them are
    widened together until they hold jointly: the idea of Säilynoja, Bürkner & Vehtari (2022).

    Args:
        trials: number of ranks.
        sure: probability that all of them are inside.

    Returns:
        Lower and upper ends (trial,) of the band, for ranks in increasing order.

    Example:
        >>> import noisewise as nw
        >>> low, high = nw.diagnostics.uniform_band(20)
        >>> len(low), bool((low < high).all())
        (20, True)
    """
    order = np.arange(1, trials + 1)
    law = stats.beta(order, trials + 1 - order)
    tail = _joint_tail(trials, sure) / 2
    return law.ppf(tail), law.ppf(1 - tail)


@lru_cache(maxsize=32)
def _joint_tail(trials: int, sure: float) -> float:
    """Simulate uniforms; return both tails of the pointwise intervals that hold jointly."""
    rng = np.random.default_rng(0)
    order = np.arange(1, trials + 1)
    law = stats.beta(order, trials + 1 - order)
    least = []
    piece = max(1, BAND_NUMBERS // trials)
    for begin in range(0, BAND_SIMULATIONS, piece):
        size = min(piece, BAND_SIMULATIONS - begin)
        at = law.cdf(np.sort(rng.random((size, trials)), axis=1))
        least.append(2 * np.minimum(at, 1 - at).min(axis=1))
    return float(np.quantile(np.concatenate(least), 1 - sure))


@dataclass(frozen=True, eq=False)
class Coverage:
    """Share of trials covered (…), and the mean width of the intervals, per trailing axis.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> draws = np.random.default_rng(0).normal(size=(200, 100, 2))
        >>> covered = nw.diagnostics.coverage(draws, np.zeros((200, 2)))
        >>> covered.share.tolist(), covered.trials
        ([1.0, 1.0], 200)
    """

    level: float
    share: np.ndarray
    width: np.ndarray
    trials: int


def coverage(draws: np.ndarray, truth: np.ndarray, level: float = 0.95) -> Coverage:
    """Compare central intervals of posterior draws with the truth.

    Args:
        draws: posterior draws, shape (trial, draw, …).
        truth: what they are draws of, shape (trial, …).
        level: probability that the intervals promise.

    Returns:
        The share of trials covered and the mean width, per trailing axis.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.normal(size=200)
        >>> draws = rng.normal(size=(200, 100))
        >>> covered = nw.diagnostics.coverage(draws, truth, level=0.9)
        >>> bool(0.8 < covered.share < 1), covered.trials
        (True, 200)
    """
    if not 0 < level < 1:
        raise ValueError(f"level: must be between 0 and 1, not {level!r}")
    draws, truth = _matched(draws, truth)
    low, high = _ends(draws, level)
    inside = (low <= truth) & (truth <= high)
    return Coverage(level, inside.mean(axis=0), (high - low).mean(axis=0), len(truth))


@dataclass(frozen=True, eq=False)
class Wider:
    """Mean logarithm of a ratio of widths, and its standard error, per trailing axis.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> draws = np.random.default_rng(0).normal(size=(20, 100))
        >>> ratio = nw.diagnostics.wider(2 * draws, draws)
        >>> round(float(np.exp(ratio.mean)), 6)
        2.0
    """

    mean: np.ndarray
    error: np.ndarray


def wider(draws: np.ndarray, others: np.ndarray, level: float = 0.95) -> Wider:
    """Return how much wider central intervals are than others of the same trials.

    Args:
        draws: posterior draws, shape (trial, draw, …).
        others: draws of another posterior of the same trials.
        level: probability that the intervals promise.

    Returns:
        The mean log ratio of widths and its standard error, per trailing axis.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> draws = np.random.default_rng(0).normal(size=(20, 100))
        >>> round(float(nw.diagnostics.wider(draws, draws).mean), 6)
        0.0
    """
    widths = [np.subtract(*_ends(np.asarray(d), level)[::-1]) for d in (draws, others)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(widths[0] / widths[1])
    ratio = np.where(np.isfinite(ratio), ratio, np.nan)
    count = np.isfinite(ratio).sum(axis=0)
    return Wider(np.nanmean(ratio, axis=0), np.nanstd(ratio, axis=0, ddof=1) / np.sqrt(count))


def _matched(draws: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both as arrays, or refuse draws whose shape does not fit the truth's."""
    draws, truth = np.asarray(draws), np.asarray(truth)
    if draws.ndim != truth.ndim + 1 or draws.shape[:1] + draws.shape[2:] != truth.shape:
        raise ValueError(
            "draws: must have the shape of truth with an axis of draws after the first, "
            f"not {draws.shape} beside {truth.shape}"
        )
    return draws, truth


def _ends(draws: np.ndarray, level: float) -> np.ndarray:
    """Return lower and upper ends (2, trial, …) of central intervals."""
    return np.asarray(np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=1))


def share_band(level: float, trials: int, sure: float = 0.95) -> tuple[float, float]:
    """Return the shares that a true coverage of ``level`` gives with probability ``sure``.

    Args:
        level: the true coverage.
        trials: behind each share.
        sure: probability, at the least, that a share is inside.

    Returns:
        The least and the greatest share.

    Example:
        >>> import noisewise as nw
        >>> nw.diagnostics.share_band(0.9, 200)
        (0.855, 0.94)
    """
    low, high = stats.binom.interval(sure, trials, level)
    return float(low / trials), float(high / trials)

"""An empirical lower bound on ε from noisy outputs: can the noise be caught lying?

Two neighbouring tables give exact vectors s0, s1. Many noisy outputs of each are drawn; the best
test between them is the log-likelihood ratio of the claimed noise. Half of the outputs choose the
threshold, the other half estimate the two error rates, whose Clopper-Pearson limits give a bound
that holds with 99 % confidence (Jagielski, Ullman and Oprea 2020).
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from noisewise.artifact import Noise
from noisewise.privacy.mechanisms import Calibrated

CONFIDENCE = 0.99


def epsilon_lower_bound(
    mechanism: Calibrated, s0: np.ndarray, s1: np.ndarray, outputs: int, delta: float = 0.0
) -> float:
    """A 99 %-confidence lower bound on the ε of the mechanism at this δ."""
    ratios = [_ratios(mechanism, s, s0, s1, outputs // 2) for s in (s0, s1)]
    train, test = zip(*(np.array_split(r, 2) for r in ratios), strict=True)
    # Both directions of the pair, at a threshold chosen on the training half.
    best = 0.0
    for sign in (1, -1):
        null, alternative = (train[0], train[1]) if sign == 1 else (train[1], train[0])
        threshold = _best_threshold(sign * null, sign * alternative, delta)
        null, alternative = (test[0], test[1]) if sign == 1 else (test[1], test[0])
        best = max(best, _bound(sign * null > threshold, sign * alternative > threshold, delta))
    return best


def _ratios(
    mechanism: Calibrated, exact: np.ndarray, s0: np.ndarray, s1: np.ndarray, outputs: int
) -> np.ndarray:
    """log p(z | s1) - log p(z | s0) for many outputs z; noise is independent per component."""
    noisy = mechanism.draw(np.tile(exact, (outputs, 1)))
    return np.sum(_log(noisy - s1, mechanism.noise) - _log(noisy - s0, mechanism.noise), axis=1)


def _log(difference: np.ndarray, noise: Noise) -> np.ndarray:
    scaled = np.abs(difference) / noise.scale
    return -scaled if noise.mechanism == "laplace" else -(scaled**2) / 2


def _best_threshold(null: np.ndarray, alternative: np.ndarray, delta: float) -> float:
    grid = np.unique(np.quantile(alternative, np.linspace(0.01, 0.99, 99)))
    # Just below an atom too: Laplace ratios have point masses at both ends.
    grid = np.concatenate([grid, grid - 1e-9 * (1 + np.abs(grid))])
    bounds = [_bound(null > t, alternative > t, delta, divide=len(grid)) for t in grid]
    return float(grid[int(np.argmax(bounds))])


def _bound(null: np.ndarray, alternative: np.ndarray, delta: float, divide: int = 1) -> float:
    """log((p1 - δ)/p0) at the pessimistic ends of both intervals; two sides, two directions."""
    alpha = (1 - CONFIDENCE) / 4 / divide
    hits1, n1 = int(alternative.sum()), alternative.size
    hits0, n0 = int(null.sum()), null.size
    low = stats.beta.ppf(alpha, hits1, n1 - hits1 + 1) if hits1 else 0.0
    high = stats.beta.ppf(1 - alpha, hits0 + 1, n0 - hits0) if hits0 < n0 else 1.0
    return float(np.log(max(low - delta, 1e-300) / high))

"""Scores of an answer against a better one: divergences, hold-out scores, rankings.

Maximum mean discrepancy, for two sets of draws: the unbiased estimate of Gretton et al. (2012,
lemma 6) with a standard normal kernel,

    MMD² = 1/(m(m-1)) Σ_{i≠j} k(p_i, p_j) + k(q_i, q_j) - k(p_i, q_j) - k(p_j, q_i),

k(a, b) = exp(-|a - b|²/2). Near zero (and then of either sign) where the laws are the same.
"""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import logsumexp, rel_entr

SUM_TOLERANCE = 1e-8
"""How far probabilities may be from adding up to 1 (chosen)."""


def mmd2(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the squared maximum mean discrepancy of two sets of draws.

    Args:
        p: draws of one law, shape (…, draw, parameter).
        q: as many draws of the other.

    Returns:
        One number per leading entry; near zero where the laws are the same.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> p, q = rng.normal(size=(2, 100, 1))
        >>> bool(nw.diagnostics.mmd2(p, q) < 0.1 < nw.diagnostics.mmd2(p, q + 2))
        True
    """
    p, q = np.asarray(p, float), np.asarray(q, float)
    if p.shape != q.shape or p.ndim < 2 or p.shape[-2] < 2:
        raise ValueError(
            f"p, q: must both be (…, draw, parameter) of one shape, not {p.shape} and {q.shape}"
        )
    lead = p.shape[:-2]
    # One pair after the other: a kernel matrix of 2000 draws is 32 MB.
    pairs = zip(p.reshape(-1, *p.shape[-2:]), q.reshape(-1, *q.shape[-2:]), strict=True)
    return np.array([_one_mmd2(*pair) for pair in pairs]).reshape(lead)


def _one_mmd2(p: np.ndarray, q: np.ndarray) -> float:
    m = p.shape[0]
    apart = (
        _normal_kernel(p, p) + _normal_kernel(q, q) - _normal_kernel(p, q) - _normal_kernel(q, p)
    )
    return float((apart.sum() - np.trace(apart)) / (m * (m - 1)))


def _normal_kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None] - 2 * a @ b.T
    return np.asarray(np.exp(-np.maximum(squares, 0) / 2))


def kl(p: np.ndarray, q: np.ndarray) -> float:
    """Return KL(p‖q) = Σ p log(p/q) in nats; infinite where q rules out what p allows.

    Args:
        p: table of probabilities.
        q: another of the same shape.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> round(nw.diagnostics.kl(np.array([0.5, 0.5]), np.array([0.25, 0.75])), 3)
        0.144
    """
    p, q = np.asarray(p, float), np.asarray(q, float)
    for name, table in (("p", p), ("q", q)):
        if (table < 0).any() or abs(table.sum() - 1) > SUM_TOLERANCE:
            raise ValueError(f"{name}: must be probabilities that add up to 1")
    if p.shape != q.shape:
        raise ValueError(f"p, q: must have one shape, not {p.shape} and {q.shape}")
    return float(rel_entr(p, q).sum())


def log_predictive(log_density: np.ndarray) -> float:
    """Return the mean over held-out records of log (1/K) Σ_k p(y_i | draw k).

    Args:
        log_density: log p(y_i | draw k), shape (draw, record).

    Example:
        >>> import noisewise as nw, numpy as np
        >>> nw.diagnostics.log_predictive(np.zeros((10, 3)))
        0.0
    """
    log_density = np.asarray(log_density, float)
    if log_density.ndim != 2 or not log_density.size:
        raise ValueError(f"log_density: must be (draw, record), not {log_density.shape}")
    each = logsumexp(log_density, axis=0) - np.log(len(log_density))
    return float(np.mean(each))


def mean_absolute_error(estimate: np.ndarray, target: np.ndarray) -> float:
    """Return the mean distance of estimates from what they should be.

    Args:
        estimate: numbers of any shape.
        target: what they should be, of the same shape.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> nw.diagnostics.mean_absolute_error(np.array([1.0, 2.0]), np.array([1.5, 2.5]))
        0.5
    """
    estimate, target = np.asarray(estimate, float), np.asarray(target, float)
    if estimate.shape != target.shape or not estimate.size:
        raise ValueError(
            f"estimate, target: must have one shape, not {estimate.shape} and {target.shape}"
        )
    return float(np.abs(estimate - target).mean())


def deciles(values: np.ndarray, classes: int = 10) -> np.ndarray:
    """Return 0 for the lowest tenth of the values, …, 9 for the highest; equally many of each."""
    values = np.asarray(values, float)
    if values.ndim != 1 or len(values) < classes:
        raise ValueError(f"values: must be one row of at least {classes}, not {values.shape}")
    order = stats.rankdata(values, method="ordinal") - 1
    return np.asarray(order * classes // len(values)).astype(int)


def decile_confusion(estimate: np.ndarray, target: np.ndarray, classes: int = 10) -> np.ndarray:
    """Return counts (decile by target, decile by estimate).

    Args:
        estimate: values to be ranked, one row.
        target: what they should be.
        classes: how many, 10 for deciles.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> confusion = nw.diagnostics.decile_confusion(np.arange(20), np.arange(20))
        >>> confusion.diagonal().tolist()
        [2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    """
    if np.shape(estimate) != np.shape(target):
        raise ValueError(
            f"estimate, target: must have one shape, not {np.shape(estimate)}, {np.shape(target)}"
        )
    counts = np.zeros((classes, classes), int)
    np.add.at(counts, (deciles(target, classes), deciles(estimate, classes)), 1)
    return counts


def outer_deciles_kept(confusion: np.ndarray) -> tuple[float, float]:
    """Return the shares of the lowest and the highest class that stay in the outer two classes.

    Args:
        confusion: counts as ``decile_confusion`` returns them.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> confusion = nw.diagnostics.decile_confusion(np.arange(20), np.arange(20))
        >>> nw.diagnostics.outer_deciles_kept(confusion)
        (1.0, 1.0)
    """
    low, high = confusion[0], confusion[-1]
    return float(low[:2].sum() / low.sum()), float(high[-2:].sum() / high.sum())

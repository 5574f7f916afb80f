"""Predictions against records that were held out, or against a better informed estimate."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp


def log_predictive(log_density: np.ndarray) -> float:
    """Mean over held-out records of log (1/K) Σ_k p(y_i | draw k).

    Args:
        log_density: log p(y_i | draw k), shape (draw, record).
    """
    log_density = np.asarray(log_density, float)
    if log_density.ndim != 2 or not log_density.size:
        raise ValueError(f"log_density: must be (draw, record), not {log_density.shape}")
    each = logsumexp(log_density, axis=0) - np.log(len(log_density))
    return float(np.mean(each))


def mean_absolute_error(estimate: np.ndarray, target: np.ndarray) -> float:
    """Of estimates against what they should be, one of each."""
    estimate, target = np.asarray(estimate, float), np.asarray(target, float)
    if estimate.shape != target.shape or not estimate.size:
        raise ValueError(
            f"estimate, target: must have one shape, not {estimate.shape} and {target.shape}"
        )
    return float(np.abs(estimate - target).mean())

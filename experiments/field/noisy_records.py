"""Regression on noisy records, corrected for the noise, after G. Evans and G. King.

"Statistically valid inferences from differentially private data releases, with application to the
Facebook URLs dataset" (Political Analysis 31, 2023): every value of every record is released with
Gaussian noise of known variance s². W, the noisy covariates and a one, has E[WᵀW] = XᵀX + n s² J,
with J the identity but for the one, so

    θ = (WᵀW - n s² J)⁻¹ Wᵀỹ,   scores ψ_i = w_i (ỹ_i - w_iᵀθ) + s² J θ,

which have mean zero; their sandwich gives the standard errors (W. Fuller, Measurement error models,
1987; the paper's own are a model-based form of the same). Our re-implementation. One record may
move by 2 in every one of q columns, so s = 2 √q / μ under replace-one neighbours.
"""

from __future__ import annotations

import numpy as np

from experiments.field.answers import Answer, design_of, with_errors
from experiments.field.gaussian_privacy import mu_of


def noise_deviation(columns: int, epsilon: float, delta: float) -> float:
    """Return s for records of so many columns in [-1, 1]."""
    return float(2 * np.sqrt(columns) / mu_of(epsilon, delta))


def corrected(records: np.ndarray, deviation: float) -> Answer:
    """Return the corrected fit of records that already have noise of this deviation."""
    w, y = design_of(records), records[:, -1]
    shift = deviation**2 * np.diag(np.append(np.ones(w.shape[1] - 1), 0.0))
    inverse = np.linalg.inv(w.T @ w - len(w) * shift)
    theta = inverse @ (w.T @ y)
    scores = w * (y - w @ theta)[:, None] + shift @ theta
    covariance = inverse @ (scores.T @ scores) @ inverse
    return with_errors(theta, np.sqrt(np.diagonal(covariance)))


def noisy_records(
    rng: np.random.Generator, records: np.ndarray, epsilon: float, delta: float
) -> Answer:
    """Return what an analyst of noisy records finds."""
    deviation = noise_deviation(records.shape[1], epsilon, delta)
    return corrected(records + deviation * rng.standard_normal(records.shape), deviation)

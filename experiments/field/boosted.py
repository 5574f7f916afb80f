"""BoostedAdaSSP, our re-implementation: AdaSSP fitted again and again to clipped residuals.

S. Tang et al., "Improved differentially private regression via gradient boosting" (SaTML 2024).
Rows have norm at most 1. The noisy XᵀX and its ridge are made once; each of T rounds clips the
residuals at τ = 1, adds noise to Xᵀ residuals and solves. μ² of Gaussian privacy is shared in
thirds between the least eigenvalue, XᵀX and all rounds together; neighbours differ by one added or
removed row. Noise is NumPy's.
"""

from __future__ import annotations

import numpy as np

from experiments.factors.adassp import FAILURE
from experiments.field.gaussian_privacy import mu_of

ROUNDS = 100
"""T, the authors' default."""
CLIP = 1.0
"""τ, the same."""
LOWER_TAIL = 1.96
"""Deviations by which the least eigenvalue is taken lower, as in the authors' code."""


def boosted_adassp(
    rng: np.random.Generator,
    x: np.ndarray,
    y: np.ndarray,
    epsilon: float,
    delta: float,
    rounds: int = ROUNDS,
) -> np.ndarray:
    """Return the coefficients, one for every column of x.

    Args:
        rng: of the noise.
        x: rows (record, column); longer ones than 1 are shortened to it.
        y: responses.
        epsilon: of everything together.
        delta: likewise.
        rounds: T.
    """
    x = x / np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]
    d = x.shape[1]
    scale = np.sqrt(3) / mu_of(epsilon, delta)
    gram = x.T @ x
    upper = np.triu(rng.standard_normal((d, d)))
    noisy = gram + scale * (upper + np.triu(upper, 1).T)
    least = np.linalg.eigvalsh(gram)[0] + scale * rng.standard_normal()
    least = max(0.0, least - LOWER_TAIL * scale)
    ridge = max(0.0, scale * np.sqrt(d * np.log(2 * d**2 / FAILURE)) - least)
    solver = np.linalg.inv(noisy + ridge * np.eye(d))
    theta = np.zeros(d)
    for _ in range(rounds):
        residuals = np.clip(y - x @ theta, -CLIP, CLIP)
        response = x.T @ residuals + scale * np.sqrt(rounds) * CLIP * rng.standard_normal(d)
        theta = theta + solver @ response
    return theta

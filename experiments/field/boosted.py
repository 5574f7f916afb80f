"""BoostedAdaSSP, our re-implementation: AdaSSP fitted again and again to clipped residuals.

S. Tang et al., "Improved differentially private regression via gradient boosting" (SaTML 2024).
Rows have norm at most 1. The noisy XᵀX and its ridge are made once; each of T rounds clips the
residuals at τ = 1, adds noise to Xᵀ residuals and solves. As in the authors' code, all T + 2
releases (the least eigenvalue, XᵀX, every round) have noise of one deviation √(T + 2)/μ, with μ of
Gaussian privacy, and the ridge is 1.96 √d of it, less what the least eigenvalue is sure to have.
Neighbours differ by one added or removed row. Noise is NumPy's.
"""

from __future__ import annotations

import numpy as np

from experiments.field.gaussian_privacy import mu_of

ROUNDS = 100
"""T, the authors' default."""
CLIP = 1.0
"""τ, the same."""
TAIL = 1.96
"""Deviations by which the least eigenvalue is taken lower and the ridge higher, the same."""


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
    scale = np.sqrt(rounds + 2) / mu_of(epsilon, delta)
    gram = x.T @ x
    upper = np.triu(rng.standard_normal((d, d)))
    noisy = gram + scale * (upper + np.triu(upper, 1).T)
    least = np.linalg.eigvalsh(gram)[0] + scale * rng.standard_normal()
    ridge = max(0.0, TAIL * np.sqrt(d) * scale - max(0.0, least - TAIL * scale))
    solver = np.linalg.inv(noisy + ridge * np.eye(d))
    theta = np.zeros(d)
    for _ in range(rounds):
        residuals = np.clip(y - x @ theta, -CLIP, CLIP)
        response = x.T @ residuals + scale * CLIP * rng.standard_normal(d)
        theta = theta + solver @ response
    return theta

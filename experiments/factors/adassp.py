"""AdaSSP: ridge regression from noisy sufficient statistics, its ridge chosen privately.

Y.-X. Wang, Revisiting differentially private linear regression: optimal and adaptive prediction &
estimation in unbounded domain, UAI 2018, algorithm 2. With rows ‖x‖ ≤ X, responses |y| ≤ Y, d
columns and L = log(6/δ), a third of ε (and of δ) each pays for

    λ̃ = max(0, λ_min(XᵀX) + (√L Z − L) X²/(ε/3)),       λ_min known up to its lower tail,
    XᵀX + √L X²/(ε/3) Z  (symmetric),   Xᵀy + √L X Y/(ε/3) Z,

and θ = (noisy XᵀX + λ)⁻¹ noisy Xᵀy with λ = max(0, √(d L log(2d²/ρ)) X²/(ε/3) − λ̃), the size that
the noise in XᵀX has with probability 1 − ρ. Neighbours differ by one added or removed row.
Noise is NumPy's: no one's data are behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FAILURE = 0.05
"""ρ, the probability with which the ridge is too small, as in the paper's experiments."""


@dataclass(frozen=True, eq=False)
class NoiseScales:
    """Deviations of the noise, the shift of λ̃ below λ_min, and the ridge before λ̃ is taken off."""

    eigenvalue: float
    shift: float
    products: float
    responses: float
    ridge: float


def noise_scales(
    epsilon: float, delta: float, columns: int, row_norm: float, response: float
) -> NoiseScales:
    """Return the scales of algorithm 2.

    Args:
        epsilon: of all three releases together.
        delta: likewise.
        columns: d.
        row_norm: public bound on the norm of a row of X.
        response: public bound on |y|.
    """
    tail, third = np.log(6 / delta), epsilon / 3
    one = row_norm**2 / third
    return NoiseScales(
        eigenvalue=float(np.sqrt(tail) * one),
        shift=float(tail * one),
        products=float(np.sqrt(tail) * one),
        responses=float(np.sqrt(tail) * row_norm * response / third),
        ridge=float(np.sqrt(columns * tail * np.log(2 * columns**2 / FAILURE)) * one),
    )


def adassp(
    rng: np.random.Generator,
    x: np.ndarray,
    y: np.ndarray,
    scales: NoiseScales,
) -> np.ndarray:
    """Return the coefficients, one for every column of x.

    Args:
        rng: of the noise.
        x: rows within the bound on their norm (record, column).
        y: responses within theirs.
        scales: of ``noise_scales``.
    """
    d = x.shape[1]
    gram = x.T @ x
    least = np.linalg.eigvalsh(gram)[0]
    noisy_least = max(0.0, least + scales.eigenvalue * rng.standard_normal() - scales.shift)
    ridge = max(0.0, scales.ridge - noisy_least)
    upper = np.triu(rng.standard_normal((d, d)))
    symmetric = upper + np.triu(upper, 1).T
    noisy_gram = gram + scales.products * symmetric
    noisy_responses = x.T @ y + scales.responses * rng.standard_normal(d)
    return np.linalg.solve(noisy_gram + ridge * np.eye(d), noisy_responses)

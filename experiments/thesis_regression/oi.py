"""The method of Opportunity Insights (Chetty & Friedman 2019): a baseline, NOT private (E7).

Each tract's least-squares prediction at pir = 0.25 is released with Laplace noise. Its sensitivity
is read from the data: in every tract, the most that one more person at a corner of [0, 1]² would
move the prediction; the largest of size × sensitivity over all tracts then serves as χ, and a tract
of n people gets noise of scale χ/(n ε). As χ depends on the data, no ε is guaranteed.
"""

from __future__ import annotations

import numpy as np

from experiments.thesis_regression.tracts import AT, Tracts


def predictions(sums: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Least squares at ``AT`` from Σ x², xy, y², x, y."""
    xx, xy, _, x, y = sums.T
    slope = (xy - x * y / n) / (xx - x**2 / n)
    return y / n + slope * (AT - x / n)


def released(
    rng: np.random.Generator, tracts: Tracts, sums: np.ndarray, epsilon: float
) -> np.ndarray:
    """One noisy prediction per tract."""
    n = tracts.sizes.astype(float)
    plain = predictions(sums, n)
    moved = [
        np.abs(predictions(sums + np.array([a * a, a * b, b * b, a, b]), n + 1) - plain)
        for a in (0.0, 1.0)
        for b in (0.0, 1.0)
    ]
    chi = float((n * np.max(moved, axis=0)).max())
    return plain + rng.laplace(0, chi / (n * epsilon))

"""Noise like a release's, for simulations only: no one's data are behind the sums it is added to.

Privacy noise itself comes from OpenDP, in the owner's half, and nowhere else.
"""

from __future__ import annotations

import numpy as np


def noise(
    rng: np.random.Generator, scale: float, mechanism: str, shape: tuple[int, ...], *, whole: bool
) -> np.ndarray:
    """Laplace or normal; on whole numbers discrete Laplace, or the normal rounded."""
    if mechanism == "laplace":
        return discrete_laplace(rng, scale, shape) if whole else rng.laplace(0, scale, shape)
    drawn = rng.normal(0, scale, shape)
    return np.rint(drawn) if whole else drawn


def discrete_laplace(rng: np.random.Generator, scale: float, shape: tuple[int, ...]) -> np.ndarray:
    """P(k) ∝ exp(-|k|/scale): the difference of two geometric variates."""
    p = -np.expm1(-1 / scale)
    return (rng.geometric(p, shape) - rng.geometric(p, shape)).astype(float)

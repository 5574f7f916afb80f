"""The density of normal plus Laplace: sampling noise and privacy noise of one count together.

    x = s ζ + b (E₁ - E₂),   ζ ~ N(0, 1),  E ~ Exp(1)
    log p(x) = s²/(2b²) - log 2b + log[ e^{-x/b} Φ(x/s - s/b) + e^{x/b} Φ(-x/s - s/b) ]

W. J. Reed, "The normal-Laplace distribution and its relatives" (2006). Both terms are kept in logs,
so neither tail overflows.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from scipy.special import log_ndtr as numpy_log_ndtr


def log_density(x: jax.Array, variance: jax.Array, scale: jax.Array) -> jax.Array:
    """Return log p(x) in JAX; ``variance`` of the normal part, ``scale`` b of the Laplace part."""
    s = jnp.sqrt(variance)
    left = log_ndtr(x / s - s / scale) - x / scale
    right = log_ndtr(-x / s - s / scale) + x / scale
    return variance / (2 * scale**2) - jnp.log(2 * scale) + jnp.logaddexp(left, right)


def log_density_up_to_scale(x: np.ndarray, variance: np.ndarray, scale: float) -> np.ndarray:
    """Return log p(x) + log 2b in NumPy: all that depends on x and the variance."""
    s = np.sqrt(variance)
    left = -x / scale + numpy_log_ndtr((x - variance / scale) / s)
    right = x / scale + numpy_log_ndtr((-x - variance / scale) / s)
    return np.asarray(variance / (2 * scale**2) + np.logaddexp(left, right))

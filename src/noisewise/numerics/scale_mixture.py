"""Laplace noise as a mixture of normals, and the inverse Gaussian that updates the mixture.

l ~ Laplace(0, b) is l | ω² ~ N(0, ω²) with ω² ~ Exp(mean 2b²); given l, 1/ω² is inverse Gaussian
with mean 1/(b|l|) and shape 1/b² (T. Park, G. Casella, "The Bayesian Lasso", JASA 103, 2008).

The sampler is that of J. Michael, W. Schucany, R. Haas, The American Statistician 30 (1976). Its
printed root m + m²y/2v - (m/2v)√(4mvy + m²y²) cancels where m is large, that is where l ≈ 0. With
c = 1/m and h = y/2v the same root is 1/(c + h + √(h(h + 2c))): positive terms only, for any c ≥ 0.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def inverse_gaussian_reciprocal(
    white: jax.Array, uniform: jax.Array, inverse_mean: jax.Array, shape: jax.Array
) -> jax.Array:
    """Return 1/X of X ~ InverseGaussian(mean, shape), from a standard normal and a uniform.

    Density √(shape/2πx³) exp(-shape (x - mean)²/(2 mean² x)); ``inverse_mean`` may be zero.
    """
    half = white**2 / (2 * shape)
    first = inverse_mean + half + jnp.sqrt(half * (half + 2 * inverse_mean))
    # The other root is mean²/x; the first is taken with probability mean/(mean + x).
    return jnp.where(uniform * (first + inverse_mean) <= first, first, inverse_mean**2 / first)


def laplace_variances(
    white: jax.Array, uniform: jax.Array, residual: jax.Array, scale: jax.Array
) -> jax.Array:
    """Return ω² given the noise ``residual`` of that ``scale`` b, from normals and uniforms.

    Line 6 of Algorithm 1 in G. Bernstein, D. Sheldon, "Differentially Private Bayesian Linear
    Regression" (NeurIPS 2019).
    """
    return inverse_gaussian_reciprocal(white, uniform, scale * jnp.abs(residual), 1 / scale**2)

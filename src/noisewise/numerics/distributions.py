"""Distributions that several samplers share: gamma, Wishart, inverse Gaussian, normal-Laplace.

*Gamma*, a whole batch at once. G. Marsaglia, W. W. Tsang, "A simple method for generating gamma
variables", ACM TOMS 26 (2000): with d = a - 1/3, c = 1/√(9d), v = (1 + c·normal)³, accept d·v when
log u < ½ normal² + d - dv + d log v. JAX's own sampler loops over the elements one by one on a CPU;
here all try together (each try accepts ≥ 95 %), and those that failed try again until none is left.

*Wishart*. M. S. Bartlett, "On the theory of statistical regression" (1933): a lower-triangular B
with B_jj² ~ χ²(df - j), j = 0, 1, …, and B_ij ~ N(0, 1) for i > j, all independent, has
B Bᵀ ~ Wishart(df, I). With Ψ = P Pᵀ, F = P B⁻ᵀ then has F Fᵀ ~ InverseWishart(Ψ, df).

*Laplace as a mixture of normals*. l ~ Laplace(0, b) is l | ω² ~ N(0, ω²) with ω² ~ Exp(mean 2b²);
given l, 1/ω² is inverse Gaussian with mean 1/(b|l|) and shape 1/b² (T. Park, G. Casella, "The
Bayesian Lasso", JASA 103, 2008). Its sampler is that of J. Michael, W. Schucany, R. Haas, The
American Statistician 30 (1976), whose printed root m + m²y/2v - (m/2v)√(4mvy + m²y²) cancels where
m is large, that is where l ≈ 0. With c = 1/m and h = y/2v the same root is
1/(c + h + √(h(h + 2c))): positive terms only, for any c ≥ 0.

*Normal plus Laplace*, the sampling noise and the privacy noise of one count together:

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

import noisewise.numerics.jax_settings  # noqa: F401  # float64

_Attempts = tuple[jax.Array, jax.Array, jax.Array]
"""Values, which of them are accepted, and the next key."""

MIN_GATHERED = 2**14
"""From so many elements on, the few that failed are gathered and drawn again; fewer are all drawn
again (chosen)."""


def gamma(key: jax.Array, shape: jax.Array) -> jax.Array:
    """Draw Gamma(shape, 1) for every element; every shape must be at least 1."""
    first, rest = jax.random.split(key)
    if shape.size < MIN_GATHERED:
        return _until_accepted(first, shape)
    flat = shape.ravel()
    value, accepted = _attempt(first, flat)

    def some(state: _Attempts) -> _Attempts:
        value, done, key = state
        key, now = jax.random.split(key)
        # Room for more than should have failed; what is padding is dropped again.
        rows = jnp.nonzero(~done, size=flat.size // 8, fill_value=flat.size)[0]
        fresh, accepted = _attempt(now, flat.at[rows].get(mode="clip"))
        rows = jnp.where(accepted, rows, flat.size)
        return value.at[rows].set(fresh, mode="drop"), done.at[rows].set(True, mode="drop"), key

    value, _, _ = jax.lax.while_loop(lambda s: ~s[1].all(), some, (value, accepted, rest))
    return value.reshape(shape.shape)


def _attempt(key: jax.Array, shape: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Propose a value for every element, and say which proposals are accepted."""
    normal, uniform = jax.random.split(key)
    d = shape - 1 / 3
    white = jax.random.normal(normal, shape.shape)
    v = (1 + white / jnp.sqrt(9 * d)) ** 3
    log_v = jnp.log(jnp.where(v > 0, v, 1.0))
    ratio = 0.5 * white**2 + d * (1 - v + log_v)
    log_uniform = jnp.log(jax.random.uniform(uniform, shape.shape))
    return d * v, (v > 0) & (log_uniform < ratio)


def _until_accepted(key: jax.Array, shape: jax.Array) -> jax.Array:
    """Draw all elements again and again until each was accepted once; the first one counts."""

    def again(state: _Attempts) -> _Attempts:
        value, done, key = state
        key, now = jax.random.split(key)
        fresh, accepted = _attempt(now, shape)
        return jnp.where(accepted & ~done, fresh, value), done | accepted, key

    begin = jnp.zeros_like(shape), jnp.zeros(shape.shape, bool), key
    value: jax.Array = jax.lax.while_loop(lambda s: ~s[1].all(), again, begin)[0]
    return value


def bartlett_factor(half_squares: jax.Array, below: jax.Array) -> jax.Array:
    """Return B from variates that were drawn elsewhere.

    Args:
        half_squares: B_jj²/2, that is Gamma((df - j)/2, 1) for j = 0, 1, …
        below: standard normals left of the diagonal, row by row.
    """
    size = half_squares.shape[0]
    factor = jnp.diag(jnp.sqrt(2 * half_squares))
    if size == 1:
        return factor
    rows, columns = np.tril_indices(size, -1)
    return factor.at[rows, columns].set(below)


def draw_bartlett_factors(
    rng: np.random.Generator, df: np.ndarray, rows: int, rank: int
) -> np.ndarray:
    """Draw lower-trapezoidal B (…, rows, rank) with B Bᵀ ~ Wishart(df, I) of that rank.

    Args:
        rng: the analyst's own randomness.
        df: degrees of freedom (…), above rank - 1.
        rows: the size of the Wishart matrix.
        rank: of the matrix; less than ``rows`` where there are fewer records than columns.
    """
    factor = np.tril(rng.standard_normal((*df.shape, rows, rank)), -1)
    diagonal = np.arange(rank)
    squares = 2 * rng.standard_gamma((df[..., None] - diagonal) / 2)
    factor[..., diagonal, diagonal] = np.sqrt(squares)
    return factor


def draw_inverse_wishart_factors(
    rng: np.random.Generator, scale_factor: np.ndarray, df: np.ndarray
) -> np.ndarray:
    """Draw lower T (…, d, d) with T Tᵀ ~ InverseWishart(Ψ, df), given P with P Pᵀ = Ψ."""
    d = scale_factor.shape[-1]
    inverse = np.linalg.inv(draw_bartlett_factors(rng, df, d, d))
    root = scale_factor @ np.swapaxes(inverse, -1, -2)
    return np.linalg.cholesky(root @ np.swapaxes(root, -1, -2))


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


def normal_laplace_log_density(x: jax.Array, variance: jax.Array, scale: jax.Array) -> jax.Array:
    """Return log p(x) in JAX; ``variance`` of the normal part, ``scale`` b of the Laplace part."""
    s = jnp.sqrt(variance)
    left = log_ndtr(x / s - s / scale) - x / scale
    right = log_ndtr(-x / s - s / scale) + x / scale
    return variance / (2 * scale**2) - jnp.log(2 * scale) + jnp.logaddexp(left, right)


def noisy_normal_log_density(
    x: np.ndarray, variance: np.ndarray, scale: float, mechanism: str
) -> np.ndarray:
    """Return log p(x) in NumPy of a normal variable plus privacy noise, up to a constant.

    Args:
        x: where.
        variance: of the normal part.
        scale: of the noise.
        mechanism: ``"laplace"`` (then exactly log p(x) + log 2b) or ``"gaussian"``.
    """
    if mechanism == "gaussian":
        total = variance + scale**2
        return np.asarray(-(x**2) / (2 * total) - 0.5 * np.log(total))
    s = np.sqrt(variance)
    left = -x / scale + numpy_log_ndtr((x - variance / scale) / s)
    right = x / scale + numpy_log_ndtr((-x - variance / scale) / s)
    return np.asarray(variance / (2 * scale**2) + np.logaddexp(left, right))

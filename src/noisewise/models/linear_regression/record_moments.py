"""Mean μ_t and covariance Σ_t of one record's statistic t, from which Gibbs-SS draws s by the CLT.

G. Bernstein, D. Sheldon, "Differentially Private Bayesian Linear Regression" (NeurIPS 2019), eqs.
(2)-(3). With w = (x, y) of q columns and w̃ = (w, 1), t holds w̃_i w̃_j for i ≤ j, in the order of
``numerics.gram_packing``: products row by row, then the columns themselves.

*(x, y) jointly normal*, mean m, covariance C (errata E10; no automatic differentiation):

    Cov(w̃_i w̃_j, w̃_k w̃_l) =
        C_ik C_jl + C_il C_jk + m_i m_k C_jl + m_i m_l C_jk + m_j m_k C_il + m_j m_l C_ik.

*Only moments of x known*: with x̃ = (x, 1), η = E[x̃x̃ᵀ], ξ_ij,kl = Cov(x̃_i x̃_j, x̃_k x̃_l), every
column is w̃ = B x̃ + c e, e ~ N(0, 1) (B holds θ in y's row, c holds σ there), hence

    Cov(w̃_i w̃_j, w̃_k w̃_l) = Σ B_ia B_jb B_ke B_lf ξ_ab,ef + c_i c_k N_jl + c_i c_l N_jk
        + c_j c_k N_il + c_j c_l N_ik + 2 c_i c_j c_k c_l,      N = B η Bᵀ:

the paper's seven formulas in one, with Cov(x_i y, x_j y) = σ² η_ij + Σ_kl θ_k θ_l ξ_ik,jl (E9).

Either way t is linear in uncorrelated terms, so a draw of N(0, Σ_t) needs no factor of Σ_t.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.numerics.gram_packing import product_pairs


class RecordMoments(NamedTuple):
    """Mean μ_t and covariance Σ_t of one record's statistic."""

    mean: jax.Array
    covariance: jax.Array


class XMoments(NamedTuple):
    """Moments η and ξ of x (over the non-constant pairs of x̃), with a square root of each."""

    second: jax.Array
    second_root: jax.Array
    cross: jax.Array
    cross_root: jax.Array


def pairs(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices (i, j) into w̃ of each component of t; q stands for the constant."""
    rows, columns = product_pairs(q)
    return np.append(rows, np.arange(q)), np.append(columns, np.full(q, q))


def _extended(mean: jax.Array, covariance: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return mean and covariance of w̃: the constant has mean 1 and varies with nothing."""
    q = mean.shape[0]
    return jnp.append(mean, 1.0), jnp.zeros((q + 1, q + 1)).at[:q, :q].set(covariance)


def normal_moments(mean: jax.Array, covariance: jax.Array) -> RecordMoments:
    """Return μ_t and Σ_t for (x, y) ~ N(mean, covariance), by E10."""
    i, j = pairs(mean.shape[0])
    m, c = _extended(mean, covariance)
    c_ik, c_jl, c_il = c[i][:, i], c[j][:, j], c[i][:, j]
    mixed = jnp.outer(m[j], m[i]) * c_il
    value = (
        c_ik * c_jl
        + c_il * c_il.T
        + jnp.outer(m[i], m[i]) * c_jl
        + jnp.outer(m[j], m[j]) * c_ik
        + mixed
        + mixed.T
    )
    return RecordMoments(c[i, j] + m[i] * m[j], value)


def normal_deviate(white: jax.Array, mean: jax.Array, factor: jax.Array) -> jax.Array:
    """Return a draw of N(0, Σ_t), covariance = factor factorᵀ, from as many standard normals.

    With w = mean + F u, the terms u_i, u_i u_j (i < j) and u_i² - 1 are uncorrelated with variances
    1, 1 and 2, and t - μ_t = (F U Fᵀ + mean uᵀFᵀ + F u meanᵀ, F u), U their matrix.
    """
    q = mean.shape[0]
    rows, columns = product_pairs(q)
    half = (
        jnp.zeros((q, q)).at[rows, columns].set(white[q:] * np.where(rows == columns, 0.5**0.5, 1))
    )
    linear = factor @ white[:q]
    upper = factor @ half @ factor.T + jnp.outer(mean, linear)
    return jnp.append((upper + upper.T)[rows, columns], linear)


def _columns_of(theta: jax.Array) -> jax.Array:
    """Return B: the rows of x, then y = θᵀx̃, then the constant."""
    d = theta.shape[0] - 1
    unit = jnp.eye(d + 1)
    return jnp.concatenate([unit[:d], theta[None], unit[d:]])


def moments_given_x(x: XMoments, theta: jax.Array, variance: jax.Array) -> RecordMoments:
    """Return μ_t and Σ_t from moments of x alone, by E9; ``theta`` has the intercept last."""
    d = theta.shape[0] - 1
    q = d + 1
    i, j = pairs(q)
    a, b = product_pairs(q)
    a, b = a[:-1], b[:-1]  # the last pair is the constant's square, which does not vary
    full = _columns_of(theta)
    split = full[i][:, a] * full[j][:, b] + full[i][:, b] * full[j][:, a] * (a != b)
    second = full @ x.second @ full.T
    c_i, c_j = i == d, j == d
    once = np.outer(c_i, c_i) * second[j][:, j] + np.outer(c_j, c_j) * second[i][:, i]
    crossed = np.outer(c_i, c_j) * second[j][:, i]
    square = np.asarray(c_i & c_j, float)
    covariance = (
        split @ x.cross @ split.T
        + variance * (once + crossed + crossed.T)
        + 2 * variance**2 * np.outer(square, square)
    )
    return RecordMoments(second[i, j] + variance * square, covariance)


def deviate_given_x(
    white: jax.Array, x: XMoments, theta: jax.Array, variance: jax.Array
) -> jax.Array:
    """Return a draw of N(0, Σ_t) from standard normals, given moments of x alone.

    Deviations of x̃x̃ᵀ, of e x̃ and of e² - 1 are uncorrelated.
    """
    q = theta.shape[0]
    i, j = pairs(q)
    a, b = product_pairs(q)
    size = len(a) - 1
    full, sigma = _columns_of(theta), jnp.sqrt(variance)
    half = jnp.zeros((q, q)).at[a[:-1], b[:-1]].set(x.cross_root @ white[:size])
    half = half * np.where(np.eye(q), 0.5, 1.0)
    quadratic = full @ (half + half.T) @ full.T
    error = sigma * full @ (x.second_root @ white[size : size + q])
    at_y = np.eye(q + 1)[q - 1]
    product = jnp.outer(at_y, error) + 0.5 * variance * np.sqrt(2.0) * white[-1] * np.outer(
        at_y, at_y
    )
    deviation: jax.Array = quadratic + product + product.T
    return deviation[i, j]


def x_moments(fourth: np.ndarray) -> tuple[XMoments, np.ndarray]:
    """Return η and ξ from E[x̃⊗4] (group, d+1, d+1, d+1, d+1), and whether no x has such moments.

    In groups where no x has them, η and ξ are moved to the nearest positive semidefinite matrices:
    noisy moments need that.
    """
    q = fourth.shape[-1]
    second = fourth[..., q - 1, q - 1]
    a, b = (index[:-1] for index in product_pairs(q))
    mean = second[:, a, b]
    rows = fourth[:, a, b]
    cross = rows[:, :, a, b] - mean[:, :, None] * mean[:, None, :]
    second, second_root, second_invalid = _rooted(second)
    cross, cross_root, cross_invalid = _rooted(cross)
    arrays = (jnp.asarray(m) for m in (second, second_root, cross, cross_root))
    return XMoments(*arrays), second_invalid | cross_invalid


def _rooted(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the nearest positive semidefinite matrix, a root of it, and whether it is another."""
    values, vectors = np.linalg.eigh(matrix)
    clipped = np.maximum(values, 0.0)
    root = vectors * np.sqrt(clipped)[:, None, :]
    tolerance = 1e-9 * np.maximum(values[:, -1], 1e-300)
    return root @ np.swapaxes(root, 1, 2), root, values[:, 0] < -tolerance

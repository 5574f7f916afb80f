"""Bartlett's factor of a Wishart matrix, and draws of inverse-Wishart factors.

M. S. Bartlett, "On the theory of statistical regression" (1933): a lower-triangular B with

    B_jj² ~ χ²(df - j),  j = 0, 1, …,     B_ij ~ N(0, 1)  for i > j,     all independent,

has B Bᵀ ~ Wishart(df, I). With Ψ = P Pᵀ, F = P B⁻ᵀ then has F Fᵀ ~ InverseWishart(Ψ, df).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np


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

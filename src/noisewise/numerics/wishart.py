"""Exact draws of Wishart factors and of inverse-Wishart factors (Bartlett 1933)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from noisewise.numerics.small_matrices import cholesky, solve_lower


def bartlett(key: jax.Array, df: jax.Array, size: int) -> jax.Array:
    """Lower B with ``B Bᵀ ~ Wishart(df, I)``, df > size - 1."""
    normal, gamma = jax.random.split(key)
    below = jnp.tril(jax.random.normal(normal, (size, size)), -1)
    squares = 2 * jax.random.gamma(gamma, (df - jnp.arange(size)) / 2)
    return below + jnp.diag(jnp.sqrt(squares))


def inverse_wishart_factor(key: jax.Array, scale: jax.Array, df: jax.Array) -> jax.Array:
    """Lower T with ``T Tᵀ ~ InverseWishart(scale, df)``."""
    size = scale.shape[-1]
    factor = bartlett(key, df, size)
    inverse = jax.vmap(lambda column: solve_lower(factor, column), in_axes=1, out_axes=1)(
        jnp.eye(size)
    )
    # scale = P Pᵀ: the inverse of P⁻ᵀ B Bᵀ P⁻¹ is P B⁻ᵀ B⁻¹ Pᵀ.
    root = cholesky(scale) @ inverse.T
    made: jax.Array = cholesky(root @ root.T)
    return made

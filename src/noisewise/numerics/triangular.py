"""Cholesky factors and triangular solves for one small matrix, made to be vmapped.

Batched LAPACK calls are slow under vmap on a CPU, so up to ``UNROLLED`` rows the loops are written
out and become plain vector arithmetic over the batch; above that, LAPACK wins and compiles faster.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

UNROLLED = 6
_TINY = 1e-300


def cholesky(matrix: jax.Array) -> jax.Array:
    """Lower factor of a symmetric positive definite matrix."""
    size = matrix.shape[-1]
    if size > UNROLLED:
        return jnp.asarray(jnp.linalg.cholesky(matrix))
    rows: list[list[jax.Array]] = []
    for i in range(size):
        row: list[jax.Array] = []
        for j in range(i):
            dot = sum((row[k] * rows[j][k] for k in range(j)), jnp.zeros(()))
            row.append((matrix[i, j] - dot) / rows[j][j])
        square = matrix[i, i] - sum((r * r for r in row), jnp.zeros(()))
        row.append(jnp.sqrt(jnp.maximum(square, _TINY)))
        rows.append(row)
    zero = jnp.zeros_like(matrix[0, 0])
    return jnp.stack([jnp.stack(row + [zero] * (size - len(row))) for row in rows])


def solve_lower(factor: jax.Array, right: jax.Array) -> jax.Array:
    """x with ``factor @ x = right`` for a lower-triangular factor and a vector."""
    size = factor.shape[-1]
    if size > UNROLLED:
        return jax.scipy.linalg.solve_triangular(factor, right, lower=True)
    x: list[jax.Array] = []
    for i in range(size):
        dot = sum((factor[i, k] * x[k] for k in range(i)), jnp.zeros(()))
        x.append((right[i] - dot) / factor[i, i])
    return jnp.stack(x)


def solve_upper(factor: jax.Array, right: jax.Array) -> jax.Array:
    """x with ``factor.T @ x = right`` for a lower-triangular factor and a vector."""
    size = factor.shape[-1]
    if size > UNROLLED:
        return jax.scipy.linalg.solve_triangular(factor, right, lower=True, trans=1)
    x: list[jax.Array] = [jnp.zeros(())] * size
    for i in reversed(range(size)):
        dot = sum((factor[k, i] * x[k] for k in range(i + 1, size)), jnp.zeros(()))
        x[i] = (right[i] - dot) / factor[i, i]
    return jnp.stack(x)


def log_determinant(factor: jax.Array) -> jax.Array:
    """log |L Lᵀ|."""
    return 2 * jnp.sum(jnp.log(jnp.diagonal(factor)))

"""Products and Cholesky factors of one matrix per group, the group axis last.

This is the layout of the samplers' metrics: every entry is one long vector over the groups.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

MAX_UNROLLED = 9
"""Up to this many coordinates, products are written out, which XLA fuses into one loop
(chosen)."""


def times(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    """Return matrices (d, e, group) times vectors (e, chain, group)."""
    if len(vector) <= MAX_UNROLLED:
        return sum((matrix[:, e, None] * vector[e] for e in range(len(vector))), jnp.zeros(()))
    if vector.shape[2] == 1:
        return (matrix[..., 0] @ vector[..., 0])[..., None]
    return jnp.einsum("deg,ecg->dcg", matrix, vector)


def transposed_times(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    """Return transposed matrices (e, d, group) times vectors (e, chain, group)."""
    if len(vector) <= MAX_UNROLLED:
        return sum((matrix[e, :, None] * vector[e] for e in range(len(vector))), jnp.zeros(()))
    if vector.shape[2] == 1:
        return (matrix[..., 0].T @ vector[..., 0])[..., None]
    return jnp.einsum("edg,ecg->dcg", matrix, vector)


def squared(matrix: jax.Array) -> jax.Array:
    """Return matrices (d, d, group) times their own transposes."""
    leading = jnp.moveaxis(matrix, -1, 0)
    return jnp.moveaxis(leading @ jnp.swapaxes(leading, 1, 2), 0, -1)


def factors(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the Cholesky factors of matrices (d, d, group), and the inverses of the factors."""
    leading = jnp.moveaxis(matrix, -1, 0)
    # On a CPU one matrix after the other: jaxlib's batched LAPACK waits for other threads of the
    # pool it runs on, and two programs at once that do so wait for each other for ever.
    both = jax.lax.map(_factor, leading) if jax.default_backend() == "cpu" else _factor(leading)
    factor, inverse = both
    return jnp.moveaxis(factor, 0, -1), jnp.moveaxis(inverse, 0, -1)


def _factor(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    factor = jnp.linalg.cholesky(matrix)
    eye = jnp.broadcast_to(jnp.eye(matrix.shape[-1]), matrix.shape)
    return factor, jax.scipy.linalg.solve_triangular(factor, eye, lower=True)

"""Projection to the nearest symmetric matrix whose eigenvalues are not below a floor.

Nearest in the Frobenius norm: eigenvalues below the floor are raised to it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def project(matrix: jax.Array, floor: float) -> tuple[jax.Array, jax.Array]:
    """Return the projected matrix, and whether it was projected; a valid one is left as it is."""
    clipped, least = (_project_two_by_two if matrix.shape[-1] == 2 else _project)(matrix, floor)
    invalid = least < floor
    return jnp.where(invalid, clipped, matrix), invalid


def _project_two_by_two(matrix: jax.Array, floor: float) -> tuple[jax.Array, jax.Array]:
    """Return the clipped matrix and the least eigenvalue, from closed forms.

    Batched LAPACK calls on 2 × 2 matrices cost more than a whole Gibbs sweep.
    """
    a, b, c = matrix[0, 0], matrix[0, 1], matrix[1, 1]
    middle, half = (a + c) / 2, (a - c) / 2
    radius = jnp.sqrt(half**2 + b**2)
    # The projector onto the leading eigenvector is (I + turn)/2, onto the other (I - turn)/2.
    scale = 1 / jnp.maximum(radius, 1e-300)
    turn = jnp.stack([jnp.stack([half, b]), jnp.stack([b, -half])]) * scale
    high, low = jnp.maximum(middle + radius, floor), jnp.maximum(middle - radius, floor)
    return (high + low) / 2 * jnp.eye(2) + (high - low) / 2 * turn, middle - radius


def _project(matrix: jax.Array, floor: float) -> tuple[jax.Array, jax.Array]:
    """Return the clipped matrix and the least eigenvalue, from its eigenvectors."""
    values, vectors = jnp.linalg.eigh(matrix)
    return (vectors * jnp.maximum(values, floor)) @ vectors.T, values[0]

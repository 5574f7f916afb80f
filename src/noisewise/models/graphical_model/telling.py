"""Matrices over all cells: how tables move with potentials, and what one cell tells.

Their size is the square of the number of cells, so they are for models of a few thousand.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from noisewise.models.graphical_model.oracle import Oracle
from noisewise.numerics.normal_laplace import log_density

LARGEST = 5000
"""Cells: a matrix of 200 MB."""
BATCH = 32
GRID = 401


def weights(mechanism: str, g: jax.Array, scale: jax.Array) -> jax.Array:
    """What each cell tells about its own mean; ``g`` is the covariance of the exact tables."""
    sampling = jnp.maximum(jnp.diag(g), 0.0)
    if mechanism == "laplace":
        return information(sampling, scale)
    weight: jax.Array = 1 / (sampling + scale**2)
    return weight


def covariance(oracle: Oracle, theta: jax.Array) -> jax.Array:
    """∇²A(θ): the covariance of one record's cell indicators."""

    def column(direction: jax.Array) -> jax.Array:
        change: jax.Array = jax.jvp(oracle.marginals, (theta,), (direction,))[1]
        return change

    found: jax.Array = jax.lax.map(column, jnp.eye(len(theta)), batch_size=BATCH)
    symmetric: jax.Array = (found + found.T) / 2
    return symmetric


def information(variance: jax.Array, scale: jax.Array) -> jax.Array:
    """Of one observation about its mean, where normal noise and Laplace noise add up.

    1/b² without normal noise, 1/variance without Laplace noise; between, a sum over a grid.
    """
    ratio = jnp.maximum(variance / scale**2, 1e-12)

    def one(r: jax.Array) -> jax.Array:
        # Cubed, the grid is fine around zero, where little normal noise leaves a kink.
        u = jnp.linspace(-1, 1, GRID)
        density = jax.value_and_grad(lambda x: log_density(x, r, jnp.ones(())))
        level, slope = jax.vmap(density)(u**3 * (30 + 8 * jnp.sqrt(r)))
        p = jnp.exp(level) * u**2
        mean: jax.Array = (slope**2 * p).sum() / p.sum()
        return mean

    found = jax.lax.map(one, ratio, batch_size=BATCH)
    weight: jax.Array = found / scale**2
    return weight

"""Method ``naive``: the conjugate update on the noisy statistics as if they were exact.

For comparison only: its intervals ignore the noise. A noisy scatter matrix need not be one; it is
then projected to the nearest positive definite matrix, and the share of groups where that happened
is reported (errata E18).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference.posterior import Posterior
from noisewise.models.linear_regression import collapsed
from noisewise.models.linear_regression.posterior import posterior
from noisewise.models.linear_regression.coordinates import Point
from noisewise.models.linear_regression.problem import Problem

FLOOR = 1e-6
"""Least eigenvalue of the projected scatter over n, in box units."""


def run(problem: Problem, seed: int, chains: int, draws: int, progress: object = None) -> Posterior:
    """Independent draws; nothing to converge."""
    mean, scatter = _noisy_moments(problem)
    values, vectors = np.linalg.eigh(scatter)
    clipped = np.maximum(values, FLOOR)
    projected = (vectors * clipped[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    factor = np.linalg.cholesky(projected)
    keys = jax.random.split(jax.random.key(seed), (len(problem.n), chains, draws))
    drawn = _drawn(keys, mean, factor, problem.n, problem.box_prior)
    share = float((values[:, 0] < FLOOR).mean())
    return posterior(problem, np.asarray(drawn), "naive", {"projected_share": share})


@jax.jit
def _drawn(
    keys: jax.Array, mean: jax.Array, factor: jax.Array, n: jax.Array, prior: collapsed.Prior
) -> jax.Array:
    """(group, chain, draw, θ… σ²); compiled once for all problems of a shape."""

    def one(key: jax.Array, mean: jax.Array, factor: jax.Array, n: jax.Array) -> jax.Array:
        at = Point(mean, factor, jnp.log(jnp.diagonal(factor)), n)
        return collapsed.draw_parameters(key, at, prior, ())

    same = (0, None, None, None)
    return jax.vmap(jax.vmap(jax.vmap(one, in_axes=same), in_axes=same))(keys, mean, factor, n)


def _noisy_moments(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Mean and scatter/n that the noisy sums would be, were they exact."""
    q = len(problem.x) + 1
    pairs = q * (q + 1) // 2
    rows, columns = np.triu_indices(q)
    gram = np.zeros((len(problem.n), q, q))
    gram[:, rows, columns] = gram[:, columns, rows] = problem.z[:, :pairs]
    mean = problem.z[:, pairs : pairs + q] / problem.n[:, None]
    scatter = gram / problem.n[:, None, None] - mean[:, :, None] * mean[:, None, :]
    return mean, scatter

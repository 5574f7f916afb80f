"""Method ``naive``: the conjugate update on the noisy statistics as if they were exact.

For comparison only: its intervals ignore the noise. A noisy scatter matrix need not be one; it is
then projected to the nearest positive definite matrix, and the share of groups where that happened
is reported (errata E18).
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference.results import Posterior
from noisewise.inference.summaries import GroupSummaries, group_summaries
from noisewise.models.base import Progress
from noisewise.models.linear_regression import collapsed, posterior_draws
from noisewise.models.linear_regression.censoring import unclamped_parameters
from noisewise.models.linear_regression.coordinates import Point
from noisewise.models.linear_regression.posterior_draws import posterior_from_box
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.numerics.compilation import compiled
from noisewise.numerics.gram_packing import unpack

LEAST_EIGENVALUE = 1e-6
"""Floor of the eigenvalues of a projected scatter over n, in box units (chosen)."""


def run(
    problem: RegressionProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Return independent draws of the conjugate posterior given the noisy sums."""
    mean, scatter = _noisy_moments(problem)
    values, vectors = np.linalg.eigh(scatter)
    clipped = np.maximum(values, LEAST_EIGENVALUE)
    projected = (vectors * clipped[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    factor = np.linalg.cholesky(projected)
    keys = jax.random.split(jax.random.key(seed), (len(problem.n), chains, draws))
    drawn = np.asarray(_drawn(keys, mean, factor, problem.n, problem.box_prior))
    if problem.cuts is not None:
        d, batch = len(problem.x), drawn.shape[:3]
        x_mean = np.broadcast_to(mean[:, None, None, :d], (*batch, d))
        law = np.broadcast_to(projected[:, None, None, :d, :d], (*batch, d, d))
        drawn, _, _ = unclamped_parameters(drawn, x_mean, law, problem.cuts)
    share = float((values[:, 0] < LEAST_EIGENVALUE).mean())
    return posterior_from_box(problem, drawn, "naive", {"projected_share": share})


def summarise(
    problem: RegressionProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> GroupSummaries:
    """Return the numbers of the draws that ``run`` gives."""
    return group_summaries(run(problem, seed, chains, draws, progress))


def outline(problem: RegressionProblem) -> Posterior:
    """Return the posterior without its draws, as far as words are made of it."""
    return posterior_draws.outline(replace(problem, scale_free=False), "naive", {})


@compiled
def _drawn(
    keys: jax.Array, mean: jax.Array, factor: jax.Array, n: jax.Array, prior: collapsed.BoxPrior
) -> jax.Array:
    """Draw (group, chain, draw, θ… σ²); compiled once for all problems of a shape."""

    def one(key: jax.Array, mean: jax.Array, factor: jax.Array, n: jax.Array) -> jax.Array:
        at = Point(mean, factor, jnp.log(jnp.diagonal(factor)), n)
        return collapsed.draw_parameters(key, at, prior, ())

    same = (0, None, None, None)
    return jax.vmap(jax.vmap(jax.vmap(one, in_axes=same), in_axes=same))(keys, mean, factor, n)


def _noisy_moments(problem: RegressionProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and scatter/n as if the noisy sums were exact."""
    gram, totals = unpack(problem.z, len(problem.x) + 1)
    mean = totals / problem.n[:, None]
    scatter = gram / problem.n[:, None, None] - mean[:, :, None] * mean[:, None, :]
    return mean, scatter

"""Method ``naive``: the noisy sums taken as if they were exact, with classical intervals.

For comparison only: its intervals ignore the noise, and covariates are taken as normal. The
moments m of the response solve m(a, b) = released; draws are normal with the sandwich covariance
of the estimate.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference.results import Posterior
from noisewise.models.base import Progress
from noisewise.models.generalized_linear.clt_with_factors import atoms_of_noisy_sums, nodes_of
from noisewise.models.generalized_linear.links import LINKS, Link
from noisewise.models.generalized_linear.posterior import posterior_of
from noisewise.models.generalized_linear.posterior_with_factors import posterior_with_factors
from noisewise.models.generalized_linear.problem import GeneralizedProblem
from noisewise.models.generalized_linear.problem_with_factors import FactorsProblem, subset
from noisewise.models.generalized_linear.response_moments import (
    NodeArrays,
    SumMoments,
    node_sums,
    normal_sums,
)
from noisewise.models.generalized_linear.starting_values import (
    noisy_moments,
    raw_moments,
)
from noisewise.numerics.compilation import compiled
from noisewise.numerics.convergence import diagnose_groups

STEPS = 60
"""Steps of the damped Gauss-Newton iteration (chosen)."""
SOLVED = 1e-2
"""Largest difference of moments at an estimate, relative to the mean response (chosen)."""
RIDGE = 1e-3
"""Weight of the prior's precision, so that estimates stay finite (chosen)."""


def run(
    problem: GeneralizedProblem,
    seed: int,
    chains: int,
    draws: int,
    progress: Progress | None = None,
) -> Posterior:
    """Return independent draws of the normal law about the estimate."""
    d, groups = len(problem.x), len(problem.n)
    mean, covariance = raw_moments(problem)
    repaired = noisy_moments(problem)
    for g in range(groups):  # A noisy covariance need not be one.
        if np.linalg.eigvalsh(covariance[g])[0] <= 0:
            mean[g], covariance[g] = repaired[0][g], repaired[1][g]
    factor = np.linalg.cholesky(covariance)
    rng, unsolved = np.random.default_rng(seed), 0
    half, centre = problem.units.half, problem.units.centre
    user = np.empty((d + 1, groups, chains, draws))
    for g in range(groups):
        n = problem.n[g]
        total = (half[-1] * problem.response[g] + centre[-1] * n * np.append(1.0, mean[g])) / n
        whitened = np.linalg.solve(factor[g], total[1:] - total[0] * mean[g])
        target = jnp.asarray(np.append(total[0], whitened))
        estimate, spread, off = (
            np.asarray(a) for a in _solved(target, jnp.asarray(n), None, problem.link)
        )
        unsolved += int(not off < SOLVED)
        root = np.linalg.cholesky(spread + 1e-12 * np.eye(d + 1))
        ab = estimate + rng.standard_normal((chains, draws, d + 1)) @ root.T
        slopes = np.linalg.solve(factor[g].T, ab[..., 1:].reshape(-1, d).T)
        slopes = slopes.reshape(d, chains, draws)
        level = ab[..., 0] - np.tensordot(mean[g], slopes, axes=1)
        by_column = np.empty_like(slopes)
        by_column[problem.order] = slopes
        by_column /= half[:d, None, None]
        user[:d, g] = by_column
        user[d, g] = level - np.tensordot(centre[:d], by_column, axes=1)
        if progress is not None:
            progress(g + 1, groups)
    judged = [diagnose_groups(values) for values in user]
    rhat, ess = (np.stack(s) for s in zip(*judged, strict=True))
    details: dict[str, Any] = {"hidden": list(problem.hidden), "unsolved": unsolved}
    return posterior_of(problem, user, rhat, ess, "naive", details, None, mean, covariance)


def run_with_factors(
    problem: FactorsProblem,
    seed: int,
    chains: int,
    draws: int,
    progress: Progress | None = None,
) -> Posterior:
    """Return the same of sums within levels, whose law is that of their cells."""
    k, groups = len(problem.chosen), len(problem.n)
    rng, unsolved = np.random.default_rng(seed), 0
    user, second = np.empty((k, groups, chains, draws)), np.empty((groups, k, k))
    for g in range(groups):
        one = subset(problem, g)
        second[g] = atoms_of_noisy_sums(one)
        root = np.linalg.cholesky(second[g])
        seen = problem.sums.cells @ problem.response[g]
        seen = seen / problem.n[g] - problem.sums.of_covariates @ second[g][:, 0]
        sums = np.linalg.lstsq(problem.sums.of_response, seen, rcond=None)[0]
        target, n = jnp.asarray(np.linalg.solve(root, sums)), jnp.asarray(problem.n[g])
        estimate, spread, off = (
            np.asarray(a) for a in _solved(target, n, nodes_of(one, second[g]), problem.link)
        )
        unsolved += int(not off < SOLVED)
        scatter = np.linalg.cholesky(spread + 1e-12 * np.eye(k))
        ab = estimate + rng.standard_normal((chains, draws, k)) @ scatter.T
        slopes = np.linalg.solve(root[1:, 1:].T, ab[..., 1:].reshape(-1, k - 1).T)
        level = ab[..., 0].ravel() - root[1:, 0] @ slopes
        drawn = np.linalg.solve(problem.change, np.vstack([level, slopes]))
        user[:, g] = drawn.reshape(k, chains, draws)
        if progress is not None:
            progress(g + 1, groups)
    judged = [diagnose_groups(values) for values in user]
    rhat, ess = (np.stack(s) for s in zip(*judged, strict=True))
    details: dict[str, Any] = {"unsolved": unsolved}
    return posterior_with_factors(problem, user, rhat, ess, "naive", details, None, second)


def _sums(link: Link, ab: jax.Array, nodes: NodeArrays | None) -> SumMoments:
    if nodes is None:
        return normal_sums(link, ab[0], ab[1:])
    return node_sums(link, ab[0], ab[1:], nodes)


def _moments(link: Link, ab: jax.Array, nodes: NodeArrays | None) -> jax.Array:
    return jnp.asarray(_sums(link, ab, nodes).mean)


@partial(compiled, static_argnums=3)
def _solved(
    wanted: jax.Array, n: jax.Array, nodes: NodeArrays | None, link: str
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the (a, b) of moments nearest to the wanted, their covariance, and how far off."""
    law = LINKS[link]
    low = 1e-4
    first = jnp.clip(wanted[0], low, None if law.counts else 1 - low)
    level = jnp.log(first) if law.counts else jnp.log(first) - jnp.log1p(-first)
    ab = jnp.concatenate([level[None], jnp.zeros(len(wanted) - 1)])

    def step(_: int, ab: jax.Array) -> jax.Array:
        slope = jax.jacfwd(lambda v: _moments(law, v, nodes))(ab)
        off = _moments(law, ab, nodes) - wanted
        ridge = RIDGE / n * jnp.eye(len(ab)).at[0, 0].set(0.0)
        curved = slope.T @ slope + ridge + 1e-12 * jnp.eye(len(ab))
        move = jnp.linalg.solve(curved, -(slope.T @ off + ridge @ ab))
        longest = jnp.maximum(jnp.abs(move).max(), 1e-12)
        return jnp.asarray(ab + move * jnp.minimum(1.0, 1.0 / longest))

    ab = jax.lax.fori_loop(0, STEPS, step, ab)
    slope = jax.jacfwd(lambda v: _moments(law, v, nodes))(ab)
    inverse = jnp.linalg.pinv(slope)
    covariance = jnp.asarray(_sums(law, ab, nodes).covariance)
    off = jnp.abs(_moments(law, ab, nodes) - wanted).max() / jnp.maximum(jnp.abs(wanted[0]), low)
    return ab, inverse @ covariance @ inverse.T / n, off

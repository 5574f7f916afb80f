"""Pooled groups as the sampler takes them, and where its chains start.

Chains start at what the sums of all groups together say (their noise grows as √G, they as G),
spread by half a unit in every log scale; groups at draws from it that are moved to within the noise
of their own sums (``initial_values.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference.population import SIZE_POWER, log_relative_sizes, standard_sizes
from noisewise.models.linear_regression.initial_values import (
    DrawnParameters,
    DrawnStatistics,
    statistics_of,
    towards,
)
from noisewise.models.linear_regression.pooled_density import PopulationLaw
from noisewise.models.linear_regression.pooled_population import PopulationPrior
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.numerics.distributions import draw_inverse_wishart_factors
from noisewise.numerics.gram_packing import unpack

SPREAD_DRAWS = 32
"""Draws of a group's statistic from which the spread of its coordinates is taken (chosen)."""
START_DF = 10.0
"""ν - d - 1 at which chains start (chosen)."""


@dataclass(frozen=True)
class PooledProblem:
    """A regression problem with groups, and what is public of its groups.

    ``features`` (group, k), the constant first, their columns orthogonal; ``parents`` (group) the
    place of every group's parent, or None. ``by_size``: whether the spread between groups depends
    on their sizes; of secret ones, as the release says them.
    """

    regression: RegressionProblem
    features: np.ndarray
    parents: np.ndarray | None
    prior: PopulationPrior
    by_size: bool = True

    @property
    def log_size(self) -> np.ndarray:
        """Return the logs of the groups' sizes less their mean; zeros where they do not matter."""
        problem = self.regression
        noise = problem.noise_scale if problem.noisy_n else 0.0
        return log_relative_sizes(problem.n, noise) * self.by_size

    @property
    def regressors(self) -> np.ndarray:
        """Return the features, and standardised logs of sizes last (group, k + 1)."""
        return np.column_stack([self.features, standard_sizes(self.log_size)])


def _overall(problem: RegressionProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance (q) of all records together, made valid."""
    q = len(problem.x) + 1
    second, totals = unpack(problem.z.sum(axis=0) / max(problem.n.sum(), 1.0), q)
    mean = np.clip(totals, -1, 1)
    values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
    return mean, (vectors * np.clip(values, 1e-3, 1.0)) @ vectors.T


def start_law(rng: np.random.Generator, problem: PooledProblem, chains: int) -> PopulationLaw:
    """Return populations at which chains start."""
    mean, covariance = _overall(problem.regression)
    d = len(mean) - 1
    p, k = d + 1, problem.regressors.shape[1]
    slopes = np.linalg.solve(covariance[:d, :d], covariance[:d, d])
    residual = max(covariance[d, d] - slopes @ covariance[:d, d], 1e-3)
    spread = 0.5 * np.sqrt(residual)

    def apart(*shape: int) -> np.ndarray:
        return np.asarray(np.exp(0.5 * rng.standard_normal((*shape, chains, 1))))

    def diagonal(sizes: np.ndarray) -> jax.Array:
        return jnp.asarray(np.eye(len(sizes))[..., None, None] * sizes[:, None])

    coefficients = np.zeros((k, p, chains, 1))
    centre = np.append(slopes, mean[d])[:, None, None]
    coefficients[0] = centre + 0.5 * spread * rng.standard_normal((p, chains, 1))
    x_factor = np.linalg.cholesky(0.5 * covariance[:d, :d])[..., None, None]
    # Scales of the hyperprior where they usually are, given the rest.
    log_a = np.log(np.sqrt((x_factor**2).sum(axis=1))) + 0.5 * rng.standard_normal((d, chains, 1))
    log_b = 0.5 * np.log(0.5 * residual) + 0.5 * rng.standard_normal((1, chains, 1))
    log_g = 0.5 * rng.standard_normal((1, chains, 1))
    return PopulationLaw(
        jnp.asarray(coefficients),
        diagonal(spread * apart(p)),
        diagonal(spread * apart(p)) if problem.parents is not None else None,
        jnp.asarray(np.log(0.5 * residual) + 0.5 * rng.standard_normal((chains, 1))),
        jnp.asarray(0.5 * apart()),
        jnp.asarray(mean[:d, None, None] + 0.2 * rng.standard_normal((d, chains, 1))),
        jnp.asarray(x_factor * apart()),
        jnp.asarray(x_factor * apart()),
        jnp.asarray(START_DF * apart() + d + 1),
        jnp.asarray(np.concatenate([log_a, log_b, log_g])),
        jnp.asarray(SIZE_POWER + 0.2 * rng.standard_normal((chains, 1))),
    )


def _drawn(
    rng: np.random.Generator, problem: PooledProblem, law: PopulationLaw, xi: np.ndarray,
    zeta: np.ndarray,
) -> DrawnStatistics:  # fmt: skip
    """Draw statistics (group, chain) of every group from its chain's population."""
    regression, d = problem.regression, len(problem.regression.x)
    groups, chains = xi.shape

    def by_chain(array: jax.Array) -> np.ndarray:
        return np.moveaxis(np.asarray(array)[..., 0], -1, 0)

    white = rng.standard_normal((groups, chains, d + 1))
    centre = np.einsum("gk,ckp->gcp", problem.regressors, by_chain(law.coefficients))
    wider = np.exp(-0.5 * problem.log_size[:, None] * by_chain(law.size_exponent))
    theta = centre + wider[..., None] * np.einsum("cij,gcj->gci", by_chain(law.factor), white)
    theta[..., d] -= np.einsum("gcj,cj->gc", theta[..., :d], by_chain(law.x_mean))
    variance = np.exp(by_chain(law.level) + by_chain(law.level_sd) * xi)
    x_mean = by_chain(law.x_mean) + np.einsum("cij,gcj->gci", by_chain(law.x_spread), zeta)
    df = by_chain(law.x_df)
    scale = np.sqrt(df)[:, None, None] * by_chain(law.x_scale)
    shape = (groups, chains)
    x_factor = draw_inverse_wishart_factors(
        rng, np.broadcast_to(scale, (*shape, d, d)), np.broadcast_to(df, shape)
    )
    # Of few records the coordinates are replaced afterwards.
    sizes = np.broadcast_to(np.maximum(regression.n, d + 3)[:, None], shape)
    if regression.noisy_n:
        sizes = np.maximum(sizes + rng.laplace(0, regression.noise_scale, shape), d + 3)
    return statistics_of(rng, DrawnParameters(theta, variance, x_mean, x_factor), sizes, d + 1)


def _few_records(
    rng: np.random.Generator, v: np.ndarray, drawn: DrawnStatistics, problem: RegressionProblem
) -> np.ndarray:
    """Return coordinates (group, chain, coordinate) with those that groups do not use drawn anew.

    Rows of the factor beyond the rank hold its entries.
    """
    q = len(problem.x) + 1
    if problem.noisy_n:
        return v
    v, white = v.copy(), rng.standard_normal(v.shape)
    rank = np.clip(problem.n - 1, 0, q)
    v[problem.n < 1, :, :q] = white[problem.n < 1, :, :q]
    place = 2 * q
    for j in range(q):
        v[rank <= j, :, q + j] = white[rank <= j, :, q + j]
        for k in range(j):
            v[rank <= j, :, place] = drawn.factor[rank <= j, :, j, k]
            v[rank <= k, :, place] = white[rank <= k, :, place]
            place += 1
    return v


def _fitting(
    law: PopulationLaw, drawn: DrawnStatistics, xi: np.ndarray, zeta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ξ (group, chain) and ζ (group, chain, covariate) near what a group's records say.

    Of many records the error variance and the covariates' means are known: a chain that began
    elsewhere would find its way by tiny steps, or not at all.
    """
    d = zeta.shape[-1]

    def by_chain(array: jax.Array) -> np.ndarray:
        return np.moveaxis(np.asarray(array)[..., 0], -1, 0)

    n, width = drawn.n, by_chain(law.level_sd)
    log_variance = 2 * np.log(np.maximum(drawn.factor[..., d, d], 1e-6))
    known = n * width**2 / (2 + n * width**2)
    own = (log_variance - by_chain(law.level)) / width
    xi = known * own + np.sqrt(1 - known) * xi
    off = drawn.mean[..., :d] - by_chain(law.x_mean)
    means = np.linalg.solve(by_chain(law.x_spread), off[..., None])[..., 0]
    scatter = (drawn.factor[..., :d, :d] ** 2).sum(axis=-1)
    between = (by_chain(law.x_spread) ** 2).sum(axis=-1)
    seen = n[..., None] * between / (scatter + n[..., None] * between)
    return xi, seen * means + np.sqrt(1 - seen) * zeta


def starting_positions(
    rng: np.random.Generator, problem: PooledProblem, law: PopulationLaw, chains: int
) -> tuple[jax.Array, jax.Array]:
    """Return starting positions (coordinate, chain, group) and spreads (coordinate, group)."""
    regression, d = problem.regression, len(problem.regression.x)
    groups = len(regression.n)

    def positions(draws: int, *, near: bool) -> np.ndarray:
        tiled = jax.tree.map(lambda a: jnp.repeat(a, draws // chains, axis=-2), law)
        xi = rng.standard_normal((groups, draws))
        zeta = rng.standard_normal((groups, draws, d))
        drawn = _drawn(rng, problem, tiled, xi, zeta)
        if near:
            drawn = towards(rng, drawn, regression.z, regression.noise_scale)
            xi, zeta = _fitting(tiled, drawn, xi, zeta)
        v = _few_records(rng, drawn.coordinates(noisy_n=regression.noisy_n), drawn, regression)
        return np.concatenate([v, xi[..., None], zeta], axis=-1)

    number = chains * max(1, SPREAD_DRAWS // chains)
    low, high = np.quantile(positions(number, near=False), [0.25, 0.75], axis=1)
    start = positions(chains, near=True)
    return jnp.asarray(start.transpose(2, 1, 0)), jnp.asarray((high - low).T / 1.349)

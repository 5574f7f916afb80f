"""Simulated releases of pooled groups: a population, its groups, their sums, and noise."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from noisewise.models.linear_regression.initial_values import DrawnParameters, statistics_of
from noisewise.models.linear_regression.pooled_density import PopulationLaw
from noisewise.models.linear_regression.pooled_exact import PooledProblem
from noisewise.numerics.distributions import draw_inverse_wishart_factors


class DrawnRelease(NamedTuple):
    """Coefficients (group, p) and log σ² (group) in the box, and the noisy sums of every group."""

    theta: np.ndarray
    log_variance: np.ndarray
    z: np.ndarray


def draw_release(
    rng: np.random.Generator, law: PopulationLaw, problem: PooledProblem
) -> DrawnRelease:
    """Draw groups from a population (one chain), and noisy sums of as many records as theirs."""
    b, factor, _, level, level_sd, x_mean, x_spread, x_scale, df = (
        None if a is None else np.asarray(a)[..., 0, 0] for a in law
    )
    regression, groups, p = problem.regression, len(problem.regression.n), len(factor)
    theta = problem.features @ b + rng.standard_normal((groups, p)) @ factor.T
    if law.parent_factor is not None and problem.parents is not None:
        white = rng.standard_normal((problem.parents.max() + 1, p))
        theta = theta + (white @ np.asarray(law.parent_factor)[..., 0, 0].T)[problem.parents]
    log_variance = level + level_sd * rng.standard_normal(groups)
    mu = x_mean + rng.standard_normal((groups, p - 1)) @ x_spread.T
    scale = np.broadcast_to(np.sqrt(df) * x_scale, (groups, p - 1, p - 1))
    x_factor = draw_inverse_wishart_factors(rng, scale, np.full(groups, df))
    drawn = DrawnParameters(theta, np.exp(log_variance), mu, x_factor)
    sums = _sums(rng, drawn, regression.n)
    if regression.noisy_n:
        sums = np.column_stack([sums, regression.n])
    noise = rng.laplace if regression.mechanism == "laplace" else rng.normal
    return DrawnRelease(theta, log_variance, sums + noise(0, regression.noise_scale, sums.shape))


def _sums(rng: np.random.Generator, drawn: DrawnParameters, n: np.ndarray) -> np.ndarray:
    """Draw the packed sums of n records of every group; groups of one rank together."""
    q = drawn.theta.shape[-1]
    rows, columns = np.triu_indices(q)
    sums = np.zeros((len(n), q * (q + 3) // 2))
    rank = np.clip(np.round(n) - 1, 0, q)
    for m in np.unique(rank[n >= 1]):
        own = np.flatnonzero((rank == m) & (n >= 1))
        some = DrawnParameters(*(a[own] for a in drawn))
        # Of one record only the mean is used.
        at = statistics_of(rng, some, np.maximum(n[own], 1.0), max(int(m), 0))
        second = at.factor @ np.swapaxes(at.factor, -1, -2) + at.mean[:, :, None] * at.mean[:, None]
        whole = np.concatenate([second[:, rows, columns], at.mean], axis=-1)
        sums[own] = n[own, None] * whole
    return sums


def with_sums(problem: PooledProblem, z: np.ndarray) -> PooledProblem:
    """Return the problem with other sums."""
    return replace(problem, regression=replace(problem.regression, z=z))

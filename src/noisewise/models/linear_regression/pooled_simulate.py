"""Simulated releases of pooled groups: a population, its groups, their sums, and noise."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.models.base import Progress
from noisewise.models.linear_regression import pooled_population
from noisewise.models.linear_regression.initial_values import DrawnParameters, statistics_of
from noisewise.models.linear_regression.pooled_density import PopulationLaw
from noisewise.models.linear_regression.pooled_posterior import PooledQuestion
from noisewise.models.linear_regression.pooled_start import PooledProblem
from noisewise.numerics.distributions import draw_inverse_wishart_factors
from noisewise.simulate import pooled_trials
from noisewise.simulate.pooled_trials import MAX_PROPOSALS, PooledTrials
from noisewise.simulate.trials import CHAINS, DRAWS, Outcome

REACH = 4
"""Noise scales by which a noisy sum may lie outside what records in the box add up to (chosen)."""


class DrawnRelease(NamedTuple):
    """Coefficients (group, p) and log σ² (group) in the box, and the noisy sums of every group."""

    theta: np.ndarray
    log_variance: np.ndarray
    z: np.ndarray


def draw_release(
    rng: np.random.Generator, law: PopulationLaw, problem: PooledProblem
) -> DrawnRelease:
    """Draw groups from a population (one chain), and noisy sums of as many records as theirs."""

    def only(array: jax.Array) -> np.ndarray:
        return np.asarray(array)[..., 0, 0]

    b, factor, df = only(law.coefficients), only(law.factor), only(law.x_df)
    regression, groups, p = problem.regression, len(problem.regression.n), len(factor)
    wider = np.exp(-0.5 * only(law.size_exponent) * problem.log_size)
    white = rng.standard_normal((groups, p)) * wider[:, None]
    theta = problem.regressors @ b + white @ factor.T
    if law.parent_factor is not None and problem.parents is not None:
        white = rng.standard_normal((problem.parents.max() + 1, p))
        theta = theta + (white @ only(law.parent_factor).T)[problem.parents]
    theta[:, -1] -= theta[:, :-1] @ only(law.x_mean)
    log_variance = only(law.level) + only(law.level_sd) * rng.standard_normal(groups)
    mu = only(law.x_mean) + rng.standard_normal((groups, p - 1)) @ only(law.x_spread).T
    scale = np.broadcast_to(np.sqrt(df) * only(law.x_scale), (groups, p - 1, p - 1))
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


def from_prior(
    rng: np.random.Generator, question: PooledQuestion, trials: int
) -> PooledTrials[PooledQuestion]:
    """Draw populations from the hyperprior, and a release of all groups from each.

    Releases whose noisy sums could not come from records in the box are drawn anew, which keeps
    calibration exact (``simulate.py``).
    """
    problem, regression = question.problem, question.regression
    slack = regression.n[:, None] + REACH * regression.noise_scale
    releases: list[PooledQuestion] = []
    truths: list[list[float]] = []
    judged: list[int] = []
    names: tuple[str, ...] = ()
    for _ in range(trials):
        for _ in range(MAX_PROPOSALS):
            law = pooled_population.draw_law(rng, question.shape, problem.prior, 1)
            drawn = draw_release(rng, law, problem)
            if (np.abs(drawn.z) <= slack).all():
                break
        else:
            raise ArgumentError(
                f"prior: none of {MAX_PROPOSALS:,} populations drawn from it fits the bounds; give "
                "a prior of the population that knows more"
            )
        releases.append(question.with_sums(drawn.z))
        judged.append(int(rng.integers(len(drawn.theta))))
        own = np.append(drawn.theta[judged[-1]], np.exp(drawn.log_variance[judged[-1]]))
        shared = question.named(law)
        truths.append([*regression.units.to_user(own), *(float(v[0]) for v in shared.values())])
        names = (*regression.x, "intercept", "sigma2", *shared)
    own_names = (*regression.x, "intercept", "sigma2")
    return PooledTrials(
        releases[0], np.array(truths), names, tuple(releases), own_names, tuple(judged)
    )


def run(
    trials: PooledTrials[PooledQuestion], seed: int, progress: Progress | None = None
) -> Outcome:
    """Infer every release."""
    return pooled_trials.run(trials, lambda q, own: q.run(own, CHAINS, DRAWS), seed, progress)

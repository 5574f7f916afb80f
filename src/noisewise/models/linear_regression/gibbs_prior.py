"""Method ``gibbs-prior``: Gibbs-SS-Prior, moments of x from a prior, computed once.

Any prior over x serves through E[x̃⊗4], x̃ = (x, 1): ``priors.CovariateMoments`` holds it, from a
formula or from draws. A normal-inverse-Wishart prior makes x multivariate t with ν = df - d + 1
degrees of freedom, mean m and covariance V = Ψ (κ + 1)/(κ (df - d - 1)). Where ν > 4, with six and
three terms in the brackets,

    E[x_i x_j x_k x_l] = m_i m_j m_k m_l + (m_i m_j V_kl + …) + (ν-2)/(ν-4) (V_ij V_kl + …).

With heavier tails these do not exist. The owner clamps to the box, so what is used then are the
moments of the prior clamped to the box, by Monte Carlo with the analyst's seed.

The moments stay as they are whatever z says: a prior far from the data is not corrected.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from noisewise.inference.posterior import Posterior
from noisewise.models.base import Progress
from noisewise.models.linear_regression import gibbs, record_moments
from noisewise.models.linear_regression.coordinates import Point
from noisewise.models.linear_regression.problem import RegressionProblem, default_covariates
from noisewise.priors import CovariateMoments, NormalInverseWishart

MONTE_CARLO_DRAWS = 200_000
"""Draws from a prior whose fourth moments do not exist (chosen: the standard error of a
moment in the box is then at most 0.0023)."""


def _begin(mean: jax.Array, factor: jax.Array) -> tuple[()]:
    return ()


def _moments(state: gibbs.GibbsState, g: gibbs.GibbsData) -> record_moments.RecordMoments:
    return record_moments.moments_given_x(g.source, state.theta, state.variance)


def _deviate(white: jax.Array, state: gibbs.GibbsState, g: gibbs.GibbsData) -> jax.Array:
    return record_moments.deviate_given_x(white, g.source, state.theta, state.variance)


def _update(white: gibbs.SweepVariates, at: Point, g: gibbs.GibbsData) -> tuple[()]:
    return ()


GIVEN_MOMENTS = gibbs.MomentSource(_begin, _moments, _deviate, _update)
"""Moments that were settled before the first sweep: nothing about x is updated."""


def run_given_moments(
    name: str, fourth: np.ndarray, problem: RegressionProblem, seed: int, chains: int, draws: int,
    progress: Progress | None, details: dict[str, Any],
) -> Posterior:  # fmt: skip
    """Sample by Algorithm 1 given E[x̃⊗4] (group, …) in the box; the prior of x is not used."""
    known, invalid = record_moments.x_moments(fourth)
    details["moments_projected_share"] = float(invalid.mean())
    unused = dataclasses.replace(problem, covariates=default_covariates(problem.units))
    return gibbs.run(name, GIVEN_MOMENTS, known, unused, seed, chains, draws, progress, details)


def normal_inverse_wishart_moments(prior: NormalInverseWishart) -> np.ndarray | None:
    """Return E[x̃⊗4] of x under the prior, or None where it does not exist."""
    d = len(prior.mean)
    freedom = prior.df - d + 1
    if freedom <= 4:
        return None
    m = np.append(prior.mean, 1.0)
    v = np.zeros((d + 1, d + 1))
    v[:d, :d] = prior.scale * (prior.kappa + 1) / (prior.kappa * (prior.df - d - 1))
    ways = ("ij,kl->ijkl", "ik,jl->ijkl", "il,jk->ijkl")
    mm = np.outer(m, m)
    mixed = sum(np.einsum(w, mm, v) + np.einsum(w, v, mm) for w in ways)
    tails = (freedom - 2) / (freedom - 4) * sum(np.einsum(w, v, v) for w in ways)
    return np.asarray(np.einsum(ways[0], mm, mm) + mixed + tails)


def clamped_moments(prior: NormalInverseWishart, seed: int) -> np.ndarray:
    """Return E[x̃⊗4] of x under the prior in the box, clamped to it, by Monte Carlo."""
    d = len(prior.mean)
    rng = np.random.default_rng(seed)
    freedom = prior.df - d + 1
    shape = prior.scale * (prior.kappa + 1) / (prior.kappa * freedom)
    white = rng.standard_normal((MONTE_CARLO_DRAWS, d)) @ np.linalg.cholesky(shape).T
    heavy = np.sqrt(freedom / rng.chisquare(freedom, MONTE_CARLO_DRAWS))
    draws = np.clip(prior.mean + white * heavy[:, None], -1, 1)
    return CovariateMoments.from_draws(draws).fourth


def box_moments(problem: RegressionProblem, seed: int) -> tuple[np.ndarray, str]:
    """Return E[x̃⊗4] in the box, and words that say where it comes from."""
    centre, half = problem.units.centre[:-1], problem.units.half[:-1]
    if isinstance(problem.covariates, CovariateMoments):
        return problem.covariates.mapped(centre, half).fourth, "given"
    prior = problem.covariates.mapped(centre, half)
    exact = normal_inverse_wishart_moments(prior)
    if exact is not None:
        return exact, "the prior's, in closed form"
    return clamped_moments(prior, seed), "the prior's, clamped to the box, by Monte Carlo"


def run(
    problem: RegressionProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Sample by Gibbs-SS-Prior."""
    fourth, origin = box_moments(problem, seed)
    every = np.broadcast_to(fourth, (len(problem.n), *fourth.shape))
    details: dict[str, Any] = {"moments": origin}
    return run_given_moments("gibbs-prior", every, problem, seed, chains, draws, progress, details)

"""Gibbs-SS-Update, Gibbs-SS-Prior and Gibbs-SS-Noisy: the paper's three sources of moments of x.

Each is Algorithm 1 (``gibbs.py``) with its own source of the moments of x̃ = (x, 1); section 3.4
of G. Bernstein, D. Sheldon, "Differentially Private Bayesian Linear Regression" (NeurIPS 2019).

*Method ``gibbs-update``: moments of a normal whose parameters are inferred too.* x ~ N(μx, τ²),
(μx, τ²) ~ NIW(μ0, κ0, Ψ0, ν0) (the paper's Figure 2). (x, y) is then jointly normal, so errata E10
gives all of Σ_t, and given s the covariates' parameters have the conjugate update

    τ² ~ InverseWishart(Ψn, ν0 + n),  μx ~ N((κ0 μ0 + n x̄)/(κ0 + n), τ²/(κ0 + n)),
    Ψn = Ψ0 + S_xx + κ0 n/(κ0 + n) (x̄ - μ0)(x̄ - μ0)ᵀ.

*Method ``gibbs-prior``: moments from a prior, computed once.* Any prior over x serves through
E[x̃⊗4]: ``priors.CovariateMoments`` holds it, from a formula or from draws. A normal-inverse-Wishart
prior makes x multivariate t with ν = df - d + 1 degrees of freedom, mean m and covariance
V = Ψ (κ + 1)/(κ (df - d - 1)). Where ν > 4, with six and three terms in the brackets,

    E[x_i x_j x_k x_l] = m_i m_j m_k m_l + (m_i m_j V_kl + …) + (ν-2)/(ν-4) (V_ij V_kl + …).

With heavier tails these do not exist. The owner clamps to the box, so what is used then are the
moments of the prior clamped to the box, by Monte Carlo with the analyst's seed. The moments stay as
they are whatever z says: a prior far from the data is not corrected.

*Method ``gibbs-noisy``: moments from privately released monomials.* The owner spends part of the
budget on Σ x_i x_j x_k x_l and all lower monomials; their averages are used as if they were exact,
as in the paper (which finds slight miscalibration for that reason). In the box no monomial leaves
[-1, 1] and no even one is negative: noisy averages are clamped to that first, and then moved to the
nearest moments that some distribution has, where they are none.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.inference.results import Posterior
from noisewise.models.base import Progress
from noisewise.models.linear_regression import collapsed, gibbs, record_moments
from noisewise.models.linear_regression.coordinates import Point
from noisewise.models.linear_regression.problem import RegressionProblem, default_covariates
from noisewise.numerics.distributions import bartlett_factor
from noisewise.numerics.matrices import solve_lower
from noisewise.priors import CovariateMoments, NormalInverseWishart

MONTE_CARLO_DRAWS = 200_000
"""Draws from a prior whose fourth moments do not exist (chosen: the standard error of a
moment in the box is then at most 0.0023)."""


class NormalLaw(NamedTuple):
    """The mean of a normal law, and a factor F of its covariance F Fᵀ."""

    mean: jax.Array
    factor: jax.Array


def _joint_law(state: gibbs.GibbsState) -> NormalLaw:
    """Return the law of (x, y): y = θᵀ(x, 1) + σe adds a row to the mean and to the factor."""
    x, slopes = state.covariates, state.theta[:-1]
    mean = jnp.append(x.mean, slopes @ x.mean + state.theta[-1])
    below = jnp.append(slopes @ x.factor, jnp.sqrt(state.variance))
    factor = jnp.concatenate([jnp.pad(x.factor, ((0, 0), (0, 1))), below[None]])
    return NormalLaw(mean, factor)


def _normal_moments(state: gibbs.GibbsState, g: gibbs.GibbsData) -> record_moments.RecordMoments:
    joint = _joint_law(state)
    return record_moments.normal_moments(joint.mean, joint.factor @ joint.factor.T)


def _normal_deviate(white: jax.Array, state: gibbs.GibbsState, g: gibbs.GibbsData) -> jax.Array:
    return record_moments.normal_deviate(white, *_joint_law(state))


def _conjugate_update(white: gibbs.SweepVariates, at: Point, g: gibbs.GibbsData) -> NormalLaw:
    """Draw μx and a factor of τ² given s.

    With Ψn = P Pᵀ and B Bartlett's factor of ν0 + n degrees, F = P B⁻ᵀ has F Fᵀ ~ IW(Ψn).
    """
    d = g.prior.x_mean.shape[0]
    bartlett = bartlett_factor(white.wishart, white.covariates[d:])
    solve = jax.vmap(solve_lower, in_axes=(None, 1), out_axes=1)
    factor = collapsed.covariate_factor(at, g.prior) @ solve(bartlett, jnp.eye(d)).T
    weight = g.prior.x_kappa + g.n
    mean = (g.prior.x_kappa * g.prior.x_mean + g.n * at.mean[:d]) / weight
    return NormalLaw(mean + factor @ white.covariates[:d] / jnp.sqrt(weight), factor)


INFERRED_MOMENTS = gibbs.MomentSource(
    NormalLaw, _normal_moments, _normal_deviate, _conjugate_update
)
"""Moments of a normal law of x whose parameters are drawn in every sweep."""


def run_update(
    problem: RegressionProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Sample by Gibbs-SS-Update and return the posterior."""
    source = INFERRED_MOMENTS
    return gibbs.run("gibbs-update", source, (), problem, seed, chains, draws, progress, {})


def _no_parameters(mean: jax.Array, factor: jax.Array) -> tuple[()]:
    return ()


def _given_moments(state: gibbs.GibbsState, g: gibbs.GibbsData) -> record_moments.RecordMoments:
    return record_moments.moments_given_x(g.source, state.theta, state.variance)


def _given_deviate(white: jax.Array, state: gibbs.GibbsState, g: gibbs.GibbsData) -> jax.Array:
    return record_moments.deviate_given_x(white, g.source, state.theta, state.variance)


def _no_update(white: gibbs.SweepVariates, at: Point, g: gibbs.GibbsData) -> tuple[()]:
    return ()


GIVEN_MOMENTS = gibbs.MomentSource(_no_parameters, _given_moments, _given_deviate, _no_update)
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


def run_prior(
    problem: RegressionProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Sample by Gibbs-SS-Prior and return the posterior."""
    fourth, origin = box_moments(problem, seed)
    every = np.broadcast_to(fourth, (len(problem.n), *fourth.shape))
    details: dict[str, Any] = {"moments": origin}
    return run_given_moments("gibbs-prior", every, problem, seed, chains, draws, progress, details)


def noisy_fourth(problem: RegressionProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return E[x̃⊗4] (group, …) from noisy averages, and in which groups one left its range."""
    if problem.moments is None or not any(len(p) == 4 for p in problem.exponents):
        raise ArgumentError(
            f"method: gibbs-noisy needs released monomials of {', '.join(problem.x)} up to degree "
            "four, which this release does not have: release with monomials=True, these columns "
            "as x"
        )
    averages = problem.moments / problem.n[:, None]
    even = np.array([all(p.count(i) % 2 == 0 for i in p) for p in problem.exponents])
    clamped = np.clip(averages, np.where(even, 0.0, -1.0), 1.0)
    d = len(problem.x)
    place = {p: c for c, p in enumerate(problem.exponents)}
    fourth = np.ones((*(d + 1,) * 4, len(averages)))
    for index in itertools.product(range(d + 1), repeat=4):
        if product := tuple(sorted(i for i in index if i < d)):
            fourth[index] = clamped[:, place[product]]
    return np.moveaxis(fourth, -1, 0), (clamped != averages).any(axis=1)


def run_noisy(
    problem: RegressionProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Sample by Gibbs-SS-Noisy and return the posterior."""
    fourth, outside = noisy_fourth(problem)
    details: dict[str, Any] = {
        "moments": "released, with noise, as if exact",
        "moments_clamped_share": float(outside.mean()),
    }
    return run_given_moments("gibbs-noisy", fourth, problem, seed, chains, draws, progress, details)

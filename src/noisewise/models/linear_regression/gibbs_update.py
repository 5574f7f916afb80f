"""Method ``gibbs-update``: Gibbs-SS-Update, moments of a normal whose parameters are inferred too.

x ~ N(μx, τ²), (μx, τ²) ~ NIW(μ0, κ0, Ψ0, ν0) (the paper's Figure 2). (x, y) is then jointly normal,
so errata E10 gives all of Σ_t, and given s the covariates' parameters have the conjugate update

    τ² ~ InverseWishart(Ψn, ν0 + n),  μx ~ N((κ0 μ0 + n x̄)/(κ0 + n), τ²/(κ0 + n)),
    Ψn = Ψ0 + S_xx + κ0 n/(κ0 + n) (x̄ - μ0)(x̄ - μ0)ᵀ.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisewise.inference.posterior import Posterior
from noisewise.models.base import Progress
from noisewise.models.linear_regression import collapsed, gibbs, record_moments
from noisewise.models.linear_regression.coordinates import Point
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.numerics.small_matrices import solve_lower
from noisewise.numerics.wishart import bartlett_factor


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


def _moments(state: gibbs.GibbsState, g: gibbs.GibbsData) -> record_moments.RecordMoments:
    joint = _joint_law(state)
    return record_moments.normal_moments(joint.mean, joint.factor @ joint.factor.T)


def _deviate(white: jax.Array, state: gibbs.GibbsState, g: gibbs.GibbsData) -> jax.Array:
    return record_moments.normal_deviate(white, *_joint_law(state))


def _update(white: gibbs.SweepVariates, at: Point, g: gibbs.GibbsData) -> NormalLaw:
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


SOURCE = gibbs.MomentSource(NormalLaw, _moments, _deviate, _update)
"""Moments of a normal law of x whose parameters are drawn in every sweep."""


def run(
    problem: RegressionProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Sample by Gibbs-SS-Update."""
    return gibbs.run("gibbs-update", SOURCE, (), problem, seed, chains, draws, progress, {})

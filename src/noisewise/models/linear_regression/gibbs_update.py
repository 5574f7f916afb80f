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
import numpy as np

from noisewise.inference.posterior import Posterior
from noisewise.models.linear_regression import collapsed, gibbs, gibbs_sweep, moments
from noisewise.models.linear_regression.coordinates import Point
from noisewise.models.linear_regression.problem import Problem
from noisewise.numerics.small_matrices import solve_lower


class Normal(NamedTuple):
    """μx, and F with F Fᵀ = τ²."""

    mean: jax.Array
    factor: jax.Array


def _joint(chain: gibbs_sweep.Chain) -> Normal:
    """The law of (x, y): y = θᵀ(x, 1) + σe adds a row to the mean and to the factor."""
    x, slopes = chain.covariates, chain.theta[:-1]
    mean = jnp.append(x.mean, slopes @ x.mean + chain.theta[-1])
    below = jnp.append(slopes @ x.factor, jnp.sqrt(chain.variance))
    factor = jnp.concatenate([jnp.pad(x.factor, ((0, 0), (0, 1))), below[None]])
    return Normal(mean, factor)


def _law(chain: gibbs_sweep.Chain, g: gibbs_sweep.Group) -> moments.Law:
    joint = _joint(chain)
    return moments.normal_law(joint.mean, joint.factor @ joint.factor.T)


def _deviate(white: jax.Array, chain: gibbs_sweep.Chain, g: gibbs_sweep.Group) -> jax.Array:
    return moments.normal_deviate(white, *_joint(chain))


def _update(white: gibbs_sweep.White, at: Point, g: gibbs_sweep.Group) -> Normal:
    """With Ψn = P Pᵀ and B Bartlett's factor of ν0 + n degrees, F = P B⁻ᵀ has F Fᵀ ~ IW(Ψn)."""
    d = g.prior.x_mean.shape[0]
    rows, columns = np.tril_indices(d, -1)
    bartlett = jnp.diag(jnp.sqrt(2 * white.wishart))
    bartlett = bartlett.at[rows, columns].set(white.covariates[d : d + len(rows)])
    solve = jax.vmap(solve_lower, in_axes=(None, 1), out_axes=1)
    factor = collapsed.covariate_factor(at, g.prior) @ solve(bartlett, jnp.eye(d)).T
    weight = g.prior.x_kappa + g.n
    mean = (g.prior.x_kappa * g.prior.x_mean + g.n * at.mean[:d]) / weight
    return Normal(mean + factor @ white.covariates[:d] / jnp.sqrt(weight), factor)


SOURCE = gibbs_sweep.Source(Normal, _law, _deviate, _update)


def run(
    problem: Problem, seed: int, chains: int, draws: int, progress: gibbs.Report | None = None
) -> Posterior:
    """The method's one signature."""
    return gibbs.run("gibbs-update", SOURCE, (), problem, seed, chains, draws, progress, {})

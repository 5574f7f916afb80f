"""Method ``mcmc-individual``: NUTS with every record a latent variable (the paper's MCMC-Ind, 3.3).

    σ² ~ InverseGamma(a0, b0), θ | σ² ~ N(m0, σ² Λ0⁻¹)         x_i ~ N(μx, τ²), (μx, τ²) ~ NIW
    y_i ~ N(θᵀ(x_i, 1), σ²)                                     z ~ Noise(Σ_i t(x_i, y_i), b)

for any number of covariates, Laplace or Gaussian noise. Everything is non-centred: noise usually
says little about any one record, so the posterior of its standardised value is nearly normal.
τ² = F Fᵀ comes from Bartlett's factor B of a Wishart: F = chol(Ψ0) B⁻ᵀ.

Exact, like ``exact``, but its cost grows with n; it is here to check the others.
"""

from __future__ import annotations

from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.inference.results import Posterior
from noisewise.models.base import Progress
from noisewise.models.linear_regression.collapsed import BoxPrior
from noisewise.models.linear_regression.posterior_draws import posterior_from_box
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.numerics import clear_numpyro_loops
from noisewise.numerics.distributions import bartlett_factor
from noisewise.numerics.gram_packing import pack
from noisewise.numerics.matrices import cholesky, solve_upper

MAX_RECORDS = 5000
"""Records of a group at the most: the cost grows with them (chosen)."""
WARM_UP = 500
"""Iterations of NUTS before the first kept draw (chosen)."""
TARGET_ACCEPTANCE = 0.8
"""Mean acceptance that NUTS aims at (numpyro's default)."""


def _numpyro() -> tuple[Any, Any]:
    """Return numpyro and its distributions, loaded by the one method that needs them."""
    return import_module("numpyro"), import_module("numpyro.distributions")


def model(n: int, mechanism: str, z: jax.Array, noise: jax.Array, prior: BoxPrior) -> None:
    """State the whole generative process, for numpyro."""
    numpyro, dist = _numpyro()
    q = prior.mean.shape[0]
    theta, variance = _response(prior)
    mean, factor = _covariates(prior)
    white = numpyro.sample("records", dist.Normal(0, 1).expand([n, q]).to_event(2))
    x = mean + white[:, :-1] @ factor.T
    y = x @ theta[:-1] + theta[-1] + jnp.sqrt(variance) * white[:, -1]
    w = jnp.concatenate([x, y[:, None]], axis=1)
    s = pack(w.T @ w, w.sum(axis=0))
    law = dist.Laplace if mechanism == "laplace" else dist.Normal
    numpyro.sample("z", law(s, noise).to_event(1), obs=z)


def _response(prior: BoxPrior) -> tuple[jax.Array, jax.Array]:
    """Sample θ and σ² from their prior."""
    numpyro, dist = _numpyro()
    q = prior.mean.shape[0]
    precision = numpyro.sample("precision", dist.Gamma(prior.shape, 1.0))
    white = numpyro.sample("coefficients", dist.Normal(0, 1).expand([q]).to_event(1))
    variance = prior.rate / precision
    theta = prior.mean + jnp.sqrt(variance) * solve_upper(cholesky(prior.precision), white)
    parameters = jnp.append(theta, variance)
    numpyro.deterministic("parameters", parameters)
    return theta, variance


def _covariates(prior: BoxPrior) -> tuple[jax.Array, jax.Array]:
    """Sample μx and a factor of τ² from their prior."""
    numpyro, dist = _numpyro()
    d = prior.x_mean.shape[0]
    shapes = (prior.x_df - jnp.arange(d)) / 2
    squares = numpyro.sample("squares", dist.Gamma(shapes, 1.0).to_event(1))
    below = jnp.zeros(0)
    if d > 1:
        count = d * (d - 1) // 2
        below = numpyro.sample("below", dist.Normal(0, 1).expand([count]).to_event(1))
    bartlett = bartlett_factor(squares, below)
    solve = jax.vmap(solve_upper, in_axes=(None, 1), out_axes=1)
    factor = cholesky(prior.x_scale) @ solve(bartlett, jnp.eye(d))
    white = numpyro.sample("centre", dist.Normal(0, 1).expand([d]).to_event(1))
    return prior.x_mean + factor @ white / jnp.sqrt(prior.x_kappa), factor


@lru_cache(maxsize=8)
def _sampler(n: int, q: int, mechanism: str, chains: int, draws: int) -> Any:
    """Return a sampler, kept because it compiles once for all groups of one size."""
    nuts = import_module("numpyro.infer")
    return nuts.MCMC(
        nuts.NUTS(partial(model, n, mechanism), target_accept_prob=TARGET_ACCEPTANCE),
        num_warmup=WARM_UP,
        num_samples=draws,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
        jit_model_args=True,
    )


def run(
    problem: RegressionProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Sample one group after the other by NUTS."""
    _check(problem)
    key, prior = jax.random.key(seed), problem.box_prior
    groups, q = len(problem.n), len(problem.x) + 1
    drawn, divergences = [], []
    for group in range(groups):
        mcmc = _sampler(int(problem.n[group]), q, problem.mechanism, chains, draws)
        z, noise = jnp.asarray(problem.z[group]), jnp.asarray(problem.noise_scale)
        fresh = jax.random.fold_in(key, group)
        mcmc.run(fresh, z, noise, prior, extra_fields=("diverging",))
        drawn.append(np.asarray(mcmc.get_samples(group_by_chain=True)["parameters"]))
        divergences.append(int(mcmc.get_extra_fields()["diverging"].sum()))
        clear_numpyro_loops()
        if progress is not None:
            progress(group + 1, groups)
    details = {"divergences": np.array(divergences), "warm_up": WARM_UP}
    return posterior_from_box(problem, np.stack(drawn), "mcmc-individual", details)


def _check(problem: RegressionProblem) -> None:
    """Refuse a secret n, and groups that are too large."""
    if problem.noisy_n:
        raise ArgumentError(
            "method: mcmc-individual has one latent record per person and needs to know how many "
            "there are; n is secret in this release: use exact"
        )
    if problem.n.max() > MAX_RECORDS:
        raise ArgumentError(
            f"method: mcmc-individual is for up to {MAX_RECORDS} records in a group, not "
            f"{int(problem.n.max())}: its cost grows with n; exact has the same posterior"
        )

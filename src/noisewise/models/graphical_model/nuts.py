"""Method ``bayes``: the posterior of a graphical model given noisy tables, drawn by NUTS.

    log τ ~ N(log(π/√6), 1/4),   θ_C(i) = τ · law
    y_C(i) = N μ_C(i; θ) + √(N μ(1-μ)) ζ + Laplace(b)      (Gaussian noise: variances add up)

``law="log-gamma"``, the default, is the logarithm of an exponential variable over π/√6: at τ = π/√6
it is the log-potential of a flat Dirichlet table. ``law="normal"`` is normal with a local scale for
each cell, s² ~ InverseGamma(2, 2); integrated out, that is a t law with four degrees of freedom.
Potentials of rare cells lie far below the others; a symmetric law infers too small a τ from the
cells one can see and covers the rare ones too seldom (docs/evidence-graphical.md).

Sampling and privacy noise enter each cell together. NUTS (numpyro) goes through the gradient of the
log-partition function twice: μ = ∇A, and then the likelihood's gradient. That the sampling noises
of cells are correlated, and shared by tables that overlap, is corrected afterwards
(``fisher_information.py``); it matters where n is large and privacy noise small.

Coordinates: orthonormal contrasts, whitened at the CGM estimate (``contrasts.py``), each one
centred in τ as far as data inform about it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.inference.adaptation import TARGET_ACCEPTANCE
from noisewise.models.graphical_model import collective_em
from noisewise.models.graphical_model.collective_em import DEFAULT_SPREAD
from noisewise.models.graphical_model.contrasts import contrasts
from noisewise.models.graphical_model.fisher_information import (
    MAX_DENSE_CELLS,
    block_mass_matrix,
    dense_mass_matrix,
    sampling_noise_matters,
    sandwich_correction,
    unwhiten,
)
from noisewise.models.graphical_model.fitted_model import GraphicalModel, fitted_model
from noisewise.models.graphical_model.marginal_oracle import Oracle, compiled_oracle, describe_size
from noisewise.models.graphical_model.maximum_likelihood import maximise_likelihood
from noisewise.models.graphical_model.posterior import GraphicalPosterior
from noisewise.models.graphical_model.problem import TablesProblem
from noisewise.numerics import clear_numpyro_loops
from noisewise.numerics.distributions import normal_laplace_log_density

if TYPE_CHECKING:
    from numpyro.infer import MCMC

WARM_UP = 250
"""Draws in which the step size adapts (chosen; the mass matrix is fixed beforehand)."""
MAX_TREE_DEPTH = 8
"""A trajectory has at most 2⁸ leapfrog steps (chosen)."""
LOG_TAU_SD = 0.5
"""Prior standard deviation of log τ (chosen)."""
T_DEGREES = 4.0
"""Degrees of freedom of ``law="normal"``, with the local scales integrated out."""
LAWS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "log-gamma": lambda x: DEFAULT_SPREAD * x - jnp.exp(DEFAULT_SPREAD * x),
    "normal": lambda x: -(T_DEGREES + 1) / 2 * jnp.log1p(x**2 / T_DEGREES),
}
"""Log densities of θ/τ, up to a constant."""
MIN_MARGINAL = 1e-12
"""Floor of a marginal probability, so that a variance is never zero."""
MEAN_REGULARISATION = 1e-10
"""λ of the fit to the posterior mean's marginals, small enough to change nothing (chosen)."""
MEAN_TOLERANCE = 1e-7
"""Largest difference of marginals in that fit (chosen)."""
MEAN_CALLS = 1000
"""Marginal calls of that fit (chosen)."""


class SamplerData(NamedTuple):
    """Arrays of one problem: another release of the same shape needs no new compilation.

    ``scale`` is the privacy noise's; ``scales``, ``centred`` and ``blocks`` are the mass matrix's.
    """

    y: jax.Array
    n: jax.Array
    scale: jax.Array
    scales: jax.Array
    centred: jax.Array
    blocks: list[tuple[jax.Array, jax.Array]]


def potentials(oracle: Oracle, data: SamplerData, q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return log(τ / (π/√6)) and θ at white coordinates, of which log τ is the first."""
    # Each centred coordinate informs about τ as a normal deviate does about its scale.
    log_tau = q[0] / jnp.sqrt(LOG_TAU_SD**-2 + 2 * (data.centred**2).sum())
    z = unwhiten(data.blocks, data.scales, q[1:])
    return log_tau, contrasts(oracle.model).potentials(jnp.exp((1 - data.centred) * log_tau) * z)


def log_posterior(
    oracle: Oracle, mechanism: str, law: str, data: SamplerData, q: jax.Array
) -> jax.Array:
    """Return the log posterior density of the white coordinates, up to a constant."""
    log_tau, theta = potentials(oracle, data, q)
    tau = DEFAULT_SPREAD * jnp.exp(log_tau)
    prior = LAWS[law](theta / tau)
    jacobian = ((1 - data.centred) * log_tau).sum() - theta.shape[0] * log_tau
    mu = jnp.maximum(oracle.marginals(theta), MIN_MARGINAL)
    residual, variance = data.y - data.n * mu, data.n * mu * (1 - mu)
    if mechanism == "laplace":
        fit = normal_laplace_log_density(residual, variance, data.scale)
    else:
        total = variance + data.scale**2
        fit = -(residual**2) / (2 * total) - jnp.log(total) / 2
    return fit.sum() + prior.sum() + jacobian - (log_tau / LOG_TAU_SD) ** 2 / 2


def _numpyro_model(oracle: Oracle, mechanism: str, law: str, data: SamplerData) -> None:
    """State the posterior as a numpyro model."""
    numpyro, dist = import_module("numpyro"), import_module("numpyro.distributions")
    size = oracle.model.dimension + 1
    q = numpyro.sample("q", dist.ImproperUniform(dist.constraints.real_vector, (), (size,)))
    numpyro.factor("posterior", log_posterior(oracle, mechanism, law, data, q))


@lru_cache(maxsize=8)
def _sampler(oracle: Oracle, mechanism: str, law: str, chains: int, draws: int) -> MCMC:
    """Return numpyro's sampler, cached: it compiles once for all releases of a structure."""
    nuts = import_module("numpyro.infer")
    kernel = nuts.NUTS(
        partial(_numpyro_model, oracle, mechanism, law),
        adapt_mass_matrix=False,
        step_size=step_size(oracle),
        target_accept_prob=TARGET_ACCEPTANCE,
        max_tree_depth=MAX_TREE_DEPTH,
    )
    return nuts.MCMC(
        kernel, num_warmup=WARM_UP, num_samples=draws, num_chains=chains,
        chain_method="sequential", progress_bar=False, jit_model_args=True,
    )  # fmt: skip


def step_size(oracle: Oracle) -> float:
    """Return the first step size: it shrinks with the fourth root of the dimension."""
    return float(1.5 * oracle.model.dimension**-0.25)


class Prepared(NamedTuple):
    """A problem ready to be sampled: its arrays, and the CGM estimate, in white coordinates too."""

    data: SamplerData
    start: GraphicalModel
    white: jax.Array


def run(
    problem: TablesProblem, seed: int, chains: int, draws: int, law: str = "log-gamma"
) -> GraphicalPosterior:
    """Draw the potentials and every clique's marginal from their posterior.

    Args:
        problem: noisy tables of one group; exact inference, no tied potentials.
        seed: of the chains.
        chains: number of chains.
        draws: draws kept per chain.
        law: prior of the potentials, ``"log-gamma"`` or ``"normal"``.
    """
    if law not in LAWS:
        raise ArgumentError(f"law: must be one of {', '.join(LAWS)}, not {law!r}")
    if problem.tied:
        raise ArgumentError("tied: bayes has no tied potentials; use cgm or naive-mle")
    if problem.oracle.kind == "loopy":
        # Its marginals are a fixed point that NUTS cannot differentiate, and the coverage of
        # intervals from them has not been measured.
        raise ArgumentError(
            f"inference: bayes needs exact inference, here a {describe_size(problem.model)}. Leave "
            "inference= away, raise memory=, ask for smaller or fewer cliques, or use method='cgm'"
        )
    ready = prepare(problem)
    key, noise = jax.random.split(jax.random.key(seed))
    starts = ready.white + jax.random.normal(noise, (chains, len(ready.white)))
    mcmc = _sampler(problem.oracle, problem.mechanism, law, chains, draws)
    extra = ("diverging", "num_steps", "accept_prob")
    mcmc.run(key, ready.data, init_params={"q": starts}, extra_fields=extra)
    q = mcmc.get_samples(group_by_chain=True)["q"]
    fields = mcmc.get_extra_fields()
    clear_numpyro_loops()
    details = {
        "divergences": int(fields["diverging"].sum()),
        "leapfrog_steps": float(fields["num_steps"].mean()),
        "acceptance": float(fields["accept_prob"].mean()),
        "warm_up": WARM_UP,
        "law": law,
        "start": dict(ready.start.details),
    }
    return finish(problem, ready, q, details)


def prepare(problem: TablesProblem) -> Prepared:
    """Find where chains start (the CGM estimate), and the mass matrix there."""
    start = collective_em.run(problem)
    theta = jnp.asarray(start.potentials)
    basis = contrasts(problem.model)
    if problem.model.dimension <= MAX_DENSE_CELLS:
        mass = dense_mass_matrix(problem, theta, basis, DEFAULT_SPREAD)
    else:
        mu = np.asarray(compiled_oracle(problem.oracle)(theta)[1])
        mass = block_mass_matrix(problem, mu, basis, DEFAULT_SPREAD)
    data = SamplerData(
        jnp.asarray(problem.y), jnp.asarray(problem.n), jnp.asarray(problem.scale),
        jnp.asarray(mass.scales), jnp.asarray(mass.centred),
        [(jnp.asarray(c), jnp.asarray(f)) for c, f in mass.blocks],
    )  # fmt: skip
    return Prepared(data, start, _whiten(data, basis.coordinates(theta)))


def finish(
    problem: TablesProblem,
    ready: Prepared,
    q: jax.Array,
    details: dict[str, Any],
    corrected: bool = True,
) -> GraphicalPosterior:
    """Turn draws (chain, draw, white coordinate) into a posterior.

    Unless ``corrected`` is false, sampling noise that tables share is accounted for.
    """
    chains, draws, size = q.shape
    oracle, theta = problem.oracle, jnp.asarray(ready.start.potentials)
    log_tau, drawn, marginals = _unwhiten_draws(oracle, ready.data, q.reshape(-1, size))
    tau = DEFAULT_SPREAD * np.exp(np.asarray(log_tau)).reshape(chains, draws)
    point = _mean_model(problem, marginals.mean(axis=0), theta, details)
    outcome = "nothing to correct"
    variance = problem.scale**2 * (2 if problem.mechanism == "laplace" else 1)
    shared = corrected and sampling_noise_matters(marginals.mean(axis=0), problem.n, variance)
    if shared and problem.model.dimension > MAX_DENSE_CELLS:
        outcome = "left out: too many cells"
    elif shared:
        outcome = "corrected"
        at = jnp.asarray(point.potentials)
        omega = sandwich_correction(
            oracle, problem.mechanism, at, ready.data.n, ready.data.scale, jnp.asarray(tau.mean())
        )
        centre = drawn.mean(axis=0)
        drawn = centre + (drawn - centre) @ omega.T
        marginals = _marginals(oracle, drawn)
        point = _mean_model(problem, marginals.mean(axis=0), at, details)
    details = {**details, "shared_sampling_noise": outcome}
    return GraphicalPosterior(
        dataclasses.replace(point, details=details),
        np.asarray(marginals).reshape(chains, draws, -1),
        np.asarray(drawn).reshape(chains, draws, -1), tau, details,
    )  # fmt: skip


def _whiten(data: SamplerData, coordinates: jax.Array) -> jax.Array:
    """Return white coordinates: the inverse of ``potentials`` at τ = π/√6."""
    q = coordinates / data.scales
    for cells, factors in data.blocks:
        q = q.at[cells].set(jnp.linalg.solve(factors, coordinates[cells][..., None])[..., 0])
    return jnp.concatenate([jnp.zeros(1), q])


@partial(jax.jit, static_argnums=0)
def _unwhiten_draws(
    oracle: Oracle, data: SamplerData, q: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return log τ, θ and μ of every draw, one after the other: memory for one junction tree."""

    def one(point: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        log_tau, theta = potentials(oracle, data, point)
        return log_tau, theta, oracle.marginals(theta)

    drawn: tuple[jax.Array, jax.Array, jax.Array] = jax.lax.map(one, q)
    return drawn


@partial(jax.jit, static_argnums=0)
def _marginals(oracle: Oracle, theta: jax.Array) -> jax.Array:
    """Return μ of every draw of θ."""
    marginals: jax.Array = jax.lax.map(oracle.marginals, theta)
    return marginals


def _mean_model(
    problem: TablesProblem, mean: jax.Array, start: jax.Array, details: dict[str, Any]
) -> GraphicalModel:
    """Return the model with the posterior mean's marginals: it minimises the expected KL."""
    fit = maximise_likelihood(
        problem.oracle, mean, jnp.asarray(problem.place), start,
        MEAN_REGULARISATION, MEAN_TOLERANCE, MEAN_CALLS,
    )  # fmt: skip
    return fitted_model(problem, np.asarray(fit.x), "bayes", details, True)

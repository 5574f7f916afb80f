"""Method ``bayes``: the posterior of a graphical model given noisy tables.

    log τ ~ N(log(π/√6), 1/4),   θ_C(i) = τ · law
    y_C(i) = N μ_C(i; θ) + √(N μ(1-μ)) ζ + Laplace(b)      (Gaussian noise: variances add up)

``law="log-gamma"``, the default, is the logarithm of an exponential variable over π/√6: at τ = π/√6
it is the log-potential of a flat Dirichlet table. ``law="normal"`` is normal with a local scale for
each cell, s² ~ InverseGamma(2, 2); integrated out, that is a t law with four degrees of freedom.
Potentials of rare cells lie far below the others; a symmetric law infers too small a τ from the
cells one can see and covers the rare ones too seldom (docs/evidence-graphical.md).

Sampling and privacy noise enter each cell together. NUTS (numpyro) goes through the gradient of the
log-partition function twice: μ = ∇A, and then the likelihood's gradient. That the sampling noises
of cells are correlated, and shared by tables that overlap, is put right afterwards
(``overlap.py``); it matters where n is large and privacy noise small.

Coordinates: orthonormal contrasts (``contrasts.py``), whitened at the CGM estimate
(``metric.py``), each one centred in τ as far as data tell about it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.inference._loops import forget
from noisewise.models.graphical_model import cgm, overlap
from noisewise.models.graphical_model.contrasts import contrasts
from noisewise.models.graphical_model.likelihood import maximise
from noisewise.models.graphical_model.metric import apply, dense, metric
from noisewise.models.graphical_model.model import GraphicalModel, fitted
from noisewise.models.graphical_model.oracle import Oracle, compiled, size_in_words
from noisewise.models.graphical_model.posterior import GraphicalPosterior
from noisewise.models.graphical_model.problem import Problem
from noisewise.models.graphical_model.telling import LARGEST
from noisewise.numerics.normal_laplace import log_density

WARM_UP = 250
ACCEPTANCE = 0.8
DEPTH = 8
HYPER = 0.5
"""Standard deviation of log τ."""
DEGREES = 4.0
"""Of freedom, with the local scales integrated out."""
LAWS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "log-gamma": lambda x: cgm.SPREAD * x - jnp.exp(cgm.SPREAD * x),
    "normal": lambda x: -(DEGREES + 1) / 2 * jnp.log1p(x**2 / DEGREES),
}
"""Log densities of θ/τ, up to a constant."""
FLOOR = 1e-12
"""Of a marginal probability, so that a variance is never zero."""


class Data(NamedTuple):
    """Arrays of one problem: another release of the same shape needs no new compilation."""

    y: jax.Array
    n: jax.Array
    scale: jax.Array
    scales: jax.Array
    centred: jax.Array
    blocks: list[tuple[jax.Array, jax.Array]]


def potentials(oracle: Oracle, data: Data, q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """White coordinates (log τ first) → log(τ / (π/√6)) and θ.

    Each centred coordinate tells about τ as a normal deviate does about its scale.
    """
    log_tau = q[0] / jnp.sqrt(HYPER**-2 + 2 * (data.centred**2).sum())
    z = apply(data.blocks, data.scales, q[1:])
    return log_tau, contrasts(oracle.model).potentials(jnp.exp((1 - data.centred) * log_tau) * z)


def log_posterior(oracle: Oracle, mechanism: str, law: str, data: Data, q: jax.Array) -> jax.Array:
    """Up to a constant, of the white coordinates."""
    log_tau, theta = potentials(oracle, data, q)
    tau = cgm.SPREAD * jnp.exp(log_tau)
    local = LAWS[law](theta / tau)
    jacobian = ((1 - data.centred) * log_tau).sum() - theta.shape[0] * log_tau
    mu = jnp.maximum(oracle.marginals(theta), FLOOR)
    residual, variance = data.y - data.n * mu, data.n * mu * (1 - mu)
    if mechanism == "laplace":
        fit = log_density(residual, variance, data.scale)
    else:
        whole = variance + data.scale**2
        fit = -(residual**2) / (2 * whole) - jnp.log(whole) / 2
    return fit.sum() + local.sum() + jacobian - (log_tau / HYPER) ** 2 / 2


def _model(oracle: Oracle, mechanism: str, law: str, data: Data) -> None:
    numpyro, dist = import_module("numpyro"), import_module("numpyro.distributions")
    size = oracle.model.dimension + 1
    q = numpyro.sample("q", dist.ImproperUniform(dist.constraints.real_vector, (), (size,)))
    numpyro.factor("posterior", log_posterior(oracle, mechanism, law, data, q))


@lru_cache(maxsize=8)
def _sampler(oracle: Oracle, mechanism: str, law: str, chains: int, draws: int) -> Any:
    """Kept, because it compiles once for all releases of one structure."""
    nuts = import_module("numpyro.infer")
    kernel = nuts.NUTS(
        partial(_model, oracle, mechanism, law),
        adapt_mass_matrix=False,
        step_size=step_size(oracle),
        target_accept_prob=ACCEPTANCE,
        max_tree_depth=DEPTH,
    )
    return nuts.MCMC(
        kernel, num_warmup=WARM_UP, num_samples=draws, num_chains=chains,
        chain_method="sequential", progress_bar=False, jit_model_args=True,
    )  # fmt: skip


def step_size(oracle: Oracle) -> float:
    """To begin with: in white coordinates it shrinks with the fourth root of the dimension."""
    return float(1.5 * oracle.model.dimension**-0.25)


class Prepared(NamedTuple):
    """Ready to be sampled: a problem's arrays, the CGM estimate, and that in white coordinates."""

    data: Data
    start: GraphicalModel
    white: jax.Array


def run(
    problem: Problem, seed: int, chains: int, draws: int, law: str = "log-gamma"
) -> GraphicalPosterior:
    """Draws of the potentials and of every clique's marginal."""
    if law not in LAWS:
        raise ArgumentError(f"law: must be one of {', '.join(LAWS)}, not {law!r}")
    if problem.tied:
        raise ArgumentError("tied: bayes has no tied potentials; use cgm or naive-mle")
    if problem.oracle.kind == "loopy":
        # Its marginals are a fixed point that NUTS cannot differentiate, and nobody has measured
        # what intervals from them would be worth.
        raise ArgumentError(
            f"inference: bayes needs exact inference, here a {size_in_words(problem.model)}. Leave "
            "inference= away, raise memory=, ask for smaller or fewer cliques, or use method='cgm'"
        )
    ready = prepare(problem)
    key, noise = jax.random.split(jax.random.key(seed))
    starts = ready.white + jax.random.normal(noise, (chains, len(ready.white)))
    mcmc = _sampler(problem.oracle, problem.mechanism, law, chains, draws)
    extra = ("diverging", "num_steps", "accept_prob")
    mcmc.run(key, ready.data, init_params={"q": starts}, extra_fields=extra)
    q = mcmc.get_samples(group_by_chain=True)["q"]
    told = mcmc.get_extra_fields()
    forget()
    details = {
        "divergences": int(told["diverging"].sum()),
        "leapfrog_steps": float(told["num_steps"].mean()),
        "acceptance": float(told["accept_prob"].mean()),
        "warm_up": WARM_UP,
        "law": law,
        "start": dict(ready.start.details),
    }
    return finish(problem, ready, q, details)


def prepare(problem: Problem) -> Prepared:
    """Where chains start, and the metric there."""
    start = cgm.run(problem)
    theta = jnp.asarray(start.potentials)
    found = contrasts(problem.model)
    if problem.model.dimension <= LARGEST:
        shape = dense(problem, theta, found, cgm.SPREAD)
    else:
        mu = np.asarray(compiled(problem.oracle)(theta)[1])
        shape = metric(problem, mu, found, cgm.SPREAD)
    data = Data(
        jnp.asarray(problem.y), jnp.asarray(problem.n), jnp.asarray(problem.scale),
        jnp.asarray(shape.scales), jnp.asarray(shape.centred),
        [(jnp.asarray(c), jnp.asarray(f)) for c, f in shape.blocks],
    )  # fmt: skip
    return Prepared(data, start, _white(data, found.coordinates(theta)))


def finish(
    problem: Problem, ready: Prepared, q: jax.Array, details: dict[str, Any], corrected: bool = True
) -> GraphicalPosterior:
    """Draws (chain, draw, white coordinate) as a posterior, overlaps of tables accounted for."""
    chains, draws, size = q.shape
    oracle, theta = problem.oracle, jnp.asarray(ready.start.potentials)
    log_tau, drawn, marginals = _everything(oracle, ready.data, q.reshape(-1, size))
    tau = cgm.SPREAD * np.exp(np.asarray(log_tau)).reshape(chains, draws)
    point = _point(problem, marginals.mean(axis=0), theta, details)
    told = "nothing to correct"
    variance = problem.scale**2 * (2 if problem.mechanism == "laplace" else 1)
    shared = corrected and overlap.matters(marginals.mean(axis=0), problem.n, variance)
    if shared and problem.model.dimension > LARGEST:
        told = "left out: too many cells"
    elif shared:
        told = "corrected"
        at = jnp.asarray(point.potentials)
        omega = overlap.correction(
            oracle, problem.mechanism, at, ready.data.n, ready.data.scale, jnp.asarray(tau.mean())
        )
        centre = drawn.mean(axis=0)
        drawn = centre + (drawn - centre) @ omega.T
        marginals = _marginals(oracle, drawn)
        point = _point(problem, marginals.mean(axis=0), at, details)
    details = {**details, "shared_sampling_noise": told}
    return GraphicalPosterior(
        dataclasses.replace(point, details=details),
        np.asarray(marginals).reshape(chains, draws, -1),
        np.asarray(drawn).reshape(chains, draws, -1), tau, details,
    )  # fmt: skip


def _white(data: Data, coordinates: jax.Array) -> jax.Array:
    """The inverse of ``potentials`` at τ = π/√6."""
    q = coordinates / data.scales
    for cells, factors in data.blocks:
        q = q.at[cells].set(jnp.linalg.solve(factors, coordinates[cells][..., None])[..., 0])
    return jnp.concatenate([jnp.zeros(1), q])


@partial(jax.jit, static_argnums=0)
def _everything(oracle: Oracle, data: Data, q: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """log τ, θ and μ of every draw, one after the other: memory for one junction tree."""

    def one(point: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        log_tau, theta = potentials(oracle, data, point)
        return log_tau, theta, oracle.marginals(theta)

    drawn: tuple[jax.Array, jax.Array, jax.Array] = jax.lax.map(one, q)
    return drawn


@partial(jax.jit, static_argnums=0)
def _marginals(oracle: Oracle, theta: jax.Array) -> jax.Array:
    found: jax.Array = jax.lax.map(oracle.marginals, theta)
    return found


def _point(
    problem: Problem, mean: jax.Array, start: jax.Array, details: dict[str, Any]
) -> GraphicalModel:
    """The model with the posterior mean's marginals: of all, it minimises the expected KL."""
    place = jnp.asarray(problem.place)
    found = maximise(problem.oracle, mean, place, start, 1e-10, 1e-7, 1000)
    return fitted(problem, np.asarray(found.x), "bayes", details, True)

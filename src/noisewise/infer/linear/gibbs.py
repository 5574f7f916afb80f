"""Algorithm 1 of the paper: a Gibbs sampler over (s, θ, σ², ω²), whatever the source of moments.

G. Bernstein, D. Sheldon, "Differentially Private Bayesian Linear Regression" (NeurIPS 2019),
section 3.4. With μ_t, Σ_t the moments of one record's statistic (``moments.py``), one sweep is

    s | θ, σ², ω²  ∝  N(s; nμ_t, nΣ_t) N(z; s, diag ω²)       the central limit theorem for s
    θ, σ² | s      ~  NIG(μ_n, Λ_n, a_n, b_n)                 eq. (1)
    1/ω_j² | s     ~  InverseGaussian(1/(b|z_j - s_j|), 1/b²) Laplace noise; Gaussian: ω = b fixed

s is drawn without an inverse (errata E11): s₀ ~ N(nμ_t, nΣ_t), e ~ N(0, diag ω²), then
s = s₀ + nΣ_t (nΣ_t + diag ω²)⁻¹ (z - s₀ - e). A drawn s need not be a statistic of any data; its
scatter matrix is then projected to the nearest valid one, as in the paper, and counted (E18).

Consecutive draws of θ are close when the data outweigh nothing but the noise: the posterior's ESS
says how many draws there really are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.infer.linear import collapsed
from noisewise.infer.linear.assemble import posterior
from noisewise.infer.linear.coordinates import Point, released
from noisewise.infer.linear.moments import Law
from noisewise.infer.linear.problem import Problem
from noisewise.infer.linear.starts import prior_parameters
from noisewise.infer.posterior import Posterior
from noisewise.numerics.psd import project
from noisewise.numerics.sampling import gamma
from noisewise.numerics.scale_mixture import laplace_variances
from noisewise.numerics.triangular import cholesky, solve_lower, solve_upper

Report = Callable[[int, int], None]

THIN = 10
"""Sweeps per kept draw."""
BURN_IN = 1000
"""Sweeps before the first kept draw, or as many as draws are kept if that is more."""
BLOCK = 50
SLAB = 256
FLOOR = 1e-9
"""Least eigenvalue of a projected scatter over n, in box units."""

ASSUMES_N = "the noisy number of records, as if it were exact"


class Group(NamedTuple):
    """The data of one group; ``source`` is what its source of moments keeps."""

    z: jax.Array
    n: jax.Array
    noise: jax.Array
    prior: collapsed.Prior
    source: Any


class Chain(NamedTuple):
    """One chain: coefficients, variance, the source's own parameters, and the mixture ω²."""

    theta: jax.Array
    variance: jax.Array
    covariates: Any
    mixture: jax.Array
    projected: jax.Array


class White(NamedTuple):
    """The randomness of one sweep: standard normals, uniforms, and gammas of known shapes."""

    record: jax.Array
    noise: jax.Array
    mixture: jax.Array
    coefficients: jax.Array
    covariates: jax.Array
    uniform: jax.Array
    variance: jax.Array
    wishart: jax.Array


class Source(NamedTuple):
    """Where the moments of x come from: the one thing in which the three methods differ.

    ``begin(mean, factor)`` keeps starting parameters of the covariates, ``law(chain, group)`` gives
    μ_t and Σ_t, ``deviate(white, chain, group)`` draws N(0, Σ_t), ``update(white, point, group)``
    draws the covariates' parameters given s.
    """

    name: str
    begin: Callable[[np.ndarray, np.ndarray], Any]
    law: Callable[[Chain, Group], Law]
    deviate: Callable[[jax.Array, Chain, Group], jax.Array]
    update: Callable[[White, Point, Group], Any]


def draw_statistic(white: White, law: Law, deviate: jax.Array, chain: Chain, g: Group) -> jax.Array:
    """s given parameters, z and ω² (line 4, by E11)."""
    spread = g.n * law.covariance
    first = g.n * law.mean + jnp.sqrt(g.n) * deviate
    noise = jnp.sqrt(chain.mixture) * white.noise
    factor = cholesky(spread + jnp.diag(chain.mixture))
    return first + spread @ solve_upper(factor, solve_lower(factor, g.z - first - noise))


def valid_point(s: jax.Array, q: int, n: jax.Array) -> tuple[Point, jax.Array]:
    """Mean and scatter of s, the scatter projected where it is none; and whether it was."""
    rows, columns = np.triu_indices(q)
    size = len(rows)
    mean = s[size:] / n
    upper = jnp.zeros((q, q)).at[rows, columns].set(s[:size] / n)
    scatter = upper + jnp.triu(upper, 1).T - jnp.outer(mean, mean)
    scatter, projected = project(scatter, FLOOR)
    factor = cholesky(scatter)
    return Point(mean, factor, jnp.log(jnp.diagonal(factor)), n), projected


def sweep_one(source: Source, mechanism: str, white: White, chain: Chain, g: Group) -> Chain:
    """One iteration of Algorithm 1 for one chain of one group."""
    q = chain.theta.shape[0]
    law, deviate = source.law(chain, g), source.deviate(white.record, chain, g)
    s = draw_statistic(white, law, deviate, chain, g)
    at, projected = valid_point(s, q, g.n)
    s = jnp.where(projected, released(at, noisy_n=False), s)
    given = collapsed.conjugate(at, g.prior)
    variance = given.rate / white.variance
    theta = given.mean + jnp.sqrt(variance) * solve_upper(given.factor, white.coefficients)
    mixture = chain.mixture
    if mechanism == "laplace":
        mixture = laplace_variances(white.mixture, white.uniform, g.z - s, g.noise)
    covariates = source.update(white, at, g)
    return Chain(theta, variance, covariates, mixture, chain.projected + projected)


def draw_white(key: jax.Array, batch: tuple[int, int], q: int, data: Group) -> White:
    """All randomness of one sweep of the batch: few large calls cost least."""
    normal, uniform, shapes = jax.random.split(key, 3)
    d, p = q - 1, q * (q + 3) // 2
    sizes = (p, p, p, q, d * (d + 1) // 2)
    whites = jax.random.normal(normal, (*batch, sum(sizes)))
    parts = jnp.split(whites, np.cumsum(sizes)[:-1], axis=-1)
    degrees = (data.prior.x_df + data.n)[:, None] - jnp.arange(d)
    shape = jnp.concatenate([(data.prior.shape + data.n / 2)[:, None], degrees / 2], axis=1)
    gammas = gamma(shapes, jnp.broadcast_to(shape[:, None], (*batch, q)))
    uniforms = jax.random.uniform(uniform, (*batch, p))
    return White(*parts, uniforms, gammas[..., 0], gammas[..., 1:])


@partial(jax.jit, static_argnums=(0, 1))
def sweep(
    source: Source, mechanism: str, key: jax.Array, chains: Chain, data: Group, thin: jax.Array
) -> tuple[Chain, jax.Array]:
    """``BLOCK`` times ``thin`` sweeps of all chains; every ``thin``-th (θ, σ²) is returned."""
    q = chains.theta.shape[-1]
    one = partial(sweep_one, source, mechanism)
    every = jax.vmap(jax.vmap(one, in_axes=(0, 0, None)))

    def step(number: jax.Array, at: tuple[Chain, jax.Array]) -> tuple[Chain, jax.Array]:
        state, key = at
        white = draw_white(jax.random.fold_in(key, number), state.theta.shape[:2], q, data)
        return every(white, state, data), key

    def body(state: Chain, key: jax.Array) -> tuple[Chain, jax.Array]:
        state, _ = jax.lax.fori_loop(0, thin, step, (state, key))
        return state, jnp.concatenate([state.theta, state.variance[..., None]], axis=-1)

    return jax.lax.scan(body, chains, jax.random.split(key, BLOCK))


def start(
    rng: np.random.Generator, source: Source, mechanism: str, data: Group, prior: collapsed.Prior,
    chains: int,
) -> Chain:  # fmt: skip
    """Chains at draws from the prior: far apart, so that R-hat can tell."""
    groups, p = data.z.shape
    drawn = prior_parameters(rng, prior, (groups, chains))
    mixture = np.broadcast_to(np.asarray(data.noise)[:, None, None] ** 2, (groups, chains, p))
    if mechanism == "laplace":
        mixture = 2 * mixture * rng.standard_exponential(mixture.shape)
    state = Chain(
        drawn.theta,
        drawn.variance,
        source.begin(drawn.x_mean, drawn.x_factor),
        mixture,
        np.zeros((groups, chains)),
    )
    return jax.tree.map(jnp.asarray, state)  # type: ignore[no-any-return]


def sample(
    key: jax.Array, source: Source, mechanism: str, data: Group, state: Chain, draws: int, thin: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draws (group, chain, draw, θ… σ²) in the box, and the share of sweeps that projected s."""
    warm = -(-max(BURN_IN, draws) // (BLOCK * thin))
    kept: list[np.ndarray] = []
    blocks = -(-draws // BLOCK)
    for number in range(warm + blocks):
        if number == warm:
            state = state._replace(projected=jnp.zeros_like(state.projected))
        state, values = sweep(
            source, mechanism, jax.random.fold_in(key, number), state, data, jnp.asarray(thin)
        )
        if number >= warm:
            kept.append(np.asarray(values))
    parameters = np.moveaxis(np.concatenate(kept)[:draws], 0, 2)
    return parameters, np.asarray(state.projected.mean(axis=1)) / (blocks * BLOCK * thin)


def run(
    source: Source, moments: Any, problem: Problem, seed: int, chains: int, draws: int,
    progress: Report | None, details: Mapping[str, Any],
) -> Posterior:  # fmt: skip
    """All groups, slab by slab; ``moments`` leads with the group."""
    groups, prior = len(problem.n), problem.box_prior
    key, rng = jax.random.key(seed), np.random.default_rng(seed)
    drawn, shares = [], []
    for first in range(0, groups, SLAB):
        rows = np.arange(first, min(first + SLAB, groups))
        data = _group(problem, prior, moments, rows)
        state = start(rng, source, problem.mechanism, data, prior, chains)
        fresh = jax.random.fold_in(key, first)
        values, share = sample(fresh, source, problem.mechanism, data, state, draws, THIN)
        drawn.append(values)
        shares.append(share)
        if progress is not None:
            progress(int(rows[-1]) + 1, groups)
    told = {"projected_share": float(np.concatenate(shares).mean()), "thin": THIN, **details}
    if problem.noisy_n:
        told["assumes"] = ASSUMES_N
    return posterior(problem, np.concatenate(drawn), source.name, told)


def _group(problem: Problem, prior: collapsed.Prior, moments: Any, rows: np.ndarray) -> Group:
    """Some groups' data; where n is secret its noisy count is no component here."""
    q, size = len(problem.x) + 1, len(rows)
    return Group(
        jnp.asarray(problem.z[rows, : q * (q + 3) // 2]),
        jnp.asarray(problem.n[rows]),
        jnp.full(size, problem.noise_scale),
        jax.tree.map(lambda a: jnp.broadcast_to(a, (size, *a.shape)), prior),
        jax.tree.map(lambda a: a[rows], moments),
    )

"""One sweep of Algorithm 1: what each conditional draws, for one chain of one group.

G. Bernstein, D. Sheldon, "Differentially Private Bayesian Linear Regression" (NeurIPS 2019),
section 3.4. With μ_t, Σ_t the moments of one record's statistic (``moments.py``), a sweep is

    s | θ, σ², ω²  ∝  N(s; nμ_t, nΣ_t) N(z; s, diag ω²)       the central limit theorem for s
    θ, σ² | s      ~  NIG(μ_n, Λ_n, a_n, b_n)                 eq. (1)
    1/ω_j² | s     ~  InverseGaussian(1/(b|z_j - s_j|), 1/b²) Laplace noise; Gaussian: ω = b fixed

s is drawn without an inverse (errata E11): s₀ ~ N(nμ_t, nΣ_t), e ~ N(0, diag ω²), then
s = s₀ + nΣ_t (nΣ_t + diag ω²)⁻¹ (z - s₀ - e). A drawn s need not be a statistic of any data; its
scatter matrix is then projected to the nearest valid one, as in the paper, and counted (E18).

Randomness comes as arrays of standard variates: a batch draws them in few large calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.linear_regression import collapsed
from noisewise.models.linear_regression.coordinates import Point, released
from noisewise.models.linear_regression.moments import Law
from noisewise.numerics.psd import project
from noisewise.numerics.gamma_variates import gamma
from noisewise.numerics.scale_mixture import laplace_variances
from noisewise.numerics.small_matrices import cholesky, solve_lower, solve_upper

FLOOR = 1e-9
"""Least eigenvalue of a projected scatter over n, in box units."""


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

    begin: Callable[[jax.Array, jax.Array], Any]
    law: Callable[[Chain, Group], Law]
    deviate: Callable[[jax.Array, Chain, Group], jax.Array]
    update: Callable[[White, Point, Group], Any]


def draw_statistic(white: White, law: Law, deviate: jax.Array, chain: Chain, g: Group) -> jax.Array:
    """s given parameters, z and ω² (line 4, by E11)."""
    spread = g.n * law.covariance
    first = g.n * law.mean + jnp.sqrt(g.n) * deviate
    noise = jnp.sqrt(chain.mixture) * white.noise
    factor = cholesky(spread + jnp.diag(chain.mixture))
    pull: jax.Array = solve_upper(factor, solve_lower(factor, g.z - first - noise))
    return first + spread @ pull


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


def draw_white(key: jax.Array, batch: tuple[int, ...], q: int, data: Group) -> White:
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
    record, noise, mixture, coefficients, covariates = parts
    return White(
        record, noise, mixture, coefficients, covariates,
        uniforms, gammas[..., 0], gammas[..., 1:],
    )  # fmt: skip

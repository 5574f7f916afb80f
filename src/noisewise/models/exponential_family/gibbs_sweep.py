"""One sweep of thesis Algorithm 3, and of Algorithm 2 as errata E14 corrects it, for a whole batch.

With (t̂, t) of one record having mean m and covariance C (``moments.py``), a sweep is

    (ŝ, s) | θ, ω²  ∝  N((ŝ, s); nm, nC) N(z; ŝ, diag ω²)     ŝ was released, s is the whole sum
    θ | s           ~  p(θ; λ + (s, n))                         conjugate
    1/ω_j² | ŝ      ~  InverseGaussian(1/(b|z_j - ŝ_j|), 1/b²)  Laplace noise; Gaussian: ω = b

For bounded statistics ŝ = s: Algorithm 3. For an interval the thesis draws three regions as if they
were independent and then forgets z when it redraws the middle one; here all are one joint normal
law, of which (ŝ, s) is the part that matters (E14). The pair is drawn without an inverse (E11), and
again while s is no possible statistic, as in the thesis; after ``TRIES`` the nearest possible one
is taken, and counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisewise.models.exponential_family.family import Conjugate, Family
from noisewise.models.exponential_family.moments import Joint
from noisewise.models.exponential_family.observed import Interval
from noisewise.numerics.scale_mixture import laplace_variances
from noisewise.numerics.small_matrices import cholesky, solve_lower, solve_upper

TRIES = 30
RIDGE = 1e-10
"""Relative, on the diagonal: t̂ and t may coincide, categories always add up."""

Law = Callable[[Family, Interval, jax.Array], Joint]
"""Moments of (t̂, t) at one η: ``moments.joint``, or another approximation to compare with."""


class Group(NamedTuple):
    """Data, leading with the group; the interval is everyone's."""

    interval: Interval
    z: jax.Array
    n: jax.Array
    noise: jax.Array
    prior: Conjugate


class Chain(NamedTuple):
    """State of all chains, leading with (group, chain); counters of draws again and projections."""

    theta: jax.Array
    mixture: jax.Array
    again: jax.Array
    projected: jax.Array


class Gain(NamedTuple):
    """What one sweep's normal draws share: mean, root of nC, and how z pulls."""

    mean: jax.Array
    root: jax.Array
    pull: jax.Array


def _gain(joint: Joint, n: jax.Array, mixture: jax.Array) -> Gain:
    d = mixture.shape[-1]
    spread = n * joint.covariance
    root = cholesky(spread + jnp.diag(RIDGE * jnp.diagonal(spread) + 1e-300))
    factor = cholesky(spread[:d, :d] + jnp.diag(mixture))

    def solve(column: jax.Array) -> jax.Array:
        drawn: jax.Array = solve_upper(factor, solve_lower(factor, column))
        return drawn

    pull = jax.vmap(solve, in_axes=1, out_axes=1)(spread[:d]).T
    return Gain(n * joint.mean, root, pull)


def _drawn(gain: Gain, white: jax.Array, noise: jax.Array, z: jax.Array) -> jax.Array:
    """(ŝ, s) given z: errata E11."""
    first = gain.mean + gain.root @ white
    return first + gain.pull @ (z - first[: len(z)] - noise)


def sweep(
    family: Family, law: Law, mechanism: str, key: jax.Array, chain: Chain, g: Group
) -> Chain:
    """One iteration for every chain of every group."""
    pair_key, theta_key, normal_key, uniform_key = jax.random.split(key, 4)
    d = g.z.shape[-1]

    def moments_at(theta: jax.Array) -> Joint:
        return law(family, g.interval, family.natural(theta))

    joint = jax.vmap(jax.vmap(moments_at))(chain.theta)
    gain = jax.vmap(jax.vmap(_gain, in_axes=(0, None, 0)))(joint, g.n, chain.mixture)
    pair, tries, bad = _possible(family, pair_key, gain, chain.mixture, g)
    s = pair[..., -d:]
    s = jnp.where(bad[..., None], family.nearest(s, g.n[:, None]), s)
    prior = Conjugate(*(a[:, None] for a in g.prior))
    theta = family.draw(theta_key, prior.updated(s, g.n[:, None]))
    # Where moments are all rounding (every record far outside), a chain stays where it is.
    lost = ~(jnp.isfinite(theta).all(axis=-1) & jnp.isfinite(pair).all(axis=-1))
    theta = jnp.where(lost[..., None], chain.theta, theta)
    mixture = chain.mixture
    if mechanism == "laplace":
        white = jax.random.normal(normal_key, mixture.shape)
        uniform = jax.random.uniform(uniform_key, mixture.shape)
        residual = g.z[:, None] - pair[..., :d]
        fresh = laplace_variances(white, uniform, residual, g.noise[:, None, None])
        mixture = jnp.where(lost[..., None], mixture, fresh)
    return Chain(theta, mixture, chain.again + tries, chain.projected + (bad | lost))


def _possible(
    family: Family, key: jax.Array, gain: Gain, mixture: jax.Array, g: Group
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Draw until every s is a possible statistic; the pair, draws again, and whether it failed."""
    batch, m, d = gain.mean.shape[:2], gain.mean.shape[-1], g.z.shape[-1]
    every = jax.vmap(jax.vmap(_drawn, in_axes=(0, 0, 0, None)))
    root = jnp.sqrt(mixture)

    def attempt(number: jax.Array) -> tuple[jax.Array, jax.Array]:
        white = jax.random.normal(jax.random.fold_in(key, number), (*batch, m + d))
        pair = every(gain, white[..., :m], root * white[..., m:], g.z)
        return pair, family.valid(pair[..., -d:], g.n[:, None])

    def unfinished(state: tuple[jax.Array, ...]) -> jax.Array:
        return (~state[1]).any() & (state[3] < TRIES)

    def again(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        pair, done, tries, number = state
        fresh, valid = attempt(number)
        pair = jnp.where(done[..., None], pair, fresh)
        return pair, done | valid, tries + ~done, number + 1

    pair, valid = attempt(jnp.asarray(0))
    begin: tuple[jax.Array, ...] = (pair, valid, jnp.zeros(batch), jnp.asarray(1))
    pair, valid, tries, _ = jax.lax.while_loop(unfinished, again, begin)
    return pair, tries, ~valid

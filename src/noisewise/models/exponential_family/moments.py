"""Moments of one record's statistic, and of what an interval leaves of it, by derivatives alone.

With A(η) the log-partition and q(η) = F(w; η) - F(v; η), a truncated family has log-partition
A + log q (thesis Lemma 1), so its moments are derivatives of that. The same without dividing by q,
which may be next to nothing, is

    E[t 1_q]   = q ∇A + ∇q,
    E[ttᵀ 1_q] = q (∇²A + ∇A ∇Aᵀ) + ∇A ∇qᵀ + ∇q ∇Aᵀ + ∇²q.

What was summed, t̂, and the statistic t are functions of one record, so the central limit theorem
gives (Σt̂, Σt) one joint normal law. Written region by region this is errata E14: the counts of the
regions are one multinomial, so Cov(ŝ_r, ŝ_r') = -n q_r q_r' μ̂_r μ̂_r'ᵀ; adding the regions up
gives the covariances below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisewise.models.exponential_family.family import Family
from noisewise.models.exponential_family.observed import Interval


class Part(NamedTuple):
    """Probability of a region, and E[t 1], E[ttᵀ 1] over it."""

    q: jax.Array
    first: jax.Array
    second: jax.Array


class Joint(NamedTuple):
    """Mean and covariance of (t̂, t) of one record; of t alone where they are the same."""

    mean: jax.Array
    covariance: jax.Array


def whole(family: Family, eta: jax.Array) -> Part:
    """Moments over all records (thesis eq. 4.1)."""
    slope = jax.grad(family.log_partition)(eta)
    curve = jax.hessian(family.log_partition)(eta)
    return Part(jnp.ones(()), slope, curve + jnp.outer(slope, slope))


def region(family: Family, eta: jax.Array, probability: Callable[[jax.Array], jax.Array]) -> Part:
    """Moments over the records that fall into a region of this probability."""
    every = whole(family, eta)
    q, slope = jax.value_and_grad(probability)(eta)
    curve = jax.hessian(probability)(eta)
    cross = jnp.outer(every.first, slope)
    return Part(q, q * every.first + slope, q * every.second + cross + cross.T + curve)


def joint(family: Family, interval: Interval, eta: jax.Array) -> Joint:
    """The law of one record's (t̂, t)."""
    every = whole(family, eta)
    if interval.outside == "keep":
        return Joint(every.first, every.second - jnp.outer(every.first, every.first))
    below, above = interval.below(family.whole), interval.above(family.whole)
    left = region(family, eta, lambda e: family.cdf(jnp.asarray(below), e))
    upto = region(family, eta, lambda e: family.cdf(jnp.asarray(above), e))
    inside = Part(*(a - b for a, b in zip(upto, left, strict=True)))
    first, second, cross = inside.first, inside.second, inside.second
    if interval.outside == "clamp":
        ends = ((interval.lower, left), (interval.upper, _difference(every, upto)))
        for end, part in ends:
            t = family.statistic(jnp.asarray(end))
            first = first + part.q * t
            second = second + part.q * jnp.outer(t, t)
            cross = cross + jnp.outer(t, part.first)
    mean = jnp.concatenate([first, every.first])
    moments = jnp.block([[second, cross], [cross.T, every.second]])
    covariance = moments - jnp.outer(mean, mean)
    if len(first) == 1:
        return _within_reach(family, interval, Joint(mean, covariance))
    return Joint(mean, covariance)


def _within_reach(family: Family, interval: Interval, joint: Joint) -> Joint:
    """Where nearly every record is far outside, differences of huge moments are all rounding.

    What one record contributes lies in an interval, so its mean does, its variance is at most a
    quarter of the squared width, and its correlation with t at most one.
    """
    low, high = interval.lower, interval.upper
    if interval.outside == "drop":
        low, high = jnp.minimum(low, 0.0), jnp.maximum(high, 0.0)
    own = jnp.clip(joint.covariance[0, 0], 0.0, (high - low) ** 2 / 4)
    most = jnp.sqrt(own * joint.covariance[1, 1])
    both = jnp.clip(joint.covariance[0, 1], -most, most)
    covariance = jnp.stack([own, both, both, joint.covariance[1, 1]]).reshape(2, 2)
    mean = jnp.stack([jnp.clip(joint.mean[0], low, high), joint.mean[1]])
    return Joint(mean, covariance)


def _difference(one: Part, other: Part) -> Part:
    return Part(*(a - b for a, b in zip(one, other, strict=True)))


def truncated(family: Family, v: float, w: float, eta: jax.Array) -> tuple[jax.Array, jax.Array]:
    """μ̂ and Σ̂ of t among records in (v, w] (thesis eq. 4.3 and 4.4)."""

    def log_partition(e: jax.Array) -> jax.Array:
        mass = family.cdf(jnp.asarray(w), e) - family.cdf(jnp.asarray(v), e)
        return family.log_partition(e) + jnp.log(mass)

    return jax.grad(log_partition)(eta), jax.hessian(log_partition)(eta)

"""What an interval leaves of a record, and the moments of that, by derivatives alone.

Records outside [lower, upper] contribute nothing to the owner's sum (``drop``, thesis 4.3.1) or
what the nearer end would (``clamp``).

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

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from noisewise.artifact import PowerSums
from noisewise.models.exponential_family.family import Family


@partial(jax.tree_util.register_dataclass, data_fields=["lower", "upper"], meta_fields=["outside"])
@dataclass(frozen=True)
class Interval:
    """Public ends and what happened beyond them; ``keep`` means that nothing lies beyond.

    The ends are data to JAX: another interval is not another compilation.
    """

    lower: Any
    upper: Any
    outside: Literal["drop", "clamp", "keep"] = field(metadata={"static": True})

    def below(self, whole: bool) -> Any:
        """Return the largest x that is outside on the left; for continuous x, the end itself."""
        return jnp.ceil(self.lower) - 1.0 if whole else self.lower

    def above(self, whole: bool) -> Any:
        """Return the largest x inside."""
        return jnp.floor(self.upper) if whole else self.upper


def interval_of(statistic: PowerSums, bounded: bool, whole: bool) -> Interval:
    """Read the interval of a release.

    Args:
        statistic: the power sums as released.
        bounded: the interval is the family's whole support, so that nothing lies outside.
        whole: records are whole numbers; clamping rounds the ends, half up, as the lattice does.
    """
    if bounded:
        return Interval(statistic.lower, statistic.upper, "keep")
    lower, upper = statistic.lower, statistic.upper
    if whole and statistic.outside == "clamp":
        lower, upper = float(math.floor(lower + 0.5)), float(math.floor(upper + 0.5))
    return Interval(lower, upper, statistic.outside)


class RegionMoments(NamedTuple):
    """Probability of a region, and E[t 1], E[ttᵀ 1] over it."""

    q: jax.Array
    first: jax.Array
    second: jax.Array

    def minus(self, other: RegionMoments) -> RegionMoments:
        """Return the moments of this region without a part of it."""
        return RegionMoments(*(a - b for a, b in zip(self, other, strict=True)))


class JointMoments(NamedTuple):
    """Mean and covariance of (t̂, t) of one record; of t alone where they are the same."""

    mean: jax.Array
    covariance: jax.Array


def untruncated_moments(family: Family, eta: jax.Array) -> RegionMoments:
    """Return the moments over all records (thesis eq. 4.1)."""
    slope = jax.grad(family.log_partition)(eta)
    curve = jax.hessian(family.log_partition)(eta)
    return RegionMoments(jnp.ones(()), slope, curve + jnp.outer(slope, slope))


def region_moments(
    family: Family, eta: jax.Array, probability: Callable[[jax.Array], jax.Array]
) -> RegionMoments:
    """Return the moments over the records that fall into a region of this probability."""
    every = untruncated_moments(family, eta)
    q, slope = jax.value_and_grad(probability)(eta)
    curve = jax.hessian(probability)(eta)
    cross = jnp.outer(every.first, slope)
    return RegionMoments(q, q * every.first + slope, q * every.second + cross + cross.T + curve)


def joint_moments(family: Family, interval: Interval, eta: jax.Array) -> JointMoments:
    """Return mean and covariance of one record's (t̂, t), what was summed and the statistic."""
    every = untruncated_moments(family, eta)
    if interval.outside == "keep":
        return JointMoments(every.first, every.second - jnp.outer(every.first, every.first))
    below, above = interval.below(family.whole), interval.above(family.whole)
    left = region_moments(family, eta, lambda e: family.cdf(jnp.asarray(below), e))
    up_to_end = region_moments(family, eta, lambda e: family.cdf(jnp.asarray(above), e))
    inside = up_to_end.minus(left)
    first, second, cross = inside.first, inside.second, inside.second
    if interval.outside == "clamp":
        for end, part in ((interval.lower, left), (interval.upper, every.minus(up_to_end))):
            t = family.statistic(jnp.asarray(end))
            first = first + part.q * t
            second = second + part.q * jnp.outer(t, t)
            cross = cross + jnp.outer(t, part.first)
    mean = jnp.concatenate([first, every.first])
    moments = jnp.block([[second, cross], [cross.T, every.second]])
    covariance = moments - jnp.outer(mean, mean)
    if len(first) == 1:
        return _within_reach(interval, JointMoments(mean, covariance))
    return JointMoments(mean, covariance)


def _within_reach(interval: Interval, joint: JointMoments) -> JointMoments:
    """Clamp moments to what is possible: far outside, differences of huge ones are all rounding.

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
    return JointMoments(mean, covariance)

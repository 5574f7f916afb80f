"""The law of what one record contributed, as finitely many values and their probabilities.

Whole numbers have such a law already. A continuous family is put on the nodes of a Gauss-Legendre
rule whose variable is bent, x = lower + width · (3u² - 2u³), so that a density that is steep, or
infinite, at an end is still integrated well; its CDF is all that is needed, the density being its
derivative. What lies outside sits in atoms: at 0 where records were dropped, at the ends where they
were clamped.
"""

from __future__ import annotations

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.models.exponential_family.family import Family
from noisewise.models.exponential_family.observed import Interval

MOST_VALUES = 2**14


def ends(family: Family, interval: Interval) -> tuple[float, float]:
    """Least and greatest contribution of one record."""
    low = float(interval.below(family.whole)) + family.whole
    high = float(interval.above(family.whole))
    if interval.outside == "drop":
        return min(low, 0.0), max(high, 0.0)
    return low, high


@lru_cache(maxsize=256)
def nodes(family: Family, interval: Interval, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Values inside the interval and their weights; ``size`` of them where continuous."""
    if family.whole:
        low, high = float(interval.below(True)) + 1, float(interval.above(True))
        if high - low + 1 > MOST_VALUES:
            raise ArgumentError(
                f"method: exact handles up to {MOST_VALUES} whole numbers in the interval, not "
                f"{high - low + 1:.0f}; use method='gibbs'"
            )
        values = np.arange(low, high + 1)
        return values, np.ones(len(values))
    u, weights = np.polynomial.legendre.leggauss(size)
    u, weights = (u + 1) / 2, weights / 2
    width = interval.upper - interval.lower
    return interval.lower + width * (3 - 2 * u) * u**2, weights * width * 6 * u * (1 - u)


def probabilities(
    family: Family, interval: Interval, values: jax.Array, weights: jax.Array, eta: jax.Array
) -> jax.Array:
    """(value…, atom, atom): of the nodes, then of what lies below and above the interval."""

    def cdf(x: jax.Array) -> jax.Array:
        return family.cdf(x, eta)

    if family.whole:
        upto = jax.vmap(cdf)(values)
        before = jnp.concatenate([cdf(values[0] - 1)[None], upto[:-1]])
        inner = weights * (upto - before)
    else:
        inner = weights * jax.vmap(jax.grad(cdf))(values)
    below = cdf(jnp.asarray(interval.below(family.whole)))
    above = 1 - cdf(jnp.asarray(interval.above(family.whole)))
    mass = 1 - below - above
    total = inner.sum()
    inner = inner * jnp.where(total > 0, mass / jnp.where(total > 0, total, 1.0), 0.0)
    return jnp.concatenate([jnp.maximum(inner, 0.0), jnp.stack([below, above])])


def contributions(interval: Interval, values: np.ndarray) -> np.ndarray:
    """What the owner added for each node, and for a record below and above the interval."""
    atoms = (0.0, 0.0) if interval.outside == "drop" else (interval.lower, interval.upper)
    return np.concatenate([values, atoms])

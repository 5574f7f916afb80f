"""Categories from a public list; Dirichlet prior of their probabilities.

t(x) = one-hot, η = log p, A = log Σ e^η. The counts are bounded by themselves; one record moves two
of them (errata E3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from noisewise.artifact import Bounds, Level
from noisewise.models.exponential_family.family import Conjugate, Domain, Family
from noisewise.models.exponential_family.variates import dirichlet
from noisewise.priors import Dirichlet


@dataclass(frozen=True)
class Categorical(Family):
    """One of ``levels``, with probabilities ``p[level]``."""

    levels: tuple[Level, ...] = ("0", "1")
    name: ClassVar[str] = "categorical"
    parameters: ClassVar[tuple[str, ...]] = ("p",)
    domains: ClassVar[tuple[Domain, ...]] = ("unit",)
    whole: ClassVar[bool] = True
    prior: ClassVar[type] = Dirichlet

    @property
    def names(self) -> tuple[str, ...]:
        """``p[level]`` for every level."""
        return tuple(f"p[{level}]" for level in self.levels)

    @property
    def dimension(self) -> int:
        """One count per level."""
        return len(self.levels)

    def natural(self, theta: jax.Array) -> jax.Array:
        """log p."""
        return jnp.log(theta)

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """log Σ e^η."""
        return logsumexp(eta)

    def statistic(self, x: jax.Array) -> jax.Array:
        """One-hot, of the position in the list."""
        place = jnp.arange(len(self.levels))
        return jnp.where(place == x, 1.0, 0.0)

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """Over positions in the list."""
        place = jnp.arange(len(self.levels))
        return jnp.sum(jnp.where(place <= jnp.floor(x), jax.nn.softmax(eta), 0.0))

    def default_prior(self, bounds: Bounds) -> Dirichlet:
        """Uniform over the simplex."""
        return Dirichlet(np.ones(len(self.levels)))

    def conjugate(self, prior: Dirichlet) -> Conjugate:
        """λ₁ = α; the counts tell n themselves."""
        return Conjugate(jnp.asarray(prior.alpha), jnp.array([float(prior.alpha.sum())]))

    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """Dirichlet(λ₁)."""
        return dirichlet(key, given.sums)

    def valid(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """No count below zero."""
        return (s >= 0).all(axis=-1)

    def nearest(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """Negative counts raised to zero, the rest scaled to add up to n."""
        above = jnp.maximum(s, 0.0)
        total = jnp.maximum(above.sum(axis=-1, keepdims=True), 1e-9)
        return above * jnp.asarray(n)[..., None] / total

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """A position in the list of levels."""
        above = theta.cumsum(axis=-1)
        place = (rng.random(above.shape[:-1])[..., None] > above).sum(axis=-1)
        return np.asarray(np.minimum(place, len(self.levels) - 1))

    def mean(self, theta: np.ndarray) -> np.ndarray:
        """Not a number: see ``Posterior.predict`` for probabilities."""
        return np.full(theta.shape[:-1], np.nan)

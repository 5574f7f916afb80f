"""Bernoulli and binomial with a known number of trials; Beta prior of p.

t(x) = x, η = log p/(1-p), A = m log(1 + e^η). The sum over records is bounded by itself: nothing
is left out or clamped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc, gammaln

from noisewise.artifact import Bounds
from noisewise.models.exponential_family.family import Conjugate, Domain, Family
from noisewise.models.exponential_family.variates import dirichlet
from noisewise.priors import Beta


@dataclass(frozen=True)
class Binomial(Family):
    """Successes among ``trials`` with probability p."""

    trials: int = 1
    name: ClassVar[str] = "binomial"
    parameters: ClassVar[tuple[str, ...]] = ("p",)
    domains: ClassVar[tuple[Domain, ...]] = ("unit",)
    support: ClassVar[tuple[float, float]] = (0.0, np.inf)
    whole: ClassVar[bool] = True
    prior: ClassVar[type] = Beta

    def natural(self, theta: jax.Array) -> jax.Array:
        """The log odds."""
        return jnp.log(theta) - jnp.log1p(-theta)

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """m log(1 + e^η)."""
        return self.trials * jax.nn.softplus(eta[0])

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """A sum of m + 1 terms where that is short, else the incomplete beta function."""
        m, k = self.trials, jnp.floor(x)
        if m <= 64:
            j = jnp.arange(m + 1.0)
            choose = gammaln(m + 1.0) - gammaln(j + 1) - gammaln(m - j + 1)
            term = jnp.exp(choose + j * eta[0] - self.log_partition(eta))
            return jnp.sum(jnp.where(j <= k, term, 0.0))
        inside = jnp.clip(k, 0.0, m - 1.0)
        value = betainc(m - inside, inside + 1, jax.nn.sigmoid(-eta[0]))
        return jnp.where(k < 0, 0.0, jnp.where(k >= m, 1.0, value))

    def default_prior(self, bounds: Bounds) -> Beta:
        """Uniform."""
        return Beta(1.0, 1.0)

    def conjugate(self, prior: Beta) -> Conjugate:
        """λ₁ = α; λ₂ counts records, each of m trials."""
        return Conjugate(
            jnp.array([prior.alpha]), jnp.array([(prior.alpha + prior.beta) / self.trials])
        )

    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """Beta(λ₁, m λ₂ - λ₁)."""
        failures = self.trials * given.counts - given.sums
        return dirichlet(key, jnp.concatenate([given.sums, failures], axis=-1))[..., :1]

    def valid(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """Between none and all."""
        return (s[..., 0] >= 0) & (s[..., 0] <= n * self.trials)

    def nearest(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """Clamped."""
        return jnp.clip(s, 0.0, (jnp.asarray(n) * self.trials)[..., None])

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """Successes of one record."""
        return rng.binomial(self.trials, theta[..., 0])


@dataclass(frozen=True)
class Bernoulli(Binomial):
    """One trial."""

    name: ClassVar[str] = "bernoulli"

    @classmethod
    def for_release(cls, model: Any, statistic: Any) -> Bernoulli:
        """Nothing is known beforehand."""
        return cls()

"""Geometric number of trials up to and including the first success; Beta prior of p.

x = 1, 2, 3, … as in NumPy and SciPy (not the number of failures, which starts at 0).
t(x) = x, η = log(1-p), A = η - log(1 - e^η).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import Bounds
from noisewise.models.exponential_family.family import Conjugate, Domain, Family
from noisewise.models.exponential_family.variates import dirichlet
from noisewise.priors import Beta


@dataclass(frozen=True)
class Geometric(Family):
    """P(x) = p (1-p)^(x-1) on x = 1, 2, 3, …"""

    name: ClassVar[str] = "geometric"
    parameters: ClassVar[tuple[str, ...]] = ("p",)
    domains: ClassVar[tuple[Domain, ...]] = ("unit",)
    support: ClassVar[tuple[float, float]] = (1.0, np.inf)
    whole: ClassVar[bool] = True
    prior: ClassVar[type] = Beta

    def natural(self, theta: jax.Array) -> jax.Array:
        """log(1-p)."""
        return jnp.log1p(-theta)

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """η - log(1 - e^η)."""
        return eta[0] - jnp.log(-jnp.expm1(eta[0]))

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """1 - (1-p)^floor(x)."""
        return -jnp.expm1(eta[0] * jnp.maximum(jnp.floor(x), 0.0))

    def default_prior(self, bounds: Bounds) -> Beta:
        """Uniform."""
        return Beta(1.0, 1.0)

    def conjugate(self, prior: Beta) -> Conjugate:
        """Each record is one success after x - 1 failures: λ₂ = α - 1, λ₁ = α + β - 1."""
        return Conjugate(jnp.array([prior.alpha + prior.beta - 1]), jnp.array([prior.alpha - 1]))

    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """Beta(λ₂ + 1, λ₁ - λ₂)."""
        shapes = jnp.concatenate([given.counts + 1, given.sums - given.counts], axis=-1)
        return dirichlet(key, shapes)[..., :1]

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """Trials up to the first success."""
        return rng.geometric(theta[..., 0])

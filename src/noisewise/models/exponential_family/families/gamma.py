"""Gamma with a known shape k (k = 1: exponential); Gamma prior of the rate.

t(x) = x, η = -rate, A = -k log(-η).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammainc

from noisewise.artifact import Bounds
from noisewise.models.exponential_family import variates
from noisewise.models.exponential_family.family import Conjugate, Domain, Family
from noisewise.priors import Gamma as GammaPrior


@dataclass(frozen=True)
class Gamma(Family):
    """Density ∝ x^(k-1) exp(-rate x) on x > 0."""

    shape: float = 1.0
    name: ClassVar[str] = "gamma"
    parameters: ClassVar[tuple[str, ...]] = ("rate",)
    domains: ClassVar[tuple[Domain, ...]] = ("positive",)
    support: ClassVar[tuple[float, float]] = (0.0, np.inf)
    prior: ClassVar[type] = GammaPrior

    def natural(self, theta: jax.Array) -> jax.Array:
        """-rate."""
        return -theta

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """-k log(-η)."""
        return -self.shape * jnp.log(-eta[0])

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """The regularised incomplete gamma function."""
        inside = jnp.maximum(x, 1e-300)
        return jnp.asarray(jnp.where(x <= 0, 0.0, gammainc(self.shape, -eta[0] * inside)))

    def default_prior(self, bounds: Bounds) -> GammaPrior:
        """As much as one record, at a quarter of the interval's far end."""
        return GammaPrior(self.shape, bounds.upper / 4)

    def conjugate(self, prior: GammaPrior) -> Conjugate:
        """λ₁ = rate; kλ₂ = shape - 1."""
        return Conjugate(jnp.array([prior.rate]), jnp.array([(prior.shape - 1) / self.shape]))

    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """Gamma(kλ₂ + 1, λ₁)."""
        return jnp.asarray(variates.gamma(key, self.shape * given.counts + 1) / given.sums)

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """One waiting time."""
        return rng.gamma(self.shape, 1 / theta[..., 0])

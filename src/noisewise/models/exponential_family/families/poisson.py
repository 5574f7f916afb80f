"""Poisson counts; Gamma prior of the rate.

t(x) = x, η = log rate, A = e^η.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaincc

from noisewise.artifact import Bounds
from noisewise.models.exponential_family import variates
from noisewise.models.exponential_family.family import Conjugate, Domain, Family
from noisewise.priors import Gamma


@dataclass(frozen=True)
class Poisson(Family):
    """P(x) = e^{-rate} rate^x / x! on x = 0, 1, 2, …"""

    name: ClassVar[str] = "poisson"
    parameters: ClassVar[tuple[str, ...]] = ("rate",)
    domains: ClassVar[tuple[Domain, ...]] = ("positive",)
    support: ClassVar[tuple[float, float]] = (0.0, np.inf)
    whole: ClassVar[bool] = True
    prior: ClassVar[type] = Gamma

    def natural(self, theta: jax.Array) -> jax.Array:
        """log rate."""
        return jnp.log(theta)

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """e^η."""
        return jnp.exp(eta[0])

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """The regularised incomplete gamma function of floor(x) + 1."""
        k = jnp.floor(x)
        return jnp.asarray(
            jnp.where(k < 0, 0.0, gammaincc(jnp.maximum(k, 0.0) + 1, jnp.exp(eta[0])))
        )

    def default_prior(self, bounds: Bounds) -> Gamma:
        """Exponential, at the middle of the interval on average."""
        return Gamma(1.0, 1 / max(bounds.centre, 0.5))

    def conjugate(self, prior: Gamma) -> Conjugate:
        """λ₁ = shape, λ₂ = rate."""
        return Conjugate(jnp.array([prior.shape]), jnp.array([prior.rate]))

    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """Gamma(λ₁, λ₂)."""
        return jnp.asarray(variates.gamma(key, given.sums) / given.counts)

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """One count."""
        return rng.poisson(theta[..., 0])

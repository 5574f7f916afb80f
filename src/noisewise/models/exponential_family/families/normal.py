"""Normal with unknown mean and variance; normal-inverse-gamma prior.

In the box u = (x - origin)/scale: t = (u, u²), η = (m/v, -1/2v), A = m²/2v + ½ log v with m, v the
mean and variance of u. The prior σ² ~ InverseGamma(a, b), mean | σ² ~ N(m₀, σ²/κ) (errata E13)
has λ₁ = (κm₀, κm₀² + 2b) and counts its records twice, λ₂ = (κ, 2a).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from noisewise.artifact import Bounds, PowerSums
from noisewise.models.exponential_family import variates
from noisewise.models.exponential_family.family import Conjugate, Domain, Family
from noisewise.priors import NormalInverseGamma

FLOOR = 1e-9
"""Least variance of a projected statistic, in the box."""


@dataclass(frozen=True)
class Normal(Family):
    """Parameters in the user's units, statistics in the box of the release."""

    origin: float = 0.0
    scale: float = 1.0
    name: ClassVar[str] = "normal"
    parameters: ClassVar[tuple[str, ...]] = ("mean", "sigma2")
    domains: ClassVar[tuple[Domain, ...]] = ("real", "positive")
    prior: ClassVar[type] = NormalInverseGamma

    @classmethod
    def for_release(cls, model: Mapping[str, Any], statistic: PowerSums) -> Normal:
        """The box is the release's own."""
        return cls(statistic.origin, statistic.scale)

    @property
    def standard(self) -> Normal:
        """Of the box."""
        return Normal()

    def to_standard(self, x: np.ndarray) -> np.ndarray:
        """u of x."""
        return (x - self.origin) / self.scale

    def from_standard(self, theta: np.ndarray) -> np.ndarray:
        """Mean and variance of x from those of u."""
        return np.asarray(
            theta * np.array([self.scale, self.scale**2]) + np.array([self.origin, 0.0])
        )

    def natural(self, theta: jax.Array) -> jax.Array:
        """(m/v, -1/2v) in the box."""
        m, v = (theta[0] - self.origin) / self.scale, theta[1] / self.scale**2
        return jnp.stack([m / v, -0.5 / v])

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """-η₁²/4η₂ - ½ log(-2η₂)."""
        return -(eta[0] ** 2) / (4 * eta[1]) - 0.5 * jnp.log(-2 * eta[1])

    def statistic(self, x: jax.Array) -> jax.Array:
        """(u, u²)."""
        u = (x - self.origin) / self.scale
        return jnp.stack([u, u * u])

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """Φ((u - m)/√v)."""
        v = -0.5 / eta[1]
        u = (x - self.origin) / self.scale
        return ndtr((u - eta[0] * v) / jnp.sqrt(v))

    def default_prior(self, bounds: Bounds) -> NormalInverseGamma:
        """A mean about the interval's middle, a deviation around a third of its half-width."""
        unit = bounds.half_width
        mean, precision = np.array([bounds.centre]), np.array([[0.1]])
        return NormalInverseGamma(mean, precision, 2.0, 0.2 * unit**2)

    def conjugate(self, prior: NormalInverseGamma) -> Conjugate:
        """In the box."""
        kappa, m = float(prior.precision[0, 0]), (float(prior.mean[0]) - self.origin) / self.scale
        rate = prior.rate / self.scale**2
        return Conjugate(
            jnp.array([kappa * m, kappa * m**2 + 2 * rate]), jnp.array([kappa, 2 * prior.shape])
        )

    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """σ² inverse gamma, then the mean; back in the user's units."""
        first, second = jax.random.split(key)
        kappa, twice = given.counts[..., 0], given.counts[..., 1]
        m = given.sums[..., 0] / kappa
        rate = (given.sums[..., 1] - kappa * m**2) / 2
        v = rate / variates.gamma(first, twice / 2)
        m = m + jnp.sqrt(v / kappa) * jax.random.normal(second, m.shape)
        return jnp.stack([self.origin + self.scale * m, self.scale**2 * v], axis=-1)

    def valid(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """A sum of squares above what its mean requires."""
        return s[..., 1] * n > s[..., 0] ** 2

    def nearest(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """The sum of squares raised to a hair above what the mean requires."""
        least = s[..., 0] ** 2 / n + n * FLOOR
        return jnp.stack([s[..., 0], jnp.maximum(s[..., 1], least)], axis=-1)

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """One value."""
        return rng.normal(theta[..., 0], np.sqrt(theta[..., 1]))

    def mean(self, theta: np.ndarray) -> np.ndarray:
        """The mean itself."""
        return np.asarray(theta[..., 0])

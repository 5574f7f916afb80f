"""Exponential, gamma and normal columns, with their conjugate priors.

Gamma with a known shape k (k = 1: exponential): t(x) = x, η = -rate, A = -k log(-η), and a Gamma
prior of the rate.

Normal with unknown mean and variance. In the box u = (x - origin)/scale of the release t = (u, u²),
η = (m/v, -1/2v), A = m²/2v + ½ log v with m, v the mean and variance of u. The prior
σ² ~ InverseGamma(a, b), mean | σ² ~ N(m₀, σ²/κ) (errata E13) has λ₁ = (κm₀, κm₀² + 2b) and counts
its records twice, λ₂ = (κ, 2a).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammainc, ndtr

from noisewise.artifact import Bounds, PowerSums
from noisewise.models.exponential_family.family import (
    TINY,
    Conjugate,
    Domain,
    Family,
    gamma_variates,
)
from noisewise.priors import Gamma as GammaPrior
from noisewise.priors import NormalInverseGamma

LEAST_BOX_VARIANCE = 1e-9
"""Least variance, in the box, of a sum of squares that was raised to be possible (chosen)."""


@dataclass(frozen=True)
class Gamma(Family):
    """Density ∝ x^(k-1) exp(-rate x) on x > 0, k the known ``shape``."""

    shape: float = 1.0
    name: ClassVar[str] = "gamma"
    parameters: ClassVar[tuple[str, ...]] = ("rate",)
    domains: ClassVar[tuple[Domain, ...]] = ("positive",)
    support: ClassVar[tuple[float, float]] = (0.0, np.inf)
    prior: ClassVar[type] = GammaPrior

    def natural(self, theta: jax.Array) -> jax.Array:
        """Return -rate."""
        return -theta

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """Return -k log(-η)."""
        return -self.shape * jnp.log(-eta[0])

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """Return the regularised incomplete gamma function."""
        inside = jnp.maximum(x, TINY)
        return jnp.asarray(jnp.where(x <= 0, 0.0, gammainc(self.shape, -eta[0] * inside)))

    def default_prior(self, bounds: Bounds) -> GammaPrior:
        """Return a prior that counts as one record at a quarter of the interval's upper end."""
        return GammaPrior(self.shape, bounds.upper / 4)

    def conjugate(self, prior: GammaPrior) -> Conjugate:
        """Return λ₁ = rate and λ₂ with kλ₂ = shape - 1."""
        return Conjugate(jnp.array([prior.rate]), jnp.array([(prior.shape - 1) / self.shape]))

    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """Draw from Gamma(kλ₂ + 1, λ₁)."""
        return jnp.asarray(gamma_variates(key, self.shape * given.counts + 1) / given.sums)

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """Draw one waiting time for each θ."""
        return rng.gamma(self.shape, 1 / theta[..., 0])


@dataclass(frozen=True)
class Exponential(Gamma):
    """Density rate · exp(-rate x) on x > 0: gamma of shape 1, with a CDF in closed form."""

    name: ClassVar[str] = "exponential"

    @classmethod
    def for_release(cls, model: Mapping[str, Any], statistic: PowerSums) -> Exponential:
        """Return the family, which has no known parameter."""
        return cls()

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """Return 1 - exp(ηx)."""
        return -jnp.expm1(eta[0] * jnp.maximum(x, 0.0))


@dataclass(frozen=True)
class Normal(Family):
    """Normal values: parameters in the user's units, statistics in the box of the release."""

    origin: float = 0.0
    scale: float = 1.0
    name: ClassVar[str] = "normal"
    parameters: ClassVar[tuple[str, ...]] = ("mean", "sigma2")
    domains: ClassVar[tuple[Domain, ...]] = ("real", "positive")
    prior: ClassVar[type] = NormalInverseGamma

    @classmethod
    def for_release(cls, model: Mapping[str, Any], statistic: PowerSums) -> Normal:
        """Return the family in the box of the release."""
        return cls(statistic.origin, statistic.scale)

    @property
    def standard(self) -> Normal:
        """Return the family whose units are the box's own."""
        return Normal()

    def to_standard(self, x: np.ndarray) -> np.ndarray:
        """Return u of x."""
        return (x - self.origin) / self.scale

    def from_standard(self, theta: np.ndarray) -> np.ndarray:
        """Return mean and variance of x from those of u."""
        return np.asarray(
            theta * np.array([self.scale, self.scale**2]) + np.array([self.origin, 0.0])
        )

    def natural(self, theta: jax.Array) -> jax.Array:
        """Return (m/v, -1/2v) in the box."""
        m, v = (theta[0] - self.origin) / self.scale, theta[1] / self.scale**2
        return jnp.stack([m / v, -0.5 / v])

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """Return -η₁²/4η₂ - ½ log(-2η₂)."""
        return -(eta[0] ** 2) / (4 * eta[1]) - 0.5 * jnp.log(-2 * eta[1])

    def statistic(self, x: jax.Array) -> jax.Array:
        """Return (u, u²)."""
        u = (x - self.origin) / self.scale
        return jnp.stack([u, u * u])

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """Return Φ((u - m)/√v)."""
        v = -0.5 / eta[1]
        u = (x - self.origin) / self.scale
        return ndtr((u - eta[0] * v) / jnp.sqrt(v))

    def default_prior(self, bounds: Bounds) -> NormalInverseGamma:
        """Return a prior with its mean mid-interval, deviation about a third of the half-width."""
        unit = bounds.half_width
        mean, precision = np.array([bounds.centre]), np.array([[0.1]])
        return NormalInverseGamma(mean, precision, 2.0, 0.2 * unit**2)

    def conjugate(self, prior: NormalInverseGamma) -> Conjugate:
        """Return λ in the box."""
        kappa, m = float(prior.precision[0, 0]), (float(prior.mean[0]) - self.origin) / self.scale
        rate = prior.rate / self.scale**2
        return Conjugate(
            jnp.array([kappa * m, kappa * m**2 + 2 * rate]), jnp.array([kappa, 2 * prior.shape])
        )

    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """Draw σ² from its inverse gamma, then the mean; return them in the user's units."""
        variance_key, mean_key = jax.random.split(key)
        kappa, twice_shape = given.counts[..., 0], given.counts[..., 1]
        m = given.sums[..., 0] / kappa
        rate = (given.sums[..., 1] - kappa * m**2) / 2
        v = rate / gamma_variates(variance_key, twice_shape / 2)
        m = m + jnp.sqrt(v / kappa) * jax.random.normal(mean_key, m.shape)
        return jnp.stack([self.origin + self.scale * m, self.scale**2 * v], axis=-1)

    def valid(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """Tell whether the sum of squares is above what the sum requires."""
        return s[..., 1] * n > s[..., 0] ** 2

    def nearest(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """Raise the sum of squares to just above what the sum requires."""
        least = s[..., 0] ** 2 / n + n * LEAST_BOX_VARIANCE
        return jnp.stack([s[..., 0], jnp.maximum(s[..., 1], least)], axis=-1)

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """Draw one value for each θ."""
        return rng.normal(theta[..., 0], np.sqrt(theta[..., 1]))

    def mean(self, theta: np.ndarray) -> np.ndarray:
        """Return the mean, which is the first parameter."""
        return np.asarray(theta[..., 0])

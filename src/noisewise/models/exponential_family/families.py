"""Bernoulli, binomial, categorical, geometric, Poisson, exponential, gamma and normal columns.

    family        t(x)      η             A(η)               prior      λ₁          λ₂
    binomial      x         log p/(1-p)   m log(1 + e^η)     Beta       α           (α + β)/m
    categorical   one-hot   log p         log Σ e^η          Dirichlet  α           Σα
    geometric     x         log(1-p)      η - log(1 - e^η)   Beta       α + β - 1   α - 1
    Poisson       x         log rate      e^η                Gamma      shape       rate
    gamma         x         -rate         -k log(-η)         Gamma      rate        (shape - 1)/k

Bernoulli is binomial with m = 1 trial, exponential is gamma with the known shape k = 1. Sums of
binomial records and counts of categories are bounded by themselves: nothing is left out or clamped.
One record moves two counts (errata E3). Geometric records are 1, 2, 3, …, trials up to and
including the first success, as in NumPy and SciPy (not failures, which start at 0).

Normal with unknown mean and variance: in the box u = (x - origin)/scale of the release t = (u, u²),
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
from jax.scipy.special import betainc, gammainc, gammaincc, gammaln, logsumexp, ndtr

from noisewise.artifact import Bounds, Level, PowerSums
from noisewise.models.exponential_family.family import (
    FAMILIES,
    TINY,
    Conjugate,
    Domain,
    Family,
    dirichlet_variates,
    find_family,
    gamma_variates,
    register_family,
)
from noisewise.priors import Beta, Dirichlet, NormalInverseGamma
from noisewise.priors import Gamma as GammaPrior

MAX_TRIALS_SUMMED = 64
"""Trials up to which a binomial CDF is a plain sum (chosen): short, and quick to differentiate."""
LEAST_TOTAL = 1e-9
"""Chosen: counts that add up to less are scaled as if they added up to this."""
LEAST_BOX_VARIANCE = 1e-9
"""Least variance, in the box, of a sum of squares that was raised to be possible (chosen)."""


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
        """Return the log odds."""
        return jnp.log(theta) - jnp.log1p(-theta)

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """Return m log(1 + e^η)."""
        return self.trials * jax.nn.softplus(eta[0])

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """Sum m + 1 terms where that is short; else use the incomplete beta function."""
        m, k = self.trials, jnp.floor(x)
        if m <= MAX_TRIALS_SUMMED:
            j = jnp.arange(m + 1.0)
            choose = gammaln(m + 1.0) - gammaln(j + 1) - gammaln(m - j + 1)
            term = jnp.exp(choose + j * eta[0] - self.log_partition(eta))
            return jnp.sum(jnp.where(j <= k, term, 0.0))
        inside = jnp.clip(k, 0.0, m - 1.0)
        value = betainc(m - inside, inside + 1, jax.nn.sigmoid(-eta[0]))
        return jnp.where(k < 0, 0.0, jnp.where(k >= m, 1.0, value))

    def default_prior(self, bounds: Bounds) -> Beta:
        """Return the uniform prior."""
        return Beta(1.0, 1.0)

    def conjugate(self, prior: Beta) -> Conjugate:
        """Return λ₁ = α and λ₂, which counts records of m trials each."""
        return Conjugate(
            jnp.array([prior.alpha]), jnp.array([(prior.alpha + prior.beta) / self.trials])
        )

    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """Draw from Beta(λ₁, m λ₂ - λ₁)."""
        failures = self.trials * given.counts - given.sums
        return dirichlet_variates(key, jnp.concatenate([given.sums, failures], axis=-1))[..., :1]

    def valid(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """Tell whether s lies between no successes and all trials of n records."""
        return (s[..., 0] >= 0) & (s[..., 0] <= n * self.trials)

    def nearest(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """Clamp s to what n records can have."""
        return jnp.clip(s, 0.0, (jnp.asarray(n) * self.trials)[..., None])

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """Draw the successes of one record for each θ."""
        return rng.binomial(self.trials, theta[..., 0])


@dataclass(frozen=True)
class Bernoulli(Binomial):
    """Binomial records of one trial: 0 or 1."""

    name: ClassVar[str] = "bernoulli"

    @classmethod
    def for_release(cls, model: Mapping[str, Any], statistic: PowerSums) -> Bernoulli:
        """Return the family, which has no known parameter."""
        return cls()


@dataclass(frozen=True)
class Categorical(Family):
    """One of ``levels``, a public list, with probabilities ``p[level]``."""

    levels: tuple[Level, ...] = ("0", "1")
    name: ClassVar[str] = "categorical"
    parameters: ClassVar[tuple[str, ...]] = ("p",)
    domains: ClassVar[tuple[Domain, ...]] = ("unit",)
    whole: ClassVar[bool] = True
    prior: ClassVar[type] = Dirichlet

    @property
    def names(self) -> tuple[str, ...]:
        """Return ``p[level]`` for every level."""
        return tuple(f"p[{level}]" for level in self.levels)

    @property
    def dimension(self) -> int:
        """Return the number of levels: the statistic has one count for each."""
        return len(self.levels)

    def natural(self, theta: jax.Array) -> jax.Array:
        """Return log p."""
        return jnp.log(theta)

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """Return log Σ e^η."""
        return logsumexp(eta)

    def statistic(self, x: jax.Array) -> jax.Array:
        """Return the one-hot vector of a position in the list of levels."""
        place = jnp.arange(len(self.levels))
        return jnp.where(place == x, 1.0, 0.0)

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """Return P(position in the list ≤ x)."""
        place = jnp.arange(len(self.levels))
        return jnp.sum(jnp.where(place <= jnp.floor(x), jax.nn.softmax(eta), 0.0))

    def default_prior(self, bounds: Bounds) -> Dirichlet:
        """Return the uniform prior over the simplex."""
        return Dirichlet(np.ones(len(self.levels)))

    def conjugate(self, prior: Dirichlet) -> Conjugate:
        """Return λ₁ = α and its sum; the counts state n themselves."""
        return Conjugate(jnp.asarray(prior.alpha), jnp.array([float(prior.alpha.sum())]))

    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """Draw from Dirichlet(λ₁)."""
        return dirichlet_variates(key, given.sums)

    def valid(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """Tell whether no count is below zero."""
        return (s >= 0).all(axis=-1)

    def nearest(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """Raise negative counts to zero and scale the rest to add up to n."""
        above = jnp.maximum(s, 0.0)
        total = jnp.maximum(above.sum(axis=-1, keepdims=True), LEAST_TOTAL)
        return above * jnp.asarray(n)[..., None] / total

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """Draw a position in the list of levels for each θ."""
        above = theta.cumsum(axis=-1)
        place = (rng.random(above.shape[:-1])[..., None] > above).sum(axis=-1)
        return np.asarray(np.minimum(place, len(self.levels) - 1))

    def mean(self, theta: np.ndarray) -> np.ndarray:
        """Return NaN: levels have no mean (``Posterior.predict`` gives probabilities)."""
        return np.full(theta.shape[:-1], np.nan)


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
        """Return log(1-p)."""
        return jnp.log1p(-theta)

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """Return η - log(1 - e^η)."""
        return eta[0] - jnp.log(-jnp.expm1(eta[0]))

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """Return 1 - (1-p)^floor(x)."""
        return -jnp.expm1(eta[0] * jnp.maximum(jnp.floor(x), 0.0))

    def default_prior(self, bounds: Bounds) -> Beta:
        """Return the uniform prior."""
        return Beta(1.0, 1.0)

    def conjugate(self, prior: Beta) -> Conjugate:
        """Return λ; each record is one success after x - 1 failures."""
        return Conjugate(jnp.array([prior.alpha + prior.beta - 1]), jnp.array([prior.alpha - 1]))

    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """Draw from Beta(λ₂ + 1, λ₁ - λ₂)."""
        shapes = jnp.concatenate([given.counts + 1, given.sums - given.counts], axis=-1)
        return dirichlet_variates(key, shapes)[..., :1]

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """Draw the trials up to the first success for each θ."""
        return rng.geometric(theta[..., 0])


@dataclass(frozen=True)
class Poisson(Family):
    """P(x) = e^{-rate} rate^x / x! on x = 0, 1, 2, …"""

    name: ClassVar[str] = "poisson"
    parameters: ClassVar[tuple[str, ...]] = ("rate",)
    domains: ClassVar[tuple[Domain, ...]] = ("positive",)
    support: ClassVar[tuple[float, float]] = (0.0, np.inf)
    whole: ClassVar[bool] = True
    prior: ClassVar[type] = GammaPrior

    def natural(self, theta: jax.Array) -> jax.Array:
        """Return log rate."""
        return jnp.log(theta)

    def log_partition(self, eta: jax.Array) -> jax.Array:
        """Return e^η."""
        return jnp.exp(eta[0])

    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """Return the regularised incomplete gamma function of floor(x) + 1."""
        k = jnp.floor(x)
        return jnp.asarray(
            jnp.where(k < 0, 0.0, gammaincc(jnp.maximum(k, 0.0) + 1, jnp.exp(eta[0])))
        )

    def default_prior(self, bounds: Bounds) -> GammaPrior:
        """Return an exponential prior whose mean is the middle of the interval."""
        return GammaPrior(1.0, 1 / max(bounds.centre, 0.5))

    def conjugate(self, prior: GammaPrior) -> Conjugate:
        """Return λ₁ = shape and λ₂ = rate."""
        return Conjugate(jnp.array([prior.shape]), jnp.array([prior.rate]))

    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """Draw from Gamma(λ₁, λ₂)."""
        return jnp.asarray(gamma_variates(key, given.sums) / given.counts)

    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """Draw one count for each θ."""
        return rng.poisson(theta[..., 0])


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


for _family in (Bernoulli, Binomial, Categorical, Exponential, Gamma, Geometric, Normal, Poisson):
    register_family(_family)

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Exponential",
    "Gamma",
    "Geometric",
    "Normal",
    "Poisson",
    "find_family",
    "register_family",
]

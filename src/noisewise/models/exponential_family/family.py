"""What a family says of itself; everything else follows by automatic differentiation.

An exponential family has density h(x) exp(ηᵀt(x) - A(η)) (thesis 4.1). A family file gives the
log-partition function A, the statistic t, the CDF in natural parameters, the map from the user's
parameters to η, its conjugate prior, and which sums are possible. Moments of t, also of records
inside an interval (thesis eq. 4.1, 4.3, 4.4), are derivatives of these (``moments.py``).

Conjugacy (thesis B.1.1): a prior exp(λ₁ᵀη - λ₂A(η)) becomes λ₁ + s, λ₂ + n. ``Conjugate`` holds λ;
λ₂ may be a vector where a prior counts its records more than once (the normal's κ and 2a).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError, Bounds, PowerSums

Domain = Literal["unit", "positive", "real"]
"""Where a parameter lives: (0, 1), (0, ∞) or everywhere."""


class Conjugate(NamedTuple):
    """λ₁ (…, statistic) and λ₂ (…, counts): the prior, or the posterior after s and n."""

    sums: Any
    counts: Any

    def updated(self, s: Any, n: Any) -> Conjugate:
        """Conjugate-Update of thesis B.1.1; ``n`` lacks the last axis of ``s``."""
        sums, counts = self.sums + s, self.counts + jnp.asarray(n)[..., None]
        return Conjugate(sums, jnp.broadcast_to(counts, (*sums.shape[:-1], counts.shape[-1])))


@dataclass(frozen=True)
class Family(ABC):
    """One family; fields of a subclass are its known parameters (``trials``, ``shape``).

    Frozen and hashable, so that a compiled sampler is tied to it.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    domains: ClassVar[tuple[Domain, ...]]
    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    whole: ClassVar[bool] = False
    prior: ClassVar[type]

    @classmethod
    def for_release(cls, model: Mapping[str, Any], statistic: PowerSums) -> Family:
        """The family with its known parameters, from the words of a release."""
        names = [field.name for field in fields(cls)]
        absent = [n for n in names if n not in model]
        if absent:
            raise ArgumentError(f"release: its model lacks {absent[0]!r}, which {cls.name} needs")
        return cls(**{n: model[n] for n in names})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the draws."""
        return self.parameters

    @property
    def dimension(self) -> int:
        """Components of the statistic."""
        return len(self.parameters)

    # -- the model -------------------------------------------------------------------------

    @abstractmethod
    def natural(self, theta: jax.Array) -> jax.Array:
        """η of one parameter vector θ."""

    @abstractmethod
    def log_partition(self, eta: jax.Array) -> jax.Array:
        """A(η)."""

    @abstractmethod
    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """P(X ≤ x), differentiable in η (and in x where continuous); 0 and 1 outside."""

    def statistic(self, x: jax.Array) -> jax.Array:
        """t(x) of one record; x itself unless overridden."""
        return jnp.asarray(x)[None]

    # -- units -----------------------------------------------------------------------------

    @property
    def standard(self) -> Family:
        """The same family in units of its own, so that one compilation serves all releases."""
        return self

    def to_standard(self, x: np.ndarray) -> np.ndarray:
        """Records in these units."""
        return x

    def from_standard(self, theta: np.ndarray) -> np.ndarray:
        """Parameters (…, parameter) back in the user's units."""
        return theta

    # -- the prior -------------------------------------------------------------------------

    @abstractmethod
    def default_prior(self, bounds: Bounds) -> Any:
        """Weak, in the user's units."""

    @abstractmethod
    def conjugate(self, prior: Any) -> Conjugate:
        """λ of a prior of the family's own type."""

    @abstractmethod
    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """θ (…, parameter) given λ, for a whole batch."""

    # -- records ---------------------------------------------------------------------------

    def valid(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """Whether s (…, statistic) can be the sum of n records; by ``support`` where t(x) = x."""
        low, high = self.support
        return (s[..., 0] >= n * low) & (s[..., 0] <= n * high)

    def nearest(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """A valid s close to an impossible one; where it is used it is counted (errata E18)."""
        low, high = self.support
        return jnp.clip(s, (jnp.asarray(n) * low)[..., None], (jnp.asarray(n) * high)[..., None])

    @abstractmethod
    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """One new record for each θ (…, parameter)."""

    def mean(self, theta: np.ndarray) -> np.ndarray:
        """E[x] for each θ (…, parameter): the derivative of A where t(x) = x."""
        flat = jnp.asarray(theta).reshape(-1, theta.shape[-1])
        slope: Any = jax.vmap(lambda th: jax.grad(self.log_partition)(self.natural(th))[0])
        return np.asarray(slope(flat)).reshape(theta.shape[:-1])


@partial(jax.jit, static_argnums=0)
def draw(family: Family, key: jax.Array, given: Conjugate) -> jax.Array:
    """``family.draw``, compiled once for a family and a shape."""
    return family.draw(key, given)

"""The contract of a family; everything else follows from it by automatic differentiation.

An exponential family has density h(x) exp(ηᵀt(x) - A(η)) (thesis 4.1). A family gives the
log-partition function A, the statistic t, the CDF in natural parameters, the map from the user's
parameters to η, its conjugate prior, and which sums are possible. Moments of t, also of records
inside an interval (thesis eq. 4.1, 4.3, 4.4), are derivatives of these (``truncation.py``).

Conjugacy (thesis B.1.1): a prior exp(λ₁ᵀη - λ₂A(η)) becomes λ₁ + s, λ₂ + n. ``Conjugate`` holds λ;
λ₂ may be a vector where a prior counts its records more than once (the normal's κ and 2a).

Conjugate posteriors are gamma, beta, Dirichlet and normal laws; ``gamma_variates`` and
``dirichlet_variates`` draw them for a whole batch, for use in ``Family.draw``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError, Bounds, PowerSums
from noisewise.numerics.distributions import gamma as gamma_above_one

Domain = Literal["unit", "positive", "real"]
"""Where a parameter lives: (0, 1), (0, ∞) or everywhere."""

TINY = 1e-300
"""Chosen: stands in for zero where zero would be divided by, or taken to a power."""


class Conjugate(NamedTuple):
    """λ₁ (…, statistic) and λ₂ (…, counts): the prior, or the posterior after s and n.

    Example:
        >>> import noisewise as nw, jax.numpy as jnp
        >>> prior = nw.Conjugate(jnp.array([1.0]), jnp.array([2.0]))
        >>> after = prior.updated(jnp.array([30.0]), jnp.array(40.0))
        >>> after.sums.tolist(), after.counts.tolist()
        ([31.0], [42.0])
    """

    sums: jax.Array
    counts: jax.Array

    def updated(self, s: jax.Array, n: jax.Array) -> Conjugate:
        """Return λ after n records that add up to s (thesis B.1.1, Conjugate-Update).

        Args:
            s: sums of the statistic, shape (…, statistic).
            n: numbers of records, shape (…): without the last axis of ``s``.
        """
        sums, counts = self.sums + s, self.counts + jnp.asarray(n)[..., None]
        return Conjugate(sums, jnp.broadcast_to(counts, (*sums.shape[:-1], counts.shape[-1])))

    def repeated(self, *lead: int) -> Conjugate:
        """Return the same λ for every entry of a batch with these leading axes."""
        arrays = map(jnp.asarray, self)
        return Conjugate(*(jnp.broadcast_to(a, (*lead, *a.shape)) for a in arrays))


@dataclass(frozen=True)
class Family(ABC):
    """A one-column exponential family; its dataclass fields are known parameters (``trials``).

    Frozen and hashable, so that a compiled sampler is tied to it. Class attributes: ``name`` is the
    word in the release file; ``parameters`` and ``domains`` are the names of the unknown parameters
    and where each lives; ``support`` holds the least and the greatest record; ``whole`` says that
    records are whole numbers; ``prior`` is the type of its conjugate prior.

    Example:
        >>> import noisewise as nw
        >>> from noisewise.models.exponential_family.families import Poisson
        >>> isinstance(Poisson(), nw.Family), Poisson().parameters, Poisson.prior.__name__
        (True, ('rate',), 'Gamma')
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    domains: ClassVar[tuple[Domain, ...]]
    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    whole: ClassVar[bool] = False
    prior: ClassVar[type]

    @classmethod
    def for_release(cls, model: Mapping[str, Any], statistic: PowerSums) -> Family:
        """Return the family with the known parameters that a release states in its model."""
        known = [field.name for field in fields(cls)]
        absent = [name for name in known if name not in model]
        if absent:
            raise ArgumentError(f"release: its model lacks {absent[0]!r}, which {cls.name} needs")
        return cls(**{name: model[name] for name in known})

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the draws."""
        return self.parameters

    @property
    def dimension(self) -> int:
        """Return the number of components of the statistic."""
        return len(self.parameters)

    # -- the model -------------------------------------------------------------------------

    @abstractmethod
    def natural(self, theta: jax.Array) -> jax.Array:
        """Return η of one parameter vector θ."""

    @abstractmethod
    def log_partition(self, eta: jax.Array) -> jax.Array:
        """Return A(η)."""

    @abstractmethod
    def cdf(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """Return P(X ≤ x), differentiable in η (and in x where continuous); 0 and 1 outside."""

    def statistic(self, x: jax.Array) -> jax.Array:
        """Return t(x) of one record; x itself unless overridden."""
        return jnp.asarray(x)[None]

    # -- units -----------------------------------------------------------------------------

    @property
    def standard(self) -> Family:
        """Return the family in units of its own, so that one compilation serves all releases."""
        return self

    def to_standard(self, x: np.ndarray) -> np.ndarray:
        """Convert records to the units of ``standard``."""
        return x

    def from_standard(self, theta: np.ndarray) -> np.ndarray:
        """Convert parameters (…, parameter) from those units to the user's."""
        return theta

    # -- the prior -------------------------------------------------------------------------

    @abstractmethod
    def default_prior(self, bounds: Bounds) -> object:
        """Return a weak prior in the user's units, made from the public bounds alone."""

    @abstractmethod
    def conjugate(self, prior: Any) -> Conjugate:
        """Return λ of a prior of the family's own type."""

    @abstractmethod
    def draw(self, key: jax.Array, given: Conjugate) -> jax.Array:
        """Draw θ (…, parameter) given λ, for a whole batch."""

    # -- records ---------------------------------------------------------------------------

    def valid(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """Tell whether s (…, statistic) can be the sum of n records; here, where t(x) = x."""
        low, high = self.support
        return (s[..., 0] >= n * low) & (s[..., 0] <= n * high)

    def nearest(self, s: jax.Array, n: jax.Array) -> jax.Array:
        """Return a possible s near an impossible one; callers count its use (errata E18)."""
        low, high = self.support
        return jnp.clip(s, (jnp.asarray(n) * low)[..., None], (jnp.asarray(n) * high)[..., None])

    @abstractmethod
    def records(self, rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """Draw one new record for each θ (…, parameter)."""

    def mean(self, theta: np.ndarray) -> np.ndarray:
        """Return E[x] for each θ (…, parameter): the derivative of A where t(x) = x."""
        flat = jnp.asarray(theta).reshape(-1, theta.shape[-1])
        slopes = jax.vmap(lambda th: jax.grad(self.log_partition)(self.natural(th))[0])(flat)
        return np.asarray(slopes).reshape(theta.shape[:-1])


@partial(jax.jit, static_argnums=0)
def draw_parameters(family: Family, key: jax.Array, given: Conjugate) -> jax.Array:
    """Draw θ by ``family.draw``, compiled once for a family and a shape."""
    return family.draw(key, given)


def gamma_variates(key: jax.Array, shape: jax.Array) -> jax.Array:
    """Draw Gamma(shape, 1) for any shape > 0: below one, Gamma(a) = Gamma(a + 1) · U^(1/a)."""
    gamma_key, boost_key = jax.random.split(key)
    small = shape < 1
    value = gamma_above_one(gamma_key, jnp.where(small, shape + 1, shape))
    uniform = jax.random.uniform(boost_key, shape.shape, minval=TINY)
    return jnp.where(small, value * uniform ** (1 / jnp.where(small, shape, 1.0)), value)


def dirichlet_variates(key: jax.Array, alpha: jax.Array) -> jax.Array:
    """Draw probabilities along the last axis from Dirichlet(alpha); Beta where it has two."""
    value = jnp.maximum(gamma_variates(key, alpha), TINY)
    return value / value.sum(axis=-1, keepdims=True)


FAMILIES: dict[str, type[Family]] = {}
"""Every family that the analyst's half knows, by its name in a release (``families.py``)."""
REQUIRED_ATTRIBUTES = ("name", "parameters", "domains", "prior")
"""Class attributes a family must state; its abstract methods come on top."""

F = TypeVar("F", bound=type[Family])


def register_family(family: F) -> F:
    """Make a family known to ``infer``, under its ``name``; usable as a decorator.

    Args:
        family: a subclass of ``noisewise.Family`` that states every part of the contract.

    Returns:
        The family itself.

    Raises:
        ArgumentError: it is no Family, lacks a part, or its name is taken.

    Example:
        >>> import noisewise as nw
        >>> from noisewise.models.exponential_family.families import Exponential
        >>> @nw.register_family
        ... class Waiting(Exponential):
        ...     name = "waiting"
        >>> Waiting.parameters
        ('rate',)
    """
    if not (isinstance(family, type) and issubclass(family, Family)):
        raise ArgumentError(f"family: must be a subclass of noisewise.Family, not {family!r}")
    methods = sorted(Family.__abstractmethods__)
    absent = [part for part in REQUIRED_ATTRIBUTES if not hasattr(family, part)]
    absent += [method for method in methods if method in family.__abstractmethods__]
    if absent:
        raise ArgumentError(
            f"family: {family.__name__} lacks {', '.join(absent)}; a family has "
            f"{', '.join((*REQUIRED_ATTRIBUTES, *methods))}"
        )
    domains = get_args(Domain)
    if len(family.domains) != len(family.parameters) or not set(family.domains) <= set(domains):
        raise ArgumentError(
            f"family: {family.__name__} must state one domain per parameter, out of "
            f"{', '.join(domains)}, not {family.domains!r} for {family.parameters!r}"
        )
    if family.name in FAMILIES:
        raise ArgumentError(
            f"family: there is a {family.name!r} already, among {', '.join(FAMILIES)}; "
            "choose another name"
        )
    FAMILIES[family.name] = family
    return family


def find_family(name: object) -> type[Family]:
    """Return the family of that name, as a release states it."""
    if not isinstance(name, str) or name not in FAMILIES:
        raise ArgumentError(
            f"family: {name!r} is unknown; known are {', '.join(FAMILIES)}. "
            "Make your own known with nw.register_family(family)"
        )
    return FAMILIES[name]

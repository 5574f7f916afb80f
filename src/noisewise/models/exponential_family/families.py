"""The list of families that the analyst's half knows, which a user may extend.

``register_family`` adds a family of one's own (docs/guide-your-own-family.md).
"""

from __future__ import annotations

from typing import TypeVar, get_args

from noisewise.artifact import ArgumentError
from noisewise.models.exponential_family.continuous_families import Exponential, Gamma, Normal
from noisewise.models.exponential_family.discrete_families import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Poisson,
)
from noisewise.models.exponential_family.family import Domain, Family

FAMILIES: dict[str, type[Family]] = {
    f.name: f
    for f in (Bernoulli, Binomial, Categorical, Exponential, Gamma, Geometric, Normal, Poisson)
}
"""Every family by the name it has in a release."""

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

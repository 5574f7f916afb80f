"""One small file per family, and the list of them, which a user may extend.

``register_family`` adds a family of one's own (docs/guide-your-own-family.md).
"""

from __future__ import annotations

from noisewise.artifact import ArgumentError
from noisewise.models.exponential_family.families.binomial import Bernoulli, Binomial
from noisewise.models.exponential_family.families.categorical import Categorical
from noisewise.models.exponential_family.families.exponential import Exponential
from noisewise.models.exponential_family.families.gamma import Gamma
from noisewise.models.exponential_family.families.geometric import Geometric
from noisewise.models.exponential_family.families.normal import Normal
from noisewise.models.exponential_family.families.poisson import Poisson
from noisewise.models.exponential_family.family import Family

FAMILIES: dict[str, type[Family]] = {
    f.name: f
    for f in (Bernoulli, Binomial, Categorical, Exponential, Gamma, Geometric, Normal, Poisson)
}


def register_family(family: type[Family]) -> type[Family]:
    """Make a family known to ``infer``, under its ``name``; usable as a decorator."""
    if not (isinstance(family, type) and issubclass(family, Family)):
        raise ArgumentError("family: must be a subclass of noisewise.Family")
    if family.name in FAMILIES:
        raise ArgumentError(f"family: there is a {family.name!r} already; choose another name")
    FAMILIES[family.name] = family
    return family


def find(name: object) -> type[Family]:
    """By the name in a release."""
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
    "find",
    "register_family",
]

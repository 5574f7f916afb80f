"""Exponential families: from one noisy sum to a posterior (thesis chapter 4, appendix B)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noisewise.artifact import Release
from noisewise.models.exponential_family import exact, gibbs, naive
from noisewise.models.exponential_family.families import FAMILIES
from noisewise.models.exponential_family.families import register_family as register
from noisewise.models.exponential_family.family import Conjugate, Family
from noisewise.models.exponential_family.problem import combine_problems as together
from noisewise.models.exponential_family.problem import family_problem as problem

METHODS: dict[str, Callable[..., Any]] = {
    "exact": exact.run,
    "gibbs": gibbs.run,
    "naive": naive.run,
}


MOST = 200
"""Groups of a normal column up to which ``exact``, a second each, is the default."""


def best(release: Release) -> str:
    """The method to use where none is named."""
    distribution = release.model.get("distribution")
    if distribution == "normal":
        groups = 1 if release.groups is None else len(release.groups.keys)
        return "gibbs" if release.n is None or groups > MOST else "exact"
    return "exact" if exact.has_exact_method(distribution) else "gibbs"


__all__ = ["FAMILIES", "METHODS", "Conjugate", "Family", "best", "problem", "register", "together"]

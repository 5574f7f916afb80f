"""Exponential families: from one noisy sum to a posterior (thesis chapter 4, appendix B)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noisewise.artifact import Release
from noisewise.infer.expfam import exact, gibbs, naive
from noisewise.infer.expfam.families import FAMILIES, register
from noisewise.infer.expfam.family import Conjugate, Family
from noisewise.infer.expfam.problem import problem

METHODS: dict[str, Callable[..., Any]] = {
    "exact": exact.run,
    "gibbs": gibbs.run,
    "naive": naive.run,
}


def best(release: Release) -> str:
    """The method to use where none is named."""
    return "exact" if exact.serves(release.model.get("distribution")) else "gibbs"


__all__ = ["FAMILIES", "METHODS", "Conjugate", "Family", "best", "problem", "register"]

"""Discrete graphical models from noisy contingency tables (thesis chapter 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from noisewise.artifact import ArgumentError, Release
from noisewise.models.graphical_model import bayes, cgm, naive
from noisewise.models.graphical_model.model import GraphicalModel
from noisewise.models.graphical_model.posterior import GraphicalPosterior
from noisewise.models.graphical_model.problem import problems

__all__ = ["METHODS", "GraphicalModel", "GraphicalPosterior", "run"]

METHODS: dict[str, Callable[..., Any]] = {
    "cgm": cgm.run,
    "naive-mle": naive.run,
    "bayes": bayes.run,
}
OPTIONS = {"cgm": ("estep", "spread"), "naive-mle": ("lam",), "bayes": ("law",)}
SHARED = ("tied", "inference", "memory")


def run(
    release: Release,
    method: str,
    options: Mapping[str, Any],
    seed: int,
    chains: int,
    draws: int,
    report: Callable[[int, int], None] | None,
) -> Any:
    """One result, or a dictionary of one per group."""
    known = (*SHARED, *OPTIONS[method])
    for option in options:
        if option not in known:
            raise ArgumentError(f"{option}: is no option of {method}, which has {', '.join(known)}")
    own = {k: v for k, v in options.items() if k in OPTIONS[method]}
    found = problems(release, **{k: v for k, v in options.items() if k in SHARED})
    if method == "bayes":
        own |= {"seed": seed, "chains": chains, "draws": draws}
    results = []
    for number, problem in enumerate(found, start=1):
        results.append(METHODS[method](problem, **own))
        if report is not None:
            report(number, len(found))
    if release.groups is None:
        return results[0]
    return dict(zip(release.groups.keys, results, strict=True))

"""Discrete graphical models from noisy contingency tables (thesis chapter 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from noisewise.artifact import ArgumentError, Release
from noisewise.models.graphical_model import collective_em, maximum_likelihood, nuts
from noisewise.models.graphical_model.groups import GraphicalGroups, GraphicalResult, load_graphical
from noisewise.models.graphical_model.model import GraphicalModel
from noisewise.models.graphical_model.posterior import GraphicalPosterior
from noisewise.models.graphical_model.problem import problems

__all__ = [
    "METHODS",
    "GraphicalGroups",
    "GraphicalModel",
    "GraphicalPosterior",
    "load_graphical",
    "run",
]

METHODS: dict[str, Callable[..., Any]] = {
    "cgm": collective_em.run,
    "naive-mle": maximum_likelihood.run,
    "bayes": nuts.run,
}
OPTIONS = {"cgm": ("estep", "spread"), "naive-mle": ("lam",), "bayes": ("law",)}
"""Options of each method."""
SHARED = ("tied", "inference", "memory")
"""Options of every method."""


def run(
    release: Release,
    method: str,
    options: Mapping[str, Any],
    seed: int,
    chains: int,
    draws: int,
    report: Callable[[int, int], None] | None,
) -> GraphicalResult:
    """Infer by the named method; return one result, or ``GraphicalGroups`` of one per group."""
    known = (*SHARED, *OPTIONS[method])
    for option in options:
        if option not in known:
            raise ArgumentError(f"{option}: is no option of {method}, which has {', '.join(known)}")
    own = {k: v for k, v in options.items() if k in OPTIONS[method]}
    given = problems(release, **{k: v for k, v in options.items() if k in SHARED})
    if method == "bayes":
        own |= {"seed": seed, "chains": chains, "draws": draws}
    results: list[Any] = []
    for number, problem in enumerate(given, start=1):
        results.append(METHODS[method](problem, **own))
        if report is not None:
            report(number, len(given))
    if release.groups is None:
        alone: GraphicalModel | GraphicalPosterior = results[0]
        return alone
    grouped: GraphicalGroups[GraphicalModel] | GraphicalGroups[GraphicalPosterior]
    grouped = GraphicalGroups(dict(zip(release.groups.keys, results, strict=True)))
    return grouped

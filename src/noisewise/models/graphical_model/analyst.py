"""The analyst's part of graphical models: problem and methods (thesis chapter 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from noisewise.artifact import ArgumentError, Level, Release
from noisewise.inference.results import Result
from noisewise.models.base import Analyst, Method, Progress, Question
from noisewise.models.graphical_model import collective_em, maximum_likelihood, nuts
from noisewise.models.graphical_model.grouped_results import GraphicalGroups
from noisewise.models.graphical_model.problem import TablesProblem, problems

SHARED_OPTIONS = ("tied", "inference", "memory")
"""Options of the problem itself, whatever the method."""
OPTIONS = {"cgm": ("estep", "spread"), "naive-mle": ("lam",), "bayes": ("law",)}
"""Options of each method."""


@dataclass(frozen=True)
class GroupedTables:
    """The tables of every group (of one where there are no groups), and the method's options."""

    groups: tuple[TablesProblem, ...]
    keys: tuple[Level, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def _fitted(name: str, fit: Callable[..., Result], sampled: bool) -> Method[GroupedTables]:
    """Return a method that fits group after group."""

    def run(
        given: GroupedTables, seed: int, chains: int, draws: int, progress: Progress | None
    ) -> Result:
        for option in given.options:
            if option not in OPTIONS[name]:
                known = ", ".join((*SHARED_OPTIONS, *OPTIONS[name]))
                raise ArgumentError(f"{option}: is no option of {name}, which has {known}")
        own = dict(given.options)
        if sampled:
            own |= {"seed": seed, "chains": chains, "draws": draws}
        results: list[Any] = []
        for number, tables in enumerate(given.groups, start=1):
            results.append(fit(tables, **own))
            if progress is not None:
                progress(number, len(given.groups))
        if given.keys is None:
            alone: Result = results[0]
            return alone
        return GraphicalGroups(dict(zip(given.keys, results, strict=True)))

    return run


class GraphicalAnalyst(Analyst[GroupedTables]):
    """A model over the public levels that accounts for the noise of its tables."""

    summarising = False
    methods: ClassVar[Mapping[str, Method[Any]]] = {
        "cgm": _fitted("cgm", collective_em.run, sampled=False),
        "naive-mle": _fitted("naive-mle", maximum_likelihood.run, sampled=False),
        "bayes": _fitted("bayes", nuts.run, sampled=True),
    }

    def problem(self, releases: Sequence[Release], question: Question) -> GroupedTables:
        """Read the tables of every group."""
        if {"x", "y"} & set(question.words) or question.prior is not None:
            raise ArgumentError("x, y, prior: do not go with a graphical model; see its options")
        (release,) = releases
        shared = {k: v for k, v in question.words.items() if k in SHARED_OPTIONS}
        own = {k: v for k, v in question.words.items() if k not in SHARED_OPTIONS}
        keys = None if release.groups is None else release.groups.keys
        return GroupedTables(tuple(problems(release, **shared)), keys, own)

    def restore(self, common: Mapping[str, Any], attributes: Mapping[str, Any]) -> NoReturn:
        """Raise an ArgumentError: fitted models have a file format of their own."""
        raise ArgumentError("path: a graphical model is not kept as a netCDF posterior")


ANALYST = GraphicalAnalyst()
"""The analyst's part of the model."""

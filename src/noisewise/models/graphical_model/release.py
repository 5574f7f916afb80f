"""Discrete graphical models: contingency tables over cliques of categorical columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Unpack, cast

from noisewise.artifact import ArgumentError, PersonTables, ReleaseError, Tables
from noisewise.models.base import Owner, Word, renaming
from noisewise.models.graphical_model import GraphicalModelRelease
from noisewise.privacy import arguments
from noisewise.privacy.arguments import mapping, shown
from noisewise.privacy.budget import privacy_terms
from noisewise.privacy.options import (
    NoisySumOptions,
    PrivacyOptions,
    command_line_options,
    with_options,
)
from noisewise.privacy.pipeline import ReleaseRequest, publish
from noisewise.privacy.sum_plan import Person


@with_options(NoisySumOptions)
def graphical_model(
    source: Any,
    *,
    cliques: Iterable[Iterable[str]],
    levels: Mapping[str, Iterable[Any]],
    fill: Mapping[str, Any] | None = None,
    other: Mapping[str, Any] | None = None,
    **privacy: Unpack[NoisySumOptions],
) -> GraphicalModelRelease:
    """Release noisy contingency tables over cliques, for a discrete graphical model.

    Args:
        source: path or glob, database URL with ``#table``, data frame, Arrow or Ibis table.
        cliques: tuples of columns, one table each.
        levels: the public list of categories of every column.
        fill: public levels for missing categories; required under replace-one.
        other: ``{column: level}``: the level of the public list that counts what is not on it.
        **privacy: the privacy options, of which ``epsilon`` must be given (`PrivacyOptions`).

    Returns:
        The release, ready to be saved.

    Example:
        >>> import noisewise as nw
        >>> import pandas as pd
        >>> people = pd.DataFrame({"sex": ["f", "m", "f"], "smokes": ["no", "no", "yes"]})
        >>> release = nw.release.graphical_model(
        ...     people,
        ...     cliques=[("sex", "smokes")],
        ...     levels={"sex": ["f", "m"], "smokes": ["no", "yes"]},
        ...     epsilon=1.0,
        ... )
        >>> release.n
        3
    """
    options = PrivacyOptions.of(NoisySumOptions, privacy)
    tables = _tables(cliques, levels)
    groups = arguments.groups(options.groups)
    weighed = None
    if options.unit is not None and options.max_records is None:
        tables = _by_person(tables, options.unit, groups is not None)
        weighed = Person(tables.unit, 2**tables.bits)
        options = dataclasses.replace(options, unit=None)  # the tables name it
    request = ReleaseRequest(
        family="graphical-model",
        model={},
        kinds=(tables.kind,),
        specify=lambda _: (tables,),
        terms=privacy_terms(options, None if groups is None else groups.column),
        options=options,
        coded=tables.columns,
        groups=groups,
        fill=arguments.level_fill(fill, tables.levels),
        takes_other=True,
        other=arguments.other_levels(other, tables.levels),
        weighed=weighed,
    )
    return cast(GraphicalModelRelease, publish(source, request))


def _tables(cliques: object, levels: object) -> Tables:
    if isinstance(cliques, str | bytes) or not isinstance(cliques, Iterable):
        raise ArgumentError(f"cliques: must be a list of tuples of columns, not {shown(cliques)}")
    given = tuple(arguments.names(c, f"cliques[{i}]") for i, c in enumerate(cliques))
    lists = mapping(levels, "levels", "{column: [public list]}")
    listed = {c: arguments.levels(v, f"levels[{shown(c)}]") for c, v in lists.items()}
    used = {c for clique in given for c in clique}
    for column in (c for clique in given for c in clique):
        if column not in listed:
            raise ArgumentError(f"levels: none for column {column!r}; levels are public knowledge")
    for column in listed:
        if column not in used:
            raise ArgumentError(f"levels: {shown(column)} is in no clique")
    if not given:
        raise ArgumentError("cliques: must be one or more sets of columns")
    _distinct(given)
    _connected(given)
    try:
        return Tables(given, listed)
    except ReleaseError as error:
        raise ArgumentError(str(error)) from None


def _distinct(cliques: tuple[tuple[str, ...], ...]) -> None:
    """Refuse a table twice: it would cost its share of the budget twice and say one thing."""
    seen: dict[frozenset[str], int] = {}
    for i, clique in enumerate(cliques):
        first = seen.setdefault(frozenset(clique), i)
        if first != i:
            raise ArgumentError(
                f"cliques: cliques[{i}] has the same columns as cliques[{first}], "
                f"{', '.join(clique)}; every table takes its share of epsilon, so name it once"
            )


def _connected(cliques: tuple[tuple[str, ...], ...]) -> None:
    """Refuse parts that share no column: they are independent models."""
    reached, grew = set(cliques[0]), True
    while grew:
        more = {c for clique in cliques if reached & set(clique) for c in clique}
        grew = not more <= reached
        reached |= more
    for i, clique in enumerate(cliques):
        if not reached & set(clique):
            raise ArgumentError(
                f"cliques: cliques[{i}], {', '.join(clique)}, is not connected with "
                f"cliques[0] by any chain of shared columns: the model would say that they are "
                "independent. Add a clique that joins them, or make a release for each part (with "
                "epsilon shared in proportion to the number of tables the noise is the same)"
            )


def _by_person(tables: Tables, unit: object, grouped: bool) -> PersonTables:
    if grouped:
        raise ArgumentError(
            "max_records: with groups, unit needs it; a person may have records in several of them"
        )
    try:
        return PersonTables(tables.cliques, tables.levels, arguments.name(unit, "unit"))
    except ReleaseError as error:
        raise ArgumentError(str(error)) from None


OWNER = Owner(
    release=graphical_model,
    summary="Release noisy contingency tables over cliques of categorical columns.",
    words=(
        Word("clique", "cliques", "the columns of one table; repeat", required=True),
        Word("levels", "levels", "public categories, for every column; repeat", required=True),
        Word("fill", "fill", "public level for missing entries; repeat", planned=False),
        Word("other", "level", "the level of the public list that counts what is not on it; repeat",
             planned=False),
    ),
    privacy=command_line_options(NoisySumOptions),
    prepare=renaming(clique="cliques"),
)  # fmt: skip
"""The owner's part of the model, for the command line; every trial of a plan takes seconds."""

"""Discrete graphical models: contingency tables over cliques of categorical columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from noisewise.artifact import ArgumentError, Mechanism, Neighbours, Release, ReleaseError, Tables
from noisewise.release import arguments
from noisewise.release.budget import terms
from noisewise.release.plan import Progress
from noisewise.release.publish import Order, publish
from noisewise.release.values import mapping, shown


def graphical_model(
    source: Any,
    *,
    cliques: Iterable[Iterable[str]],
    levels: Mapping[str, Iterable[Any]],
    epsilon: float,
    mechanism: Mechanism = "laplace",
    delta: float | None = None,
    neighbours: Neighbours = "replace-one",
    groups: Mapping[str, Iterable[Any]] | None = None,
    sizes: str | None = None,
    fill: Mapping[str, Any] | None = None,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    progress: Progress | None = None,
) -> Release:
    """Release noisy contingency tables over cliques, for a discrete graphical model.

    Args:
        source: path or glob, database URL with ``#table``, data frame, Arrow or Ibis table.
        cliques: tuples of columns, one table each.
        levels: the public list of categories of every column.
        epsilon: the whole budget.
        mechanism: ``"laplace"`` (pure ε), or ``"gaussian"`` with ``delta`` (zCDP).
        delta: for Gaussian noise.
        neighbours: ``"replace-one"`` (sensitivity 2 per table) or ``"add-remove"`` (1 per table).
        groups: ``{"region": [public list]}`` for one set of tables per group.
        sizes: ``"public"`` where group sizes are public knowledge.
        fill: public levels for missing categories; required under replace-one.
        ledger: path or URL of a budget ledger; the spend is durable before noise is drawn.
        dataset: the ledger's account, where it has several.
        progress: called with rows done and rows in all.
    """
    tables = _tables(cliques, levels)
    keyed = arguments.groups(groups)
    order = Order(
        family="graphical-model",
        model={},
        kinds=(tables.kind,),
        specify=lambda _: (tables,),
        terms=terms(
            epsilon=epsilon,
            mechanism=mechanism,
            delta=delta,
            neighbours=neighbours,
            sizes=sizes,
            group=None if keyed is None else keyed.column,
        ),
        coded=tables.columns,
        groups=keyed,
        fill=arguments.level_fill(fill, tables.levels),
        ledger=ledger,
        dataset=dataset,
        progress=progress,
    )
    return publish(source, order)


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
    if not given or len({frozenset(clique) for clique in given}) != len(given):
        raise ArgumentError("cliques: must be one or more distinct sets of columns")
    try:
        return Tables(given, listed)
    except ReleaseError as error:
        raise ArgumentError(str(error)) from None

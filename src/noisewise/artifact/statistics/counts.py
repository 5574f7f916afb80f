"""Counts of records: contingency tables, tables of people, and how many records were clamped or
left out.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np

from noisewise.artifact import validation
from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.sensitivity import Sensitivity
from noisewise.artifact.statistics.base import (
    Exponents,
    Statistic,
    check_columns,
    check_size,
    register_statistic,
)
from noisewise.artifact.validation import Fields, Level

if TYPE_CHECKING:
    from noisewise.artifact.guarantee import Noise
    from noisewise.artifact.release import Release

PERSON_BITS = 20
"""A person's weight in a table has 2**20 steps: 2**32 people fit into 64 bits."""


class CellNames(Sequence[str]):
    """The names of the cells of tables, made as they are asked for.

    Kept as texts, the names of a large release would take more than twice the memory of its file.
    """

    def __init__(
        self, cliques: tuple[tuple[str, ...], ...], levels: Mapping[str, tuple[Level, ...]]
    ) -> None:
        self._columns = [[(c, levels[c]) for c in clique] for clique in cliques]
        self._sizes = [math.prod(len(v) for _, v in columns) for columns in self._columns]

    def __len__(self) -> int:
        return sum(self._sizes)

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(map(_cell_names, self._columns))

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            return tuple(self[i] for i in range(len(self))[place])
        cell = range(len(self))[place]
        for columns, size in zip(self._columns, self._sizes, strict=True):
            if cell < size:
                levels = np.unravel_index(cell, [len(v) for _, v in columns])
                return ",".join(f"{c}={v[i]}" for (c, v), i in zip(columns, levels, strict=True))
            cell -= size
        raise IndexError(place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def in_order(self) -> Iterator[tuple[str, int]]:
        """Yield the names in their alphabetical order, each with its place."""
        starts = itertools.accumulate(self._sizes, initial=0)
        return heapq.merge(*map(_sorted_cells, self._columns, starts))


def _cell_names(columns: Sequence[tuple[str, Sequence[Level]]]) -> Iterator[str]:
    """Yield the names of the cells of one table."""
    *others, (last, levels) = columns
    for front in itertools.product(*([f"{c}={v}," for v in values] for c, values in others)):
        start = f"{''.join(front)}{last}="
        for level in levels:
            yield f"{start}{level}"


def _sorted_cells(
    columns: Sequence[tuple[str, tuple[Level, ...]]], start: int
) -> Iterator[tuple[str, int]]:
    """Yield the names of one table in their order, with their places from ``start`` on.

    Sorting each column by its levels, with the comma that follows, sorts the cells, unless one of
    these is the beginning of another. A text that begins another begins the next in their order.
    """
    places, sorted_columns = np.array([start], np.int32), []
    for number, (column, levels) in enumerate(columns):
        comma = "," if number < len(columns) - 1 else ""
        texts = np.array([f"{v}{comma}" if comma else str(v) for v in levels], dtype=object)
        order = np.argsort(texts, kind="stable").astype(np.int32)  # there are two million at most
        if comma and any(b.startswith(a) for a, b in itertools.pairwise(texts[order])):
            return iter(sorted(zip(_cell_names(columns), itertools.count(start), strict=False)))
        below = math.prod(len(v) for _, v in columns[number + 1 :])
        places = np.add.outer(places, order * np.int32(below)).ravel()
        sorted_columns.append((column, [levels[i] for i in order]))
        del texts, order
    return zip(_cell_names(sorted_columns), map(int, places), strict=True)


@register_statistic
@dataclass(frozen=True)
class Tables(Statistic):
    """Contingency tables over cliques of categorical columns; a single column is a count vector."""

    kind: ClassVar[str] = "tables"
    cliques: tuple[tuple[str, ...], ...]
    levels: Mapping[str, tuple[Level, ...]] = field(hash=False)

    def __post_init__(self) -> None:
        if not self.cliques:
            raise ReleaseError("tables: cliques must not be empty")
        cliques = tuple(
            check_columns(c, f"tables: cliques[{i}]") for i, c in enumerate(self.cliques)
        )
        validation.distinct([frozenset(c) for c in cliques], "tables: cliques")
        used = {c for clique in cliques for c in clique}
        if used != set(self.levels):
            odd = validation.shown(min(used ^ set(self.levels)))
            raise ReleaseError(
                "tables: levels must be given for exactly the columns in the cliques; "
                f"{odd} is in one of the two only"
            )
        levels = {
            validation.text(c, "tables: column"): validation.levels(
                v, f"tables: levels[{validation.shown(c)}]"
            )
            for c, v in self.levels.items()
        }
        object.__setattr__(self, "cliques", cliques)
        object.__setattr__(self, "levels", levels)
        self._check_cells()

    def _check_cells(self) -> None:
        """Refuse more cells, or longer names, than a file can hold; stop counting there."""
        cells = characters = 0
        for clique in self.cliques:
            size = 1
            for column in clique:
                size *= len(self.levels[column])
                check_size(self.kind, cells + size, 0)
            cells += size
            for column in clique:
                shown = sum(len(f"{column}={v},") for v in self.levels[column])
                characters += size // len(self.levels[column]) * shown
        check_size(self.kind, cells, characters)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column in some clique, in order of first mention."""
        return tuple(dict.fromkeys(c for clique in self.cliques for c in clique))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of cells of each table."""
        return tuple(math.prod(len(self.levels[c]) for c in clique) for clique in self.cliques)

    @property
    def names(self) -> CellNames:
        """Names such as ``sex=f,smokes=no``; the last column of a clique runs fastest."""
        return CellNames(self.cliques, self.levels)

    @property
    def units(self) -> tuple[float, ...]:
        """What one integer step is worth: one record."""
        return (1.0,) * sum(self.sizes)

    @property
    def categories(self) -> Mapping[str, tuple[Level, ...]]:
        """The public levels of every column."""
        return self.levels

    @property
    def steps(self) -> int:
        """The integer that a record, or a person with one record, adds to a cell."""
        return 1

    def bound(self, replace: bool) -> Sensitivity:
        """Return the bound of docs/proofs/sensitivity.md, section 7 (errata E3).

        Per table one cell loses and one gains, or one alone changes.
        """
        cells = (2 if replace else 1) * len(self.cliques)
        return Sensitivity(cells * self.steps, cells * self.steps**2)

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the tables from their JSON fields."""
        return cls(*_cliques_and_levels(fields))


@register_statistic
@dataclass(frozen=True)
class PersonTables(Tables):
    """Contingency tables in which every *person* weighs one, however many records they have.

    A person with K complete records (rows with the same value in column ``unit``) adds
    ``floor(2**bits / K)`` steps per record to each table (thesis 3.3.4), so 2**bits at most.
    """

    kind: ClassVar[str] = "person-tables"
    unit: str = ""
    bits: int = PERSON_BITS

    def __post_init__(self) -> None:
        super().__post_init__()
        validation.text(self.unit, "person-tables: unit")
        validation.integer(self.bits, "person-tables: bits", 1, PERSON_BITS)
        if self.unit in self.levels:
            raise ReleaseError(f"person-tables: unit {self.unit!r} is also a column of a table")

    @property
    def units(self) -> tuple[float, ...]:
        """What one step is worth, in people."""
        return (2.0**-self.bits,) * sum(self.sizes)

    @property
    def person_column(self) -> str:
        """The column that says whose a record is."""
        return self.unit

    @property
    def steps(self) -> int:
        """The integer that all records of a person together add to a table, at most."""
        return 1 << self.bits

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the tables from their JSON fields."""
        return cls(*_cliques_and_levels(fields), fields.take("unit"), fields.take("bits"))


def _cliques_and_levels(
    fields: Fields,
) -> tuple[tuple[tuple[Any, ...], ...], dict[str, tuple[Any, ...]]]:
    cliques, levels = fields.items("cliques"), fields.object("levels")
    if not all(isinstance(c, list) for c in cliques):
        raise ReleaseError("tables: 'cliques' must be a list of lists")
    for column, values in levels.items():
        if not isinstance(values, list):
            raise ReleaseError(f"tables: levels of {validation.shown(column)} must be a list")
    return tuple(tuple(c) for c in cliques), {c: tuple(v) for c, v in levels.items()}


@register_statistic
@dataclass(frozen=True)
class Clamped(Statistic):
    """How many records had to be clamped (or dropped) in each column: do the bounds bite?"""

    kind: ClassVar[str] = "clamped"
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", check_columns(self.columns, "clamped: columns"))

    @property
    def products(self) -> tuple[Exponents, ...]:
        """One indicator per column."""
        return tuple((i,) for i in range(len(self.columns)))

    @property
    def degree(self) -> int:
        """One: indicators are summed as they are."""
        return 1

    @property
    def names(self) -> tuple[str, ...]:
        """One name per component, in the order of the values."""
        return tuple(f"clamped({c})" for c in self.columns)

    @property
    def units(self) -> tuple[float, ...]:
        """What one integer step is worth: one record."""
        return (1.0,) * len(self.columns)

    @property
    def bounded_columns(self) -> tuple[str, ...]:
        """All columns: a record is clamped where it lies outside their bounds."""
        return self.columns

    def bound(self, replace: bool) -> Sensitivity:
        """Return the bound of section 7: each indicator changes by at most one, in any case."""
        return Sensitivity(len(self.columns), len(self.columns))

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the statistic from its JSON fields."""
        return cls(tuple(fields.items("columns")))


@register_statistic
@dataclass(frozen=True)
class LeftOut(Statistic):
    """How many records were left out because one of these columns is missing."""

    kind: ClassVar[str] = "left-out"
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", check_columns(self.columns, "left-out: columns"))

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the one component."""
        return ("left out",)

    @property
    def units(self) -> tuple[float, ...]:
        """What one integer step is worth: one record."""
        return (1.0,)

    def bound(self, replace: bool) -> Sensitivity:
        """Return the bound of section 7: one record is left out or not."""
        return Sensitivity(1, 1)

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the statistic from its JSON fields."""
        return cls(tuple(fields.items("columns")))

    def check(self, release: Release, noise: Noise) -> None:
        """Raise a ReleaseError where nobody may be left out, or the bound does not hold."""
        guarantee = release.guarantee
        if guarantee.neighbours != "add-remove" or guarantee.unit or release.groups is not None:
            raise ReleaseError(
                "left-out: records are left out under add-remove neighbours, and counted where "
                "there are neither groups nor people with several records"
            )

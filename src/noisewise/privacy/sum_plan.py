"""What to sum, said once, for every engine: a plan in, exact integers out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.artifact.statistics import CellSum, Exponents
from noisewise.privacy.lattice import Coded, Feature, Outward, Scaled, inputs, largest_value
from noisewise.privacy.selection import Condition, KeptRecords

MAX_PRODUCT = 2**30
"""The largest product of lattice values: 2**32 of them fit into 64-bit sums."""

MAX_JOINT_CELLS = 2**14
"""Cells of all factors together up to which sums are formed in these, and then added up to coarser
ones (chosen: such a table stays in a core's cache, and is a short answer of an engine)."""


@dataclass(frozen=True)
class ProductSums:
    """Σ over records of products of features: indices into ``features``; () counts records."""

    features: tuple[Feature, ...]
    products: tuple[Exponents, ...]

    def __post_init__(self) -> None:
        _check_products(self.features, self.products)


def _check_products(features: tuple[Feature, ...], products: Iterable[Exponents]) -> None:
    """Raise where 2**32 rows of any records might not fit: some engines wrap silently."""
    largest = [largest_value(feature) for feature in features]
    for product in products:
        if math.prod(largest[i] for i in product) > MAX_PRODUCT:
            raise ArgumentError("bounds: too wide for whole numbers to be summed in 64 bits")


@dataclass(frozen=True)
class CellCounts:
    """Contingency tables over cliques (indices into ``codes``), flattened, last code fastest."""

    codes: tuple[Coded, ...]
    cliques: tuple[tuple[int, ...], ...]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Return the shape of each clique's table: how many levels each code has."""
        return tuple(tuple(len(self.codes[i].levels) for i in c) for c in self.cliques)


@dataclass(frozen=True)
class CellProducts:
    """Σ of products of features within the cells of codes, block after block, last code fastest."""

    features: tuple[Feature, ...]
    codes: tuple[Coded, ...]
    blocks: tuple[CellSum, ...]

    def __post_init__(self) -> None:
        _check_products(self.features, [block.product for block in self.blocks])

    def shape(self, within: tuple[int, ...]) -> tuple[int, ...]:
        """Return how many levels each of some codes has."""
        return tuple(len(self.codes[i].levels) for i in within)

    def tables(self, groups: int) -> dict[tuple[int, ...], tuple[Exponents, ...]]:
        """Return which codes to sum within, and what: every block follows from one table.

        Blocks with codes are summed in the cells of all codes, if these are few; else within their
        own. Blocks without codes stay alone.
        """
        joint = tuple(sorted({i for block in self.blocks for i in block.within}))
        is_small = math.prod(self.shape(joint)) * groups <= MAX_JOINT_CELLS
        tables: dict[tuple[int, ...], dict[Exponents, None]] = {}
        for product, within in self.blocks:
            tables.setdefault(joint if within and is_small else within, {})[product] = None
        return {within: tuple(products) for within, products in tables.items()}

    def empty_tables(self, groups: int) -> dict[tuple[int, ...], np.ndarray]:
        """Return zeros for each of ``tables``: products by cells by groups."""
        return {
            within: np.zeros((len(products), math.prod(self.shape(within)), groups), np.int64)
            for within, products in self.tables(groups).items()
        }

    def from_tables(self, tables: Mapping[tuple[int, ...], np.ndarray]) -> np.ndarray:
        """Return the sums (components by groups) from tables as ``empty_tables`` shapes them."""
        groups = next(iter(tables.values())).shape[-1]
        wanted, sums = self.tables(groups), []
        for product, within in self.blocks:
            finer = next(w for w, p in wanted.items() if product in p and set(within) <= set(w))
            table = tables[finer][wanted[finer].index(product)]
            others = tuple(axis for axis, code in enumerate(finer) if code not in within)
            sums.append(table.reshape(*self.shape(finer), groups).sum(others).reshape(-1, groups))
        return np.concatenate(sums)


@dataclass(frozen=True)
class Histogram:
    """How many records sit on each lattice point or candidate of one column, low to high."""

    feature: Scaled | Outward


Part = ProductSums | CellCounts | CellProducts | Histogram
"""One thing to sum, in a form that every engine can carry out exactly."""


@dataclass(frozen=True)
class Person:
    """Whose record it is: one of K records weighs ``floor(steps / K)``."""

    column: str
    steps: int


@dataclass(frozen=True)
class Capped:
    """Whose record it is: of each person at most ``records`` complete ones are summed."""

    column: str
    records: int


@dataclass(frozen=True)
class Whole:
    """Whose record it is: all of a person's records stay together (random partitions)."""

    column: str


@dataclass(frozen=True)
class SumPlan:
    """Parts to be summed in one reading of the table, each also per group where one is named.

    A record counts only if all conditions of ``where`` hold for it, and if it is complete: every
    column of the plan (the group's too) is present, or has a public fill value. With a `Person` its
    cells count as a share of its person, and sizes are numbers of people; `Capped` people keep some
    records, which count as they are. Columns that ``dated`` maps to true must hold dates, those
    that it maps to false numbers.
    """

    parts: tuple[Part, ...]
    group: Coded | None = None
    person: Person | Capped | Whole | None = None
    where: tuple[Condition, ...] = ()
    dated: Mapping[str, bool] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        # Sums of products are not weighed by person: their bound holds for one record only.
        tables = all(isinstance(p, CellCounts) for p in self.parts)
        if isinstance(self.person, Person) and not tables:
            raise TypeError("people are weighed in tables of counts only")

    @property
    def features(self) -> tuple[Feature, ...]:
        """Every numeric feature, part by part."""
        collected: list[Feature] = []
        for part in self.parts:
            if isinstance(part, ProductSums | CellProducts):
                collected += part.features
            elif isinstance(part, Histogram):
                collected.append(part.feature)
        return tuple(collected)

    @property
    def codes(self) -> tuple[Coded, ...]:
        """Every categorical column, the group first."""
        collected = [] if self.group is None else [self.group]
        for part in self.parts:
            if isinstance(part, CellCounts | CellProducts):
                collected += part.codes
        return tuple(dict.fromkeys(collected))

    @property
    def numeric(self) -> dict[str, float | None]:
        """Numeric columns and their public fill values (None: there is none)."""
        return {column: fill for f in self.features for column, fill in inputs(f).items()}

    @property
    def columns(self) -> list[str]:
        """Every column the plan reads."""
        own = [] if self.person is None else [self.person.column]
        coded, selecting = (c.column for c in self.codes), (c.column for c in self.where)
        return list(dict.fromkeys([*self.numeric, *coded, *own, *selecting]))

    @property
    def groups(self) -> int:
        """Number of groups; one where there are none."""
        return 1 if self.group is None else len(self.group.levels)


def with_codes(plan: SumPlan, others: Mapping[Coded, Coded]) -> SumPlan:
    """Return the plan with some of its codes replaced by others."""
    parts = tuple(
        replace(part, codes=tuple(others.get(code, code) for code in part.codes))
        if isinstance(part, CellCounts | CellProducts)
        else part
        for part in plan.parts
    )
    group = None if plan.group is None else others.get(plan.group, plan.group)
    return replace(plan, parts=parts, group=group)


@dataclass(frozen=True)
class Sums:
    """Exact integers: one (components, groups) array per part, and what stood in the way.

    ``missing`` and ``unlisted`` name columns only, never a value or a count.
    """

    parts: tuple[np.ndarray, ...]
    sizes: np.ndarray
    missing: tuple[str, ...]
    unlisted: tuple[str, ...]


Progress = Callable[[int, int | None], None]
"""Called with rows done and, where known, rows in all."""


class Source(Protocol):
    """A table somewhere: local Arrow data, or an engine behind Ibis."""

    def check(self, numeric: tuple[str, ...], coded: tuple[str, ...]) -> None:
        """Raise DataError unless the columns exist and have a usable type."""

    def kept_records(self) -> KeptRecords:
        """Return which of the records it hands over: all, some by a filter, or not known."""

    def sum(self, plan: SumPlan, progress: Progress | None = None) -> Sums:
        """Carry out the plan exactly; SourceError where the table cannot be read."""

    def stream(
        self, plan: SumPlan, progress: Progress | None = None
    ) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray | None]]:
        """Yield the plan's numeric columns as float64 (NaN is missing), and whose the records are.

        People are numbered from 0, and -1 where nobody is named; None where the plan has none.
        """

"""Results of a plan's queries, put together: keys become positions in the public lists."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from noisewise.artifact.statistics import Exponents
from noisewise.privacy.lattice import Coded
from noisewise.privacy.sources.snapshot import changed
from noisewise.privacy.sum_plan import (
    CellCounts,
    CellProducts,
    Histogram,
    Part,
    ProductSums,
    SumPlan,
    Sums,
)


def sum_name(part: int, component: int) -> str:
    """Return the name of the column that holds one sum of products."""
    return f"s{part}_{component}"


def products_over_all(part: Part, groups: int) -> tuple[Exponents, ...]:
    """Return the products of a part that are summed over all records, or all of a group."""
    if isinstance(part, CellProducts):
        return part.tables(groups).get((), ())
    return part.products if isinstance(part, ProductSums) else ()


class QueryResults:
    """The sums of one plan while the answers to its queries come in."""

    def __init__(
        self, plan: SumPlan, missing: Mapping[str, str], unlisted: Mapping[str, str]
    ) -> None:
        """Keep, by columns of the answers, which column of the table they report on."""
        self.rows = 0
        self._plan = plan
        self._parts = [np.zeros((_components(p), plan.groups), np.int64) for p in plan.parts]
        self._tables = {
            p: part.empty_tables(plan.groups)
            for p, part in enumerate(plan.parts)
            if isinstance(part, CellProducts)
        }
        self._sizes = np.zeros(plan.groups, np.int64)
        filled = {code.column for code in plan.codes if code.fill is not None}
        filled |= {column for column, fill in plan.numeric.items() if fill is not None}
        self._may_miss = {n: column for n, column in missing.items() if column not in filled}
        self._may_not_list = dict(unlisted)
        self._weight: int | None = None
        self._missing: set[str] = set()
        self._unlisted: set[str] = set()

    def add_totals(self, totals: pa.Table) -> None:
        """Add product sums and group sizes."""
        self._note(totals)
        group = self._groups(totals)
        if self._plan.group is not None and ((group < 0) & _flags(totals, "grouped")).any():
            self._unlisted.add(self._plan.group.column)
        kept = _flags(totals, "complete") & (group >= 0)
        np.add.at(self._sizes, group[kept], _integers(totals, "n")[kept])
        self.add_products(totals)

    def add_products(self, totals: pa.Table) -> None:
        """Add the product sums this answer has."""
        group = self._groups(totals)
        kept = _flags(totals, "complete") & (group >= 0)
        names = set(totals.column_names)
        for p, part in enumerate(self._plan.parts):
            for i in range(len(products_over_all(part, self._plan.groups))):
                if (name := sum_name(p, i)) in names:
                    sums = self._tables[p][()][i, 0] if p in self._tables else self._parts[p][i]
                    np.add.at(sums, group[kept], _integers(totals, name)[kept])

    def count_people(self, counted: pa.Table) -> None:
        """Set the sizes to numbers of people, where records are weighed by them."""
        self._sizes = _integers(counted, "n")

    def add_unlisted(self, summary: pa.Table) -> None:
        """Note records of groups that are not on the list: known of, but not summed."""
        self._note(summary)
        if self._plan.group is not None:
            self._unlisted.add(self._plan.group.column)

    def add_cells(self, number: int, part: CellCounts, position: int, cells: pa.Table) -> None:
        """Add one contingency table, behind those of the cliques before it."""
        self._weigh(cells)
        cell = _cells(cells, [part.codes[i] for i in part.cliques[position]])
        start = sum(map(math.prod, part.shapes[:position]))
        self._add(number, np.where(cell >= 0, start + cell, -1), cells)

    def add_cell_sums(
        self, number: int, part: CellProducts, within: tuple[int, ...], first: int, sums: pa.Table
    ) -> None:
        """Add sums of products within cells, the first of which has that place in its table."""
        self._weigh(sums)
        cell, group = _cells(sums, [part.codes[i] for i in within]), self._groups(sums)
        kept = (cell >= 0) & (group >= 0)
        table = self._tables[number][within]
        for i, name in enumerate(n for n in sums.column_names if n.startswith("s")):
            np.add.at(table[first + i], (cell[kept], group[kept]), _integers(sums, name)[kept])

    def add_histogram(self, number: int, part: Histogram, points: pa.Table) -> None:
        """Add counts on lattice points."""
        self._add(number, _integers(points, "c0") - part.feature.low, points)

    def sums(self) -> Sums:
        """Return the sums of all answers."""
        parts = [
            part.from_tables(self._tables[p]) if isinstance(part, CellProducts) else sums
            for p, (part, sums) in enumerate(zip(self._plan.parts, self._parts, strict=True))
        ]
        return Sums(
            tuple(parts),
            self._sizes,
            tuple(sorted(self._missing)),
            tuple(sorted(self._unlisted)),
        )

    def _note(self, answer: pa.Table) -> None:
        """Count rows, and note columns (never values) that stand in the way."""
        self.rows += int(_integers(answer, "n").sum())
        self._missing |= _troubled(answer, self._may_miss)
        self._unlisted |= _troubled(answer, self._may_not_list)

    def _weigh(self, cells: pa.Table) -> None:
        """Raise where a table does not add up to the same as those before: all are of one state."""
        weight = int(_integers(cells, "n").sum())
        if self._weight is not None and weight != self._weight:
            raise changed()
        self._weight = weight

    def _add(self, number: int, component: np.ndarray, counts: pa.Table) -> None:
        group = self._groups(counts)
        kept = (component >= 0) & (group >= 0)
        place = component[kept], group[kept]
        np.add.at(self._parts[number], place, _integers(counts, "n")[kept])

    def _groups(self, answer: pa.Table) -> np.ndarray:
        """Return the position of each row's group, -1 where it is not on the list."""
        if self._plan.group is None:
            return np.zeros(len(answer), np.int64)
        return _positions(answer.column("group"), self._plan.group)


def _cells(answer: pa.Table, codes: list[Coded]) -> np.ndarray:
    """Return the cell of the levels c0, c1, … of each row, -1 where one is not on its list."""
    index = [_positions(answer.column(f"c{i}"), code) for i, code in enumerate(codes)]
    listed = np.all([column >= 0 for column in index], axis=0)
    shape = tuple(len(code.levels) for code in codes)
    cell = np.ravel_multi_index(tuple(np.where(listed, i, 0) for i in index), shape)
    return np.where(listed, cell, -1)


def _positions(keys: pa.ChunkedArray, code: Coded) -> np.ndarray:
    """Return positions in the public list; as in the local path, floats are compared as floats."""
    lookup: dict[Any, int] = {}
    convert = float if pa.types.is_floating(keys.type) else lambda level: level
    for position, level in enumerate(code.levels):
        lookup.setdefault(convert(level), position)
    return np.array([lookup.get(key, -1) for key in keys.to_pylist()], np.int64)


def _integers(answer: pa.Table, name: str) -> np.ndarray:
    """Return a column of whole numbers; the cast refuses whatever is not one."""
    column = answer.column(name).combine_chunks().cast(pa.int64())
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    return values


def _flags(answer: pa.Table, name: str) -> np.ndarray:
    return np.array(answer.column(name).to_pylist(), bool)


def _troubled(answer: pa.Table, names: Mapping[str, str]) -> set[str]:
    return {column for name, column in names.items() if _integers(answer, name).any()}


def _components(part: Part) -> int:
    if isinstance(part, ProductSums):
        return len(part.products)
    if isinstance(part, CellCounts):
        return sum(map(math.prod, part.shapes))
    if isinstance(part, CellProducts):
        return 0  # its tables are kept apart
    return part.feature.high - part.feature.low + 1

"""Exact integer sums of Arrow batches, at the speed of floating point.

Lattice values are whole numbers kept in float64. A product that is asked for is at most 2**30
(``sum_plan.py`` checks) and a block has at most 2**20 rows, so every partial sum a BLAS kernel can
form, in whatever order, stays below 2**53: the matrix product is exact. Blocks are then added up in
64-bit integers (2**32 rows of 2**30). A product of three or four factors is split into two halves,
so that fourth moments come out of the same kernel. Sums within cells are weighted counts, under the
same limits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np

from noisewise.artifact import DataError
from noisewise.artifact.statistics import MAX_ROWS, Exponents
from noisewise.privacy.lattice import Feature, evaluate, evaluate_columns
from noisewise.privacy.sum_plan import (
    CellCounts,
    CellProducts,
    Histogram,
    Part,
    ProductSums,
    SumPlan,
    Sums,
)

BLOCK_ROWS = 2**14
"""Rows per matrix product: the block's matrix stays in a core's cache."""

MAX_BATCH = 2**20
"""Rows per accumulation at most: 2**20 * 2**30 < 2**53."""

Columns = dict[str, np.ndarray]
"""Columns of one batch, by name."""


class Accumulator:
    """Adds batches of one table to the sums of one plan."""

    def __init__(self, plan: SumPlan) -> None:
        self._plan = plan
        self._parts = [_Part.of(part, plan.groups) for part in plan.parts]
        self._sizes = np.zeros(plan.groups, np.int64)
        self._missing: set[str] = set()
        self._unlisted: set[str] = set()
        self._rows = 0

    def add(self, numeric: Columns, codes: Columns) -> None:
        """Add a batch: float64 columns (NaN: missing), level indices (-1 missing, -2 unlisted)."""
        self.add_complete(*self.complete(numeric, codes))

    def complete(self, numeric: Columns, codes: Columns) -> tuple[Columns, Columns]:
        """Fill what has a public fill value; leave out records that stay incomplete, and note it.

        ``codes`` may hold columns besides the plan's: -1 is missing there too.
        """
        self._rows += _length(numeric, codes)
        if self._rows > MAX_ROWS:
            raise DataError(f"the table has more than {MAX_ROWS} rows, which the lattice allows")
        return self._complete(numeric, codes)

    def add_complete(self, numeric: Columns, codes: Columns) -> None:
        """Add records that lack nothing."""
        kept = _length(numeric, codes)
        for start in range(0, kept, MAX_BATCH):
            window = slice(start, min(start + MAX_BATCH, kept))
            self._add_complete(
                {c: x[window] for c, x in numeric.items()},
                {c: i[window] for c, i in codes.items()},
                window.stop - window.start,
            )

    def result(self) -> Sums:
        """Return the sums so far."""
        parts = tuple(part.result() for part in self._parts)
        return Sums(parts, self._sizes, tuple(sorted(self._missing)), tuple(sorted(self._unlisted)))

    def _complete(self, numeric: Columns, codes: Columns) -> tuple[Columns, Columns]:
        fills = self._plan.numeric
        keep: np.ndarray | None = None
        numeric = dict(numeric)
        for column, x in numeric.items():
            # The minimum is NaN exactly where some value is: the quickest look at all of them.
            if not x.size or not np.isnan(np.min(x)):
                continue
            absent = np.isnan(x)
            fill = fills[column]
            if fill is not None:
                numeric[column] = np.where(absent, fill, x)
                continue
            self._missing.add(column)
            keep = ~absent if keep is None else keep & ~absent
        for column, index in codes.items():
            if index.size and index.min() < 0:
                if (index == -1).any():
                    self._missing.add(column)
                if (index == -2).any():
                    self._unlisted.add(column)
                keep = index >= 0 if keep is None else keep & (index >= 0)
        if keep is None:
            return numeric, codes
        return {c: x[keep] for c, x in numeric.items()}, {c: i[keep] for c, i in codes.items()}

    def _add_complete(self, numeric: Columns, codes: Columns, rows: int) -> None:
        if self._plan.group is None:
            group = None
            self._sizes[0] += rows
        else:
            group = codes[self._plan.group.column]
            self._sizes += np.bincount(group, minlength=len(self._sizes))
        for part in self._parts:
            part.add(numeric, codes, group, rows)


def _length(numeric: Columns, codes: Columns) -> int:
    return len(next(iter({**numeric, **codes}.values())))


class _Part:
    """Running sums of one part of a plan."""

    def __init__(self, components: int, groups: int) -> None:
        self._groups = groups
        self._sums = np.zeros((components, groups), np.int64)

    @staticmethod
    def of(part: Part, groups: int) -> _Part:
        if isinstance(part, ProductSums):
            return _Products(part, groups)
        if isinstance(part, CellCounts):
            return _Cells(part, groups)
        if isinstance(part, CellProducts):
            return _CellProducts(part, groups)
        return _Histogram(part, groups)

    def add(self, numeric: Columns, codes: Columns, group: np.ndarray | None, rows: int) -> None:
        raise NotImplementedError

    def result(self) -> np.ndarray:
        return self._sums

    def _count(self, cell: np.ndarray, cells: int, group: np.ndarray | None) -> np.ndarray:
        """Return counts per cell and group."""
        flat = cell if group is None else cell * self._groups + group
        counts = np.bincount(flat, minlength=cells * self._groups)
        return counts.reshape(cells, self._groups)


class _Rows:
    """Values of products of at most two features, one row each, a block of records at a time."""

    def __init__(self, features: tuple[Feature, ...], products: Iterable[Exponents]) -> None:
        self._features = features
        wanted = set(products)
        # Short ones first: a product of two features is formed from rows already filled.
        ordered = sorted(wanted | {(i,) for p in wanted for i in p}, key=lambda p: (len(p), p))
        self.place = {product: row for row, product in enumerate(ordered)}

    def blocks(self, numeric: Columns, rows: int, size: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield windows of at most ``size`` records and their values, in one reused buffer."""
        size = min(rows, size)
        buffer = np.empty((len(self.place), size))
        for start in range(0, rows, size or 1):
            window = slice(start, min(start + size, rows))
            block = buffer[:, : window.stop - window.start]
            for product, row in self.place.items():
                self._fill(product, numeric, window, block, block[row])
            yield window, block

    def _fill(
        self, product: Exponents, numeric: Columns, window: slice, block: np.ndarray,
        row: np.ndarray,
    ) -> None:  # fmt: skip
        """Fill a row: with 1, a feature, or the product of two features already in the block."""
        if not product:
            row[...] = 1.0
        elif len(product) == 1:
            evaluate_columns(numeric, self._features[product[0]], window, row)
        else:
            left, right = (self.place[(i,)] for i in product)
            np.multiply(block[left], block[right], out=row)


class _Products(_Part):
    """Σ of products through one exact matrix product per block."""

    def __init__(self, part: ProductSums, groups: int) -> None:
        super().__init__(len(part.products), groups)
        pairs = [_halves(p) for p in part.products]
        self._rows = _Rows(part.features, itertools.chain.from_iterable(pairs))
        self._left = np.array([self._rows.place[a] for a, _ in pairs])
        self._right = np.array([self._rows.place[b] for _, b in pairs])

    def add(self, numeric: Columns, codes: Columns, group: np.ndarray | None, rows: int) -> None:
        # Per-group totals are as long as the list of groups: few, long blocks suit them.
        size = BLOCK_ROWS if self._groups == 1 else MAX_BATCH
        for window, block in self._rows.blocks(numeric, rows, size):
            if group is None:
                # Only what was asked for: other entries need not be exact, or fit at all.
                sums = (block @ block.T)[self._left, self._right]
                self._sums[:, 0] += sums.astype(np.int64)
            else:
                self._add_grouped(block, group[window])

    def _add_grouped(self, block: np.ndarray, group: np.ndarray) -> None:
        for row, (a, b) in enumerate(zip(self._left, self._right, strict=True)):
            sums = np.bincount(group, weights=block[a] * block[b], minlength=self._groups)
            self._sums[row] += sums.astype(np.int64)


class _CellProducts(_Part):
    """Σ of products within cells: over all records by matrix products, else one cell per record."""

    def __init__(self, part: CellProducts, groups: int) -> None:
        super().__init__(0, groups)
        self._part = part
        self._wanted = part.tables(groups)
        self._tables = part.empty_tables(groups)
        over_all = self._wanted.get((), ()) if groups == 1 else ()
        pairs = [_halves(product) for product in over_all]
        inside = [p for w, ps in self._wanted.items() if w or groups > 1 for p in ps if p]
        self._rows = _Rows(part.features, [*itertools.chain.from_iterable(pairs), *inside])
        place = self._rows.place
        self._halves = sum(len(product) < 2 for product in place)
        self._left = np.array([place[a] for a, _ in pairs], int)
        self._right = np.array([place[b] for _, b in pairs], int)

    def add(self, numeric: Columns, codes: Columns, group: np.ndarray | None, rows: int) -> None:
        # A list of one group is no grouping: otherwise blocks over all records would count twice.
        group = None if self._groups == 1 else group
        cells = {
            within: self._cells(within, codes, group)
            for within in self._tables
            if within or group is not None
        }
        longest = max((self._tables[within][0].size for within in cells), default=0)
        size = BLOCK_ROWS if longest < BLOCK_ROWS / 4 else MAX_BATCH
        for window, block in self._rows.blocks(numeric, rows, size):
            if len(self._left):
                halves = block[: self._halves]
                sums = (halves @ halves.T)[self._left, self._right]
                self._tables[()][:, 0, 0] += sums.astype(np.int64)
            for within, cell in cells.items():
                self._add_cells(within, cell[window], block)

    def _cells(
        self, within: tuple[int, ...], codes: Columns, group: np.ndarray | None
    ) -> np.ndarray:
        """Return the cell of each record, the group fastest."""
        cell: np.ndarray | int = 0
        for i in within:
            code = self._part.codes[i]
            cell = cell * len(code.levels) + codes[code.column]
        return np.asarray(cell if group is None else cell * self._groups + group)

    def _add_cells(self, within: tuple[int, ...], cell: np.ndarray, block: np.ndarray) -> None:
        for table, product in zip(self._tables[within], self._wanted[within], strict=True):
            weights = block[self._rows.place[product]] if product else None
            sums = np.bincount(cell, weights, table.size).astype(np.int64, copy=False)
            table += sums.reshape(table.shape)

    def result(self) -> np.ndarray:
        return self._part.from_tables(self._tables)


class _Cells(_Part):
    """Contingency tables."""

    def __init__(self, part: CellCounts, groups: int) -> None:
        self._sizes = [math.prod(shape) for shape in part.shapes]
        super().__init__(sum(self._sizes), groups)
        self._part = part

    def add(self, numeric: Columns, codes: Columns, group: np.ndarray | None, rows: int) -> None:
        start = 0
        part = self._part
        for clique, shape, size in zip(part.cliques, part.shapes, self._sizes, strict=True):
            index = tuple(codes[part.codes[i].column] for i in clique)
            cell = np.ravel_multi_index(index, shape)
            self._sums[start : start + size] += self._count(cell, size, group)
            start += size


class _Histogram(_Part):
    """Counts on every lattice point or candidate."""

    def __init__(self, part: Histogram, groups: int) -> None:
        super().__init__(part.feature.high - part.feature.low + 1, groups)
        self._feature = part.feature

    def add(self, numeric: Columns, codes: Columns, group: np.ndarray | None, rows: int) -> None:
        u = evaluate(numeric[self._feature.column], self._feature)
        cell = u.astype(np.int64) - self._feature.low
        self._sums += self._count(cell, len(self._sums), group)


def _halves(product: Exponents) -> tuple[Exponents, Exponents]:
    """Split the factors in two, so that no partial product exceeds a lattice value squared."""
    middle = (len(product) + 1) // 2
    return product[:middle], product[middle:]

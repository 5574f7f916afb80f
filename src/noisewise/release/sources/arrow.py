"""Local tables as Arrow batches: bounded memory, exact sums, no value ever quoted in an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisewise.artifact import DataError, NoisewiseError, SourceError
from noisewise.release.lattice import Coded
from noisewise.release.plan import Progress, SumPlan, Sums
from noisewise.release.sums import Accumulator, Columns

BATCH_ROWS = 2**17


class Batches(Protocol):
    """A table that can be read again and again, in batches of some columns."""

    def types(self) -> dict[str, pa.DataType | None]:
        """Columns and their types (None: not known before it is parsed, as in CSV)."""

    def rows(self) -> int | None:
        """Rows in all, where cheaply known."""

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """Batches of the plan's columns."""


class TableBatches:
    """An Arrow table in memory."""

    def __init__(self, table: pa.Table, batch_rows: int = BATCH_ROWS) -> None:
        self._table = table
        self._batch_rows = batch_rows

    def types(self) -> dict[str, pa.DataType | None]:
        """As the schema says."""
        return dict(zip(self._table.column_names, self._table.schema.types, strict=True))

    def rows(self) -> int | None:
        """Known."""
        return int(self._table.num_rows)

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """Slices, without a copy."""
        yield from self._table.select(plan.columns).to_batches(max_chunksize=self._batch_rows)


class ArrowSource:
    """Source over local data."""

    def __init__(self, batches: Batches | pa.Table) -> None:
        self._batches: Batches = TableBatches(batches) if isinstance(batches, pa.Table) else batches

    def check(self, numeric: tuple[str, ...], coded: tuple[str, ...]) -> None:
        """Columns exist, once each; numbers are numbers."""
        types = self._types()
        for column in (*numeric, *coded):
            if column not in types:
                raise DataError(
                    f"column {column!r} is not in the table; it has: {', '.join(map(str, types))}"
                )
        for column in numeric:
            if types[column] is not None and not _is_numeric(types[column]):
                raise DataError(f"column {column!r} must be numeric, but holds {types[column]}")
        for column in coded:
            if types[column] is not None and not _is_codable(types[column]):
                raise DataError(
                    f"column {column!r} must hold text or whole numbers, but holds {types[column]}"
                )

    def sum(self, plan: SumPlan, progress: Progress | None = None) -> Sums:
        """One pass."""
        accumulator = Accumulator(plan)
        total = self._batches.rows()
        done = 0
        for numeric, codes, rows in self._read(plan):
            accumulator.add(numeric, codes)
            done += rows
            if progress is not None:
                progress(done, total)
        return accumulator.result()

    def _types(self) -> dict[str, pa.DataType | None]:
        try:
            return self._batches.types()
        except (OSError, pa.ArrowException):
            pass
        # Raised outside the handler: pyarrow's messages quote file content.
        raise SourceError("the file cannot be read as the format its name announces")

    def _read(self, plan: SumPlan) -> Iterator[tuple[Columns, Columns, int]]:
        """Columns as arrays; pyarrow's own errors, which quote values, are kept in here."""
        batches = iter(self._batches.read(plan))
        problem: NoisewiseError | None = None
        while problem is None:
            try:
                batch = next(batches)
                numeric = {c: _floats(batch.column(c), c) for c in plan.numeric}
                codes = {c.column: _codes(batch.column(c.column), c) for c in plan.codes}
            except StopIteration:
                return
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                problem = DataError(
                    f"a file is damaged, or one of the columns {', '.join(plan.columns)} holds "
                    "something that is not of its type (a number; or, where the public list is "
                    "of whole numbers, a whole number)"
                )
            except (OSError, pa.ArrowException):
                problem = SourceError("the table could not be read to its end")
            else:
                if batch.num_rows:
                    yield numeric, codes, batch.num_rows
        raise problem


def _is_numeric(kind: Any) -> bool:
    t = pa.types
    # A column of nothing but NULL has the type "null": it is missing everywhere, not wrong.
    kinds = (t.is_integer, t.is_floating, t.is_decimal, t.is_boolean, t.is_null)
    return any(is_kind(kind) for is_kind in kinds)


def _is_text(kind: Any) -> bool:
    t = pa.types
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _is_codable(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_codable(kind.value_type)
    return _is_text(kind) or (_is_numeric(kind) and not pa.types.is_decimal(kind))


def _floats(column: pa.Array, name: str) -> np.ndarray:
    """float64 with NaN for NULL; a copy only where the column has NULLs or another type."""
    if column.type != pa.float64():
        if not _is_numeric(column.type):
            raise DataError(f"column {name!r} must be numeric, but holds {column.type}")
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        column = column.cast(pa.float64(), safe=False)
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    return values


def _codes(column: pa.Array, code: Coded) -> np.ndarray:
    """Index of each value in the public list; -1 missing, -2 unlisted."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    textual = isinstance(code.levels[0], str)
    if _is_text(column.type) != textual and not pa.types.is_null(column.type):
        held, listed = ("text", "whole numbers") if not textual else ("numbers", "text")
        raise DataError(f"column {code.column!r} holds {held}, but its public list is of {listed}")
    column, levels = _comparable(column, code)
    index: np.ndarray = (
        pc.index_in(column, value_set=levels).fill_null(-2).to_numpy(zero_copy_only=False)
    )
    index = index.astype(np.int64)
    absent = column.is_null().to_numpy(zero_copy_only=False)
    if absent.any():
        index[absent] = -1 if code.fill is None else code.levels.index(code.fill)
    return index


def _comparable(column: pa.Array, code: Coded) -> tuple[pa.Array, pa.Array]:
    """Column and list in one type. NaN becomes NULL: both mean missing."""
    if isinstance(code.levels[0], str):
        return column.cast(pa.large_string()), pa.array(code.levels, pa.large_string())
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
        return column, pa.array([float(v) for v in code.levels], pa.float64())
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column.cast(pa.int64()), pa.array(code.levels, pa.int64())

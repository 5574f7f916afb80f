"""Local tables as Arrow batches: bounded memory, exact sums, no value ever quoted in an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisewise.artifact import DataError, NoisewiseError, SourceError
from noisewise.privacy.lattice import Coded
from noisewise.privacy.selection import COMPARISONS, Condition, KeptRecords, whole
from noisewise.privacy.sources import csv_numbers
from noisewise.privacy.sources.arrow_columns import (
    _plain,
    column_floats,
    exact_below,
    holds_text,
    is_codable,
    is_numeric,
    level_indices,
    list_mismatch,
    misfit,
    not_codable,
    not_numeric,
    unfit,
)
from noisewise.privacy.sources.people import PeopleNumbers, sum_capped, sum_people
from noisewise.privacy.sum_plan import Person, Progress, SumPlan, Sums
from noisewise.privacy.sums import Accumulator, Columns

BATCH_ROWS = 2**17
"""Rows that are converted and summed at a time (chosen: some megabytes a column)."""

MAX_NAMES_LISTED = 20
"""Names of columns that an error lists (chosen)."""

Types = list[tuple[str, pa.DataType | None]]
"""Columns in order, and their types where they have one."""

T = TypeVar("T")


class Batches(Protocol):
    """A table, or one file of it, that can be read again and again in batches of some columns."""

    spelled: bool
    """Numbers may come as text, to be read cell by cell (CSV)."""

    @property
    def name(self) -> str:
        """Return what an error calls it."""

    def types(self) -> Types:
        """Return columns in order and their types (None: not known before parsing, as in CSV)."""

    def rows(self) -> int | None:
        """Return the number of rows, where it is cheaply known."""

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """Yield batches of the plan's columns."""

    def explain(self, plan: SumPlan | None) -> NoisewiseError:
        """Return the error of a reading that failed; without a plan, of the first look at it."""


def guarded(step: Callable[[], T], explain: Callable[[], NoisewiseError]) -> T:
    """Return what a step gives; a library's exception is withheld, for it may quote values.

    It is withheld as cause and context of the error too.
    """
    try:
        return step()
    except (NoisewiseError, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except pa.ArrowCancelled:  # so Arrow says that somebody pressed Ctrl-C
        raise KeyboardInterrupt from None
    except BaseException:  # noqa: BLE001  # a panic of Polars is no Exception
        pass
    raise explain()


class TableBatches:
    """An Arrow table in memory."""

    name = "the table"
    spelled = False

    def __init__(self, table: pa.Table, batch_rows: int = BATCH_ROWS) -> None:
        self._table = table
        self._batch_rows = batch_rows

    def types(self) -> Types:
        """Return columns and types as the schema has them."""
        return list(zip(self._table.column_names, self._table.schema.types, strict=True))

    def rows(self) -> int | None:
        """Return the number of rows."""
        return int(self._table.num_rows)

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """Yield slices, without a copy."""
        yield from self._table.select(plan.columns).to_batches(max_chunksize=self._batch_rows)

    def explain(self, plan: SumPlan | None) -> NoisewiseError:
        """Return a general error: nothing is known to fail here."""
        return SourceError(f"{self.name} could not be read to its end")


class ArrowSource:
    """Source over local data: one table, or several files that make up one."""

    def __init__(self, *batches: Batches, kept: Callable[[], KeptRecords] = whole) -> None:
        """Read the batches; ``kept`` says which records a frame or dataset keeps, else all."""
        self._all = batches
        self._kept = kept

    def check(self, numeric: tuple[str, ...], coded: tuple[str, ...]) -> None:
        """Raise where a column is not there once in every file, or not of a fitting type."""
        for batches in self._all:
            types = guarded(batches.types, partial(batches.explain, None))
            asked = (*numeric, *coded)
            for column in asked:
                _check_there(column, types, batches.name, asked)
            known = dict(types)
            for column in numeric:
                if known[column] is not None and not is_numeric(known[column]):
                    raise not_numeric(column, known[column])
            for column in coded:
                if known[column] is not None and not is_codable(known[column]):
                    raise not_codable(column, known[column])

    def kept_records(self) -> KeptRecords:
        """Return which records it hands over."""
        return guarded(self._kept, partial(self._all[0].explain, None))

    def sum(self, plan: SumPlan, progress: Progress | None = None) -> Sums:
        """Return the plan's sums, in one pass; in two where records are weighed by person."""
        if isinstance(plan.person, Person):
            return sum_people(self._all, plan, _codes_and_people, progress)
        if plan.person is not None:
            return sum_capped(self._numbered(plan, progress), plan)
        accumulator = Accumulator(plan)
        for _, numeric, codes, _ in self._read(plan, progress):
            accumulator.add(numeric, codes)
        return accumulator.result()

    def stream(
        self, plan: SumPlan, progress: Progress | None = None
    ) -> Iterator[tuple[Columns, np.ndarray | None]]:
        """Yield the numeric columns themselves and whose records they are, in one pass."""
        if plan.person is None:
            yield from ((numeric, None) for _, numeric, _, _ in self._read(plan, progress))
        else:
            yield from ((n, people) for n, _, people in self._numbered(plan, progress))

    def _numbered(
        self, plan: SumPlan, progress: Progress | None
    ) -> Iterator[tuple[Columns, Columns, np.ndarray]]:
        """Yield numeric columns, level indices and the numbers of people, batch by batch."""
        column = "" if plan.person is None else plan.person.column
        several = len(self._all) > 1 and any(batches.spelled for batches in self._all)
        people = PeopleNumbers(column, several)
        for place, numeric, codes, batch in self._read(plan, progress):
            ids = _person_ids(batch, column, self._all[place].spelled)
            yield numeric, codes, people.number(ids, place)
        people.check()

    def _read(
        self, plan: SumPlan, progress: Progress | None
    ) -> Iterator[tuple[int, Columns, Columns, pa.RecordBatch]]:
        """Yield the place of the file, numeric columns, level indices and the batch itself."""
        total = None if progress is None else self._rows()
        done = 0
        for place, batches in enumerate(self._all):
            for numeric, codes, batch, rows in _batches(batches, plan):
                if batch.num_rows:
                    yield place, numeric, codes, batch
                done += rows
                if progress is not None:
                    progress(done, total)

    def _rows(self) -> int | None:
        counts = [guarded(b.rows, partial(b.explain, None)) for b in self._all]
        return None if None in counts else sum(n for n in counts if n is not None)


def _check_there(column: str, types: Types, where: str, asked: tuple[str, ...]) -> None:
    names = [name for name, _ in types]
    if names.count(column) > 1:
        raise DataError(f"column {column!r} stands twice in {where}")
    if column in names:
        return
    if not types:
        hint = "no column is named by a text"
    elif any(kind is not None for _, kind in types) or _are_names(names, asked):
        hint = f"it has: {listed_names(names)}"
    else:
        # Not shown: where a CSV file has no header, its first line is a record.
        hint = "names are read from its first line"
        hint += _other_separator(names)
    raise DataError(f"column {column!r} is not in {where}; {hint}")


SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""Marks that other programs write between columns."""


def _other_separator(names: list[str]) -> str:
    """Return what to do where one name holds marks that other programs put between columns."""
    for mark, words in SEPARATORS.items():
        if len(names) == 1 and mark in names[0]:
            return (
                f", which has {words} and no commas: columns must be separated by commas, and "
                "decimals by points; write the file so, or as Parquet"
            )
    return ""


def _are_names(first_line: list[str], asked: tuple[str, ...]) -> bool:
    """Return whether a first line is surely one of names: it has one that was asked for."""
    digits = any(name.strip()[:1].isdigit() for name in first_line)
    return not digits and any(name in first_line for name in asked)


def listed_names(names: Sequence[str]) -> str:
    """Return names of columns for an error, the first of them where there are many."""
    more = len(names) - MAX_NAMES_LISTED
    shown = ", ".join(map(repr, names[:MAX_NAMES_LISTED]))
    return f"{shown} and {more} more" if more > 0 else shown


def _codes_and_people(
    batches: Batches, plan: SumPlan
) -> Iterator[tuple[Columns, pa.DictionaryArray, int]]:
    """Yield level indices, whose record it is (may be missing) and rows, batch by batch."""
    column = "" if plan.person is None else plan.person.column
    for _, codes, batch, rows in _batches(batches, plan):
        if batch.num_rows:
            yield codes, _person_ids(batch, column, batches.spelled), rows


def _person_ids(batch: pa.RecordBatch, column: str, spelled: bool) -> pa.DictionaryArray:
    return guarded(
        partial(_people, batch.column(column), column, spelled), partial(unfit, column, "an id")
    )


def _people(column: pa.Array, name: str, spelled: bool) -> pa.DictionaryArray:
    """Return ids by their distinct values. NaN is missing, and 1.0 is 1, as everywhere.

    Float32 and float64 make two people of 0.1: floats must be whole.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_floating(column.type):
        encoded = column.dictionary_encode()
        if spelled:
            csv_numbers.check_ids(encoded.dictionary, name)
        return encoded
    most = exact_below(column.type.bit_width)
    column = _plain(column)
    size = pc.abs(column)
    if pc.any(pc.and_(pc.is_finite(size), pc.greater_equal(size, float(most)))).as_py():
        raise csv_numbers.merged_ids(name)
    is_whole = pc.and_(pc.is_finite(column), pc.equal(pc.floor(column), column))
    if pc.all(is_whole).as_py() is False:
        raise csv_numbers.broken_ids(name)
    return column.dictionary_encode()


def _batches(
    batches: Batches, plan: SumPlan
) -> Iterator[tuple[Columns, Columns, pa.RecordBatch, int]]:
    """Yield numeric columns, level indices and the batch, of records selected; and rows read."""
    reading, spelled = iter(batches.read(plan)), batches.spelled
    while True:
        batch = guarded(lambda: next(reading, None), partial(batches.explain, plan))
        if batch is None:
            return
        rows = batch.num_rows
        batch = _selected(batch, plan.where, spelled)
        numeric = {
            c: guarded(
                partial(column_floats, batch.column(c), c, spelled, plan.dated.get(c)),
                partial(unfit, c, "a number"),
            )
            for c in plan.numeric
        }
        codes = {
            c.column: guarded(
                partial(level_indices, batch.column(c.column), c, spelled), partial(misfit, c)
            )
            for c in plan.codes
        }
        yield numeric, codes, batch, rows


def _selected(batch: pa.RecordBatch, where: tuple[Condition, ...], spelled: bool) -> pa.RecordBatch:
    """Return the records for which all conditions hold; a missing value satisfies none."""
    for condition in where:
        column = condition.column
        holds = guarded(
            partial(_holds, batch.column(column), condition, spelled),
            partial(unfit, column, "a number" if condition.is_numeric else "text"),
        )
        if not holds.all():
            batch = batch.filter(pa.array(holds))
    return batch


def _holds(values: pa.Array, condition: Condition, spelled: bool) -> np.ndarray:
    """Return for each record whether it satisfies a condition."""
    compare, constant = COMPARISONS[condition.operator], condition.constant
    if not isinstance(constant, str):
        x = column_floats(values, condition.column, spelled)
        return np.asarray(compare(x, constant) & ~np.isnan(x))
    code = Coded(condition.column, (constant,))
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not holds_text(kind) and not pa.types.is_null(kind):
        raise list_mismatch(code)
    if spelled:
        csv_numbers.check_levels(values, replace(code, other=constant))
    index = level_indices(values, code, spelled)
    return np.asarray(compare(index, 0) & (index != -1))

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
from noisewise.artifact.validation import spellings
from noisewise.privacy.conditions import COMPARISONS, Condition
from noisewise.privacy.lattice import Coded
from noisewise.privacy.selection import KeptRecords, whole
from noisewise.privacy.sources import csv_numbers
from noisewise.privacy.sources.column_types import describe_type
from noisewise.privacy.sources.person_ids import PeopleNumbers
from noisewise.privacy.sources.person_weights import sum_people
from noisewise.privacy.sources.record_cap import sum_capped
from noisewise.privacy.sum_plan import Person, Progress, SumPlan, Sums
from noisewise.privacy.sums import Accumulator, Columns

BATCH_ROWS = 2**17
"""Rows that are converted and summed at a time (chosen: some megabytes a column)."""

MAX_NAMES_LISTED = 20
"""Names of columns that an error lists (chosen)."""

Types = list[tuple[str, pa.DataType | None]]
"""Columns in order, and their types where they have one."""

Result = TypeVar("Result")


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


def guarded(step: Callable[[], Result], explain: Callable[[], NoisewiseError]) -> Result:
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

    def __init__(self, *batches: Batches, selects: Callable[[], KeptRecords] = whole) -> None:
        """Read the batches; ``selects`` tells which records a frame or dataset keeps, else all."""
        self._all = batches
        self._selects = selects

    def check(self, numeric: tuple[str, ...], coded: tuple[str, ...]) -> None:
        """Raise where a column is not there once in every file, or not of a fitting type."""
        for batches in self._all:
            types = guarded(batches.types, partial(batches.explain, None))
            asked = (*numeric, *coded)
            for column in asked:
                _check_there(column, types, batches.name, asked)
            known = dict(types)
            for column in numeric:
                if known[column] is not None and not _is_numeric(known[column]):
                    raise not_numeric(column, known[column])
            for column in coded:
                if known[column] is not None and not _is_codable(known[column]):
                    raise not_codable(column, known[column])

    def selection(self) -> KeptRecords:
        """Return which records it hands over."""
        return guarded(self._selects, partial(self._all[0].explain, None))

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
        if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
            hint += ", which has no commas: columns must be separated by commas"
    raise DataError(f"column {column!r} is not in {where}; {hint}")


def _are_names(first_line: list[str], asked: tuple[str, ...]) -> bool:
    """Return whether a first line is surely one of names: it has one that was asked for."""
    digits = any(name.strip()[:1].isdigit() for name in first_line)
    return not digits and any(name in first_line for name in asked)


def listed_names(names: Sequence[str]) -> str:
    """Return names of columns for an error, the first of them where there are many."""
    more = len(names) - MAX_NAMES_LISTED
    shown = ", ".join(map(repr, names[:MAX_NAMES_LISTED]))
    return f"{shown} and {more} more" if more > 0 else shown


def not_numeric(column: str, kind: object) -> DataError:
    """Return the error of a column that should hold numbers."""
    held = describe_type(kind)
    zone = " of a time zone; make dates of them, which count as days"
    zone = zone if held == "dates and times" else ""
    return DataError(f"column {column!r} must be numeric, but holds {held}{zone}")


def not_codable(column: str, kind: object) -> DataError:
    """Return the error of a column that should hold categories or ids."""
    return DataError(
        f"column {column!r} must hold text or whole numbers, but holds {describe_type(kind)}"
    )


def list_mismatch(code: Coded) -> DataError:
    """Return the error of text with a public list of numbers, or of numbers with one of text."""
    textual = isinstance(code.levels[0], str)
    held, listed = ("numbers", "text") if textual else ("text", "whole numbers")
    return DataError(f"column {code.column!r} holds {held}, but its public list is of {listed}")


def check_list(code: Coded, holds_text: bool, holds_truth: bool, float_bits: int | None) -> None:
    """Refuse a column and a public list of which one holds text, unless both compare as text.

    Text compares with whole numbers where nothing else would count as another level, numbers
    compare with text where some level is one. Types and the list decide, never a record.
    """
    named = {int(v) for level in code.levels for v in spellings(level)[1:] if str(v) == level}
    if holds_text:
        comparable = isinstance(code.levels[0], str) or code.other is None
    elif isinstance(code.levels[0], str):
        comparable = bool(named) or (holds_truth and set(truth_words(code)) <= set(code.levels))
    else:
        comparable, named = True, set(map(int, code.levels))
    if not comparable:
        raise list_mismatch(code)
    if float_bits is not None:
        check_floats(replace(code, levels=tuple(named)), float_bits)


def as_text(code: Coded) -> Coded:
    """Return a public list of whole numbers as the texts of their digits."""
    fill, other = (None if v is None else str(v) for v in (code.fill, code.other))
    return replace(code, levels=tuple(map(str, code.levels)), fill=fill, other=other)


def truth_words(code: Coded) -> tuple[str, str]:
    """Return the levels of a list of texts that stand for true and for false, else "1" and "0"."""
    true, false = (
        next((str(w) for w in spellings(truth)[1:] if w in code.levels), str(int(truth)))
        for truth in (True, False)
    )
    return true, false


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
                partial(_floats, batch.column(c), c, spelled, plan.dated.get(c)),
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
        x = _floats(values, condition.column, spelled)
        return np.asarray(compare(x, constant) & ~np.isnan(x))
    code = Coded(condition.column, (constant,))
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not _is_text(kind) and not pa.types.is_null(kind):
        raise list_mismatch(code)
    if spelled:
        csv_numbers.check_levels(values, replace(code, other=constant))
    index = level_indices(values, code, spelled)
    return np.asarray(compare(index, 0) & (index != -1))


def unfit(column: str, wanted: str) -> DataError:
    """Return the error of a value of the wrong type, which is not quoted."""
    return DataError(f"column {column!r} holds something that is not {wanted}")


def misfit(code: Coded) -> DataError:
    """Return the error of a value of the wrong type in a column with a public list."""
    textual = isinstance(code.levels[0], str)
    return unfit(code.column, "text" if textual else "a whole number, as its public list is")


def _is_numeric(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_numeric(kind.value_type)
    return _holds_numbers(kind) or _holds_days(kind)


def _holds_days(kind: pa.DataType) -> bool:
    """Return whether a column counts as days since 1970-01-01: dates, and times on such days."""
    is_local = pa.types.is_timestamp(kind) and kind.tz is None
    return bool(pa.types.is_date(kind) or is_local)


def _holds_numbers(kind: pa.DataType) -> bool:
    t = pa.types
    # A column of nothing but NULL has the type "null": it is missing everywhere, not wrong.
    kinds = (t.is_integer, t.is_floating, t.is_decimal, t.is_boolean, t.is_null)
    return any(is_kind(kind) for is_kind in kinds)


def _is_text(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _is_codable(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_codable(kind.value_type)
    return _is_text(kind) or (_holds_numbers(kind) and not pa.types.is_decimal(kind))


def _floats(column: pa.Array, name: str, spelled: bool, dated: bool | None = None) -> np.ndarray:
    """Return float64 with NaN for NULL; a copy only where there are NULLs or another type.

    A DataError where ``dated`` says that there are dates, or none, and it is otherwise.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if spelled and _is_text(column.type):
        column = csv_numbers.floats(column, name, dated)
    elif not pa.types.is_null(column.type):
        csv_numbers.check_dates(name, _holds_days(column.type), dated)
    if column.type != pa.float64():
        if not _is_numeric(column.type):
            raise not_numeric(name, column.type)
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        elif _holds_days(column.type):
            column = column.cast(pa.date32(), safe=False).cast(pa.int32())
        elif pa.types.is_decimal(column.type):
            # Arrow's own cast is an ulp off for one value in four; text is read correctly rounded.
            column = column.cast(pa.string())
        column = column.cast(pa.float64(), safe=False)
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    return values


def level_indices(column: pa.Array, code: Coded, spelled: bool = False) -> np.ndarray:
    """Return the index of each value in the public list; -1 missing, -2 unlisted."""
    if pa.types.is_dictionary(column.type):
        if _is_text(column.type.value_type) and len(column.dictionary) <= len(column):
            # Every distinct text is looked up once; the last index stands for NULL.
            distinct = pa.concat_arrays([column.dictionary, pa.nulls(1, column.type.value_type)])
            of_text = level_indices(distinct, code)
            places = column.indices.cast(pa.int64()).fill_null(len(of_text) - 1)
            return np.asarray(of_text[places.to_numpy(zero_copy_only=False)])
        column = column.dictionary_decode()
    textual = isinstance(code.levels[0], str)
    if spelled and _is_text(column.type) and not textual:
        index = csv_numbers.positions(column, code)
    else:
        if _is_text(column.type) != textual and not pa.types.is_null(column.type):
            column, code = _both_text(column, code)
        if spelled:
            csv_numbers.check_levels(column, code)
        index = _looked_up(column, code)
    if code.fill is not None:
        index[index == -1] = code.levels.index(code.fill)
    if code.other is not None:
        index[index == -2] = code.levels.index(code.other)
    return index


def _both_text(column: pa.Array, code: Coded) -> tuple[pa.Array, Coded]:
    """Return column and list as text: a whole number by its digits, others by "", no level."""
    kind = column.type
    bits = kind.bit_width if pa.types.is_floating(kind) else None
    check_list(code, _is_text(kind), pa.types.is_boolean(kind), bits)
    if _is_text(kind):
        return column, as_text(code)
    if pa.types.is_boolean(kind):
        return pc.if_else(column, *truth_words(code)), code
    if pa.types.is_floating(kind):
        x = _plain(column)
        is_whole = pc.and_(pc.less(pc.abs(x), float(exact_below(64))), pc.equal(pc.floor(x), x))
        digits = pc.if_else(is_whole, x, 0.0).cast(pa.int64()).cast(pa.string())
        return pc.if_else(is_whole, digits, ""), code
    return column.cast(pa.string()), code


def _looked_up(column: pa.Array, code: Coded) -> np.ndarray:
    column, levels = _comparable(column, code)
    positions: np.ndarray = (
        pc.index_in(column, value_set=levels).fill_null(-2).to_numpy(zero_copy_only=False)
    )
    index = positions.astype(np.int64)
    index[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return index


def _comparable(column: pa.Array, code: Coded) -> tuple[pa.Array, pa.Array]:
    """Return column and list in one type. NaN becomes NULL: both mean missing."""
    if isinstance(code.levels[0], str):
        return column.cast(pa.large_string()), pa.array(code.levels, pa.large_string())
    if pa.types.is_floating(column.type):
        check_floats(code, column.type.bit_width)
        return _plain(column), pa.array([float(v) for v in code.levels], pa.float64())
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column.cast(pa.int64()), pa.array(code.levels, pa.int64())


def _plain(column: pa.Array) -> pa.Array:
    """Return float64 with NULL for NaN. Arrow compares bits: adding zero makes 0.0 of -0.0."""
    column = pc.add(column.cast(pa.float64()), 0.0)
    return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)


def exact_below(bits: int) -> int:
    """Return the least whole number that a float of so many bits may confuse with the next."""
    return {16: 2**11, 32: 2**24}.get(bits, 2**53)


def check_floats(code: Coded, bits: int) -> None:
    """Refuse a list that floats of so many bits cannot tell apart, whatever the records are."""
    if any(abs(int(level)) >= exact_below(bits) for level in code.levels):
        raise DataError(
            f"column {code.column!r} holds floating-point numbers, which cannot tell the whole "
            "numbers of its public list apart; store it as whole numbers or as text"
        )

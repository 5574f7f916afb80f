"""CSV files: text, whose records and types depend on the header and the plan, not on other cells.

Quotation marks and line ends are checked first, byte by byte (`quotation_fault`). Then Arrow reads:
a cell may hold line breaks, and where there is one column an empty line is a record without a
value. Numbers are read at full speed as long as every cell has the usual spelling; from the first
that has not, they come as text and are read cell by cell (`csv_numbers`), with the same meaning.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds

from noisewise.artifact import NoisewiseError, SourceError
from noisewise.privacy.sources import csv_numbers
from noisewise.privacy.sources.arrow import Types
from noisewise.privacy.sources.arrow_columns import misfit, unfit
from noisewise.privacy.sources.arrow_datasets import scan
from noisewise.privacy.sum_plan import SumPlan

NULLS = tuple(pyarrow.csv.ConvertOptions().null_values)
"""Spellings of "missing": Arrow's own list."""

SPARK_FILE = re.compile(r"part-[0-9]+-.*-c[0-9]+\.csv", re.IGNORECASE)
"""Names that Spark gives to the CSV files it writes."""

FIRST_RECORDS = 20
"""Records to look at before a way of reading is chosen (chosen: it decides speed, not meaning)."""

CHUNK_BYTES = 2**22
"""Bytes that are looked through for quotation marks at a time (chosen)."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""The three bytes that UTF-8 text may begin with, and that are no part of it."""

QUOTE, COMMA, FEED, RETURN, BACKSLASH = b'",\n\r\\'
"""Bytes that decide where cells and records end (RFC 4180), or seem to."""

EDGES = np.zeros(256, bool)
"""By byte: whether a quotation mark may stand beside it."""
EDGES[[QUOTE, COMMA, FEED, RETURN]] = True

MISPLACED_QUOTE = (
    "a quotation mark stands inside a cell that is not enclosed in them, or is followed by more "
    "text; enclose the cell and double the marks inside it, as CSV writers do"
)
"""The error of a mark inside a cell."""

ESCAPED_QUOTE = (
    "a backslash stands before a quotation mark, and two dialects read that differently; write "
    "the file with marks doubled instead (Spark: option('escape', '\"')), or as Parquet"
)
"""The error of a mark escaped by a backslash."""

UNCLOSED_QUOTE = "a quotation mark that opens a cell is never closed"
"""The error of a mark without a partner."""

LONE_RETURN = (
    "a carriage return stands without a line feed outside quotation marks, and readers disagree "
    "on whether it ends a record"
)
"""The error of a line end of old computers."""


class CsvFile:
    """UTF-8 text with a line of column names, read in batches."""

    spelled = True

    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def name(self) -> str:
        """Return what an error calls the file."""
        return f"file {self._path!r}"

    @cached_property
    def _header(self) -> tuple[list[str], int]:
        """Return the names of columns, and the number of rows that end with them."""
        for number, row in enumerate(self._rows(), 1):
            if row:
                "".join(row).encode()
                if len(set(row)) < len(row):
                    raise ValueError("a name stands twice")
                return row, number
        raise ValueError("there is no line of names")

    def _first_cells(self) -> dict[str, set[str]]:
        """Return some cells of each column: they decide which way of reading is tried first."""
        names, header = self._header
        few = []
        with contextlib.suppress(csv.Error):
            for row in itertools.islice(self._rows(), header, header + FIRST_RECORDS):
                few.append(row)
        columns = zip(*(row for row in few if len(row) == len(names)), strict=True)
        return {name: set(cells) for name, cells in zip(names, columns, strict=False)}

    def _rows(self) -> Iterator[list[str]]:
        # Only names need be UTF-8: columns that nobody asks for may hold anything.
        with open(self._path, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
            yield from csv.reader(text, strict=True)

    def types(self) -> Types:
        """Return the columns, without a type: only the plan gives them one."""
        return [(name, None) for name in self._header[0]]

    def rows(self) -> int | None:
        """Return None: all of the file would have to be read."""
        return None

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """Yield batches of the plan's columns; columns that are not asked for may hold anything."""
        self._check_records()
        done = 0
        try:
            for batch in self._typed(self._usual(plan), plan):
                yield batch
                done += batch.num_rows
        except pa.ArrowInvalid:
            pass
        else:
            return
        text = dict.fromkeys(plan.columns, pa.string())
        yield from _beyond(done, self._typed(text, plan))

    def _typed(self, types: dict[str, pa.DataType], plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """Yield batches in which a cell is missing if it is spelled so for its own column."""
        kept = {column: _listed_nulls(plan, column) for column in plan.columns}
        everywhere = tuple(n for n in NULLS if not any(n in names for names in kept.values()))
        for batch in self._scan(types, plan.columns, everywhere):
            for place, column in enumerate(batch.schema.names):
                nulls = set(NULLS) - {*everywhere, *kept[column]}
                # A number that is spelled so stops the scan, and is then read as text.
                if nulls and types[column] == pa.string():
                    batch = _without(batch, place, nulls)
            yield batch

    def _check_records(self) -> None:
        """Refuse a file in which records cannot be told apart, or whose writer leaves some out."""
        if len(self._header[0]) == 1 and SPARK_FILE.fullmatch(Path(self._path).name):
            raise SourceError(
                f"{self.name} has one column and is named as Spark names its files: Spark leaves "
                "out records without a value there; write Parquet, or a second column"
            )
        fault = quotation_fault(self._path)
        if fault is not None:
            raise SourceError(f"{self.name} cannot be told apart into records: {fault}")

    def explain(self, plan: SumPlan | None) -> NoisewiseError:
        """Read again, without types and then column by column, and return what is wrong."""
        if plan is None or not self._readable({}, plan.columns):
            return SourceError(
                f"{self.name} is empty or damaged: a CSV file is UTF-8 text, has a first line of "
                "distinct column names, and as many values in every line, of a mebibyte at most"
            )
        codes = {code.column: code for code in plan.codes}
        for column in plan.columns:
            if not self._readable({column: pa.string()}, [column]):
                if column in codes:
                    return misfit(codes[column])
                compared = any(c.column == column and c.is_numeric for c in plan.where)
                return unfit(column, "a number" if compared or column in plan.numeric else "text")
        return SourceError(f"{self.name} could not be read to its end")

    def _usual(self, plan: SumPlan) -> dict[str, pa.DataType]:
        """Return types that fit the usual spelling; text where the first cells have another."""
        types, first = _planned(plan), self._first_cells()
        for column, kind in types.items():
            if not csv_numbers.are_usual(first.get(column, set()) - set(NULLS), kind):
                types[column] = pa.string()
        return types

    def _readable(self, types: dict[str, pa.DataType], columns: list[str]) -> bool:
        try:
            for _ in self._scan(types, columns, ()):
                pass
        except pa.ArrowCancelled:
            raise
        except (pa.ArrowException, OSError):
            return False
        return True

    def _scan(
        self, types: dict[str, pa.DataType], columns: list[str], nulls: tuple[str, ...]
    ) -> Iterator[pa.RecordBatch]:
        names, header = self._header
        layout = ds.CsvFileFormat(
            # A record of several columns has commas, so an empty line is none; of one it may be.
            parse_options=pyarrow.csv.ParseOptions(
                newlines_in_values=True, ignore_empty_lines=len(names) > 1
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                strings_can_be_null=True, null_values=list(nulls)
            ),
            read_options=pyarrow.csv.ReadOptions(column_names=names, skip_rows_after_names=header),
        )
        # With a schema of its own, Arrow does not guess one from the first records.
        schema = pa.schema([(name, types.get(name, pa.binary())) for name in names])
        yield from scan(ds.dataset(self._path, schema, format=layout), columns)


def _planned(plan: SumPlan) -> dict[str, pa.DataType]:
    """Return float64 for numbers, int64 for whole ones; text for ids, text, dates, double use."""
    uses: dict[str, list[pa.DataType]] = {column: [] for column in plan.columns}
    for column in plan.numeric:
        uses[column].append(pa.string() if plan.dated.get(column) else pa.float64())
    for code in plan.codes:
        uses[code.column].append(pa.string() if isinstance(code.levels[0], str) else pa.int64())
    if plan.person is not None:
        uses[plan.person.column].append(pa.string())
    for condition in plan.where:
        uses[condition.column].append(pa.float64() if condition.is_numeric else pa.string())
    return {c: kinds[0] if len(set(kinds)) == 1 else pa.string() for c, kinds in uses.items()}


def _beyond(done: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches without the first ``done`` rows."""
    for batch in batches:
        if done < batch.num_rows:
            yield batch.slice(done)
        done = max(0, done - batch.num_rows)


def _listed_nulls(plan: SumPlan, column: str) -> set[str]:
    """Return spellings of "missing" that are values of a column: "NA" on its list (Namibia)."""
    listed = [level for code in plan.codes if code.column == column for level in code.levels]
    constants = [condition.constant for condition in plan.where if condition.column == column]
    return set(NULLS).intersection(map(str, [*listed, *constants]))


def _without(batch: pa.RecordBatch, place: int, nulls: set[str]) -> pa.RecordBatch:
    """Return the batch with NULL for such texts of a column."""
    text = batch.column(place)
    is_null = pc.is_in(text, pa.array(sorted(nulls), pa.string()))
    present = pc.if_else(is_null, pa.scalar(None, pa.string()), text)
    return batch.set_column(place, batch.schema.names[place], present)


def quotation_fault(path: str) -> str | None:
    """Return why the ends of records are not certain, without a word of the file; None: they are.

    Quotation marks decide which line breaks end a record (RFC 4180). A mark that is out of place,
    or escaped in another dialect, would make one record's text decide where others end. Such a
    file is refused before it is read (Lemma 0, `docs/proofs/records.md`).
    """
    inside = False
    for before, chunk, after in _windows(path):
        if not inside and chunk.find(b'"') < 0 and chunk.find(b"\r") < 0:
            continue
        window = np.frombuffer(before + chunk + after, np.uint8)
        marks = np.flatnonzero(window[1:-1] == QUOTE) + 1
        fault = _misplaced(window, marks, inside) or _lone_return(window, marks, inside)
        if fault is not None:
            return fault
        inside ^= bool(len(marks) % 2)
    return UNCLOSED_QUOTE if inside else None


def _windows(path: str) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the file piece by piece, each with the byte before and after it."""
    with open(path, "rb") as file:
        if file.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
            file.seek(0)
        before, chunk = b"\n", file.read(CHUNK_BYTES)
        while chunk:
            following = file.read(CHUNK_BYTES)
            yield before, chunk, following[:1] or b"\n"
            before, chunk = chunk[-1:], following


def _misplaced(window: np.ndarray, marks: np.ndarray, inside: bool) -> str | None:
    """Return what is wrong with the marks, which open and close cells in turn.

    A doubled mark closes a cell and opens it again at once, so that each mark touches an edge of
    a cell or its twin, and nothing else.
    """
    opening, closing = marks[int(inside) :: 2], marks[int(not inside) :: 2]
    if (window[closing - 1] == BACKSLASH).any():
        return ESCAPED_QUOTE
    placed = EDGES[window[opening - 1]].all() and EDGES[window[closing + 1]].all()
    return None if placed else MISPLACED_QUOTE


def _lone_return(window: np.ndarray, marks: np.ndarray, inside: bool) -> str | None:
    returns = np.flatnonzero(window[1:-1] == RETURN) + 1
    lone = returns[window[returns + 1] != FEED]
    outside = (np.searchsorted(marks, lone) + inside) % 2 == 0
    return LONE_RETURN if outside.any() else None

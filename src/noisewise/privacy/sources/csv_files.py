"""CSV files: text, whose records and types depend on the header and the plan, not on other cells.

Quotation marks and line ends are checked first (`quotes`). Then Arrow reads: a cell may hold line
breaks, and where there is one column an empty line is a record without a value. Numbers are
read at full speed as long as every cell has the usual spelling; from the first that has not,
they come as text and are read cell by cell (`spellings`), with the same meaning.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds

from noisewise.artifact import NoisewiseError, SourceError
from noisewise.privacy.sources import csv_numbers
from noisewise.privacy.sources.arrow import Types, misfit, unfit
from noisewise.privacy.sources.arrow_datasets import scan
from noisewise.privacy.sources.quotes import find_fault
from noisewise.privacy.sum_plan import SumPlan

NULLS = tuple(pyarrow.csv.ConvertOptions().null_values)
"""Spellings of a missing value: Arrow's own list."""
BY_SPARK = re.compile(r"part-[0-9]+-.*-c[0-9]+\.csv", re.IGNORECASE)
"""How Spark names the parts of a table that it writes as CSV."""
FEW = 20
"""Records to look at before a way of reading is chosen."""


class CsvFile:
    """UTF-8 text with a line of column names, read in batches."""

    spelled = True

    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def name(self) -> str:
        """The file."""
        return f"file {self._path!r}"

    @cached_property
    def _header(self) -> tuple[list[str], int]:
        """The names of columns, and the number of rows that end with them."""
        for number, row in enumerate(self._rows(), 1):
            if row:
                "".join(row).encode()
                if len(set(row)) < len(row):
                    raise ValueError("a name stands twice")
                return row, number
        raise ValueError("there is no line of names")

    def _first_cells(self) -> dict[str, set[str]]:
        """Some cells of each column: which way of reading may be quicker, never what they mean."""
        names, header = self._header
        few = []
        with contextlib.suppress(csv.Error):
            for row in itertools.islice(self._rows(), header, header + FEW):
                few.append(row)
        columns = zip(*(row for row in few if len(row) == len(names)), strict=True)
        return {name: set(cells) for name, cells in zip(names, columns, strict=False)}

    def _rows(self) -> Iterator[list[str]]:
        # Only names need be UTF-8: columns that nobody asks for may hold anything.
        with open(self._path, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
            yield from csv.reader(text, strict=True)

    def types(self) -> Types:
        """Columns have no type before the plan gives them one."""
        return [(name, None) for name in self._header[0]]

    def rows(self) -> int | None:
        """All of the file would have to be read."""
        return None

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """A projected scan: columns that are not asked for may hold anything."""
        self._check_records()
        done = 0
        try:
            for batch in self._scan(self._usual(plan), plan.columns, _nulls(plan)):
                yield batch
                done += batch.num_rows
        except pa.ArrowInvalid:
            pass
        else:
            return
        text = dict.fromkeys(plan.columns, pa.string())
        yield from _beyond(done, self._scan(text, plan.columns, _nulls(plan)))

    def _check_records(self) -> None:
        """Refuse a file in which records cannot be told apart, or whose writer leaves some out."""
        if len(self._header[0]) == 1 and BY_SPARK.fullmatch(Path(self._path).name):
            raise SourceError(
                f"{self.name} has one column and is named as Spark names its files: Spark leaves "
                "out records without a value there; write Parquet, or a second column"
            )
        fault = find_fault(self._path)
        if fault is not None:
            raise SourceError(f"{self.name} cannot be told apart into records: {fault}")

    def explain(self, plan: SumPlan | None) -> NoisewiseError:
        """Read again, without types and then column by column, to find what is wrong."""
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
                return unfit(column, "a number" if column in plan.numeric else "text")
        return SourceError(f"{self.name} could not be read to its end")

    def _usual(self, plan: SumPlan) -> dict[str, pa.DataType]:
        """Types that fit the usual spelling; text where the first cells have another."""
        types, first = _planned(plan), self._first_cells()
        for column, kind in types.items():
            if not csv_numbers.are_usual(first.get(column, set()) - set(NULLS), kind):
                types[column] = pa.string()
        return types

    def _readable(self, types: dict[str, pa.DataType], columns: list[str]) -> bool:
        try:
            for _ in self._scan(types, columns, ()):
                pass
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
    """float64 for numbers, int64 for whole ones; text for ids, levels of text, and double use."""
    uses: dict[str, list[pa.DataType]] = {column: [] for column in plan.columns}
    for column in plan.numeric:
        uses[column].append(pa.float64())
    for code in plan.codes:
        uses[code.column].append(pa.string() if isinstance(code.levels[0], str) else pa.int64())
    if plan.person is not None:
        uses[plan.person.column].append(pa.string())
    return {c: kinds[0] if len(set(kinds)) == 1 else pa.string() for c, kinds in uses.items()}


def _beyond(done: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches without the first ``done`` rows."""
    for batch in batches:
        if done < batch.num_rows:
            yield batch.slice(done)
        done = max(0, done - batch.num_rows)


def _nulls(plan: SumPlan) -> tuple[str, ...]:
    """Spellings of "missing"; "NA" is none where a public list has it (Namibia, North America)."""
    listed = {level for code in plan.codes for level in code.levels}
    return tuple(spelling for spelling in NULLS if spelling not in listed)

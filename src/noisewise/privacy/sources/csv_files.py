"""CSV files: text whose types the plan decides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds

from noisewise.artifact import NoisewiseError, SourceError
from noisewise.privacy.lattice import Coded
from noisewise.privacy.sources.arrow import Types, misfit, unfit
from noisewise.privacy.sources.scan import scan
from noisewise.privacy.sum_plan import SumPlan

NULLS = tuple(pyarrow.csv.ConvertOptions().null_values)


class CsvFile:
    """UTF-8 text with a line of column names, read in batches."""

    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def name(self) -> str:
        """The file."""
        return f"file {self._path!r}"

    @cached_property
    def _guess(self) -> pa.Schema:
        """Types as the first rows suggest."""
        return ds.dataset(self._path, format="csv").schema

    def types(self) -> Types:
        """Columns have no type before the plan gives them one."""
        return [(name, None) for name in self._guess.names]

    def rows(self) -> int | None:
        """All of the file would have to be read."""
        return None

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """A projected scan: columns that are not asked for may hold anything."""
        yield from self._scan(self._wanted(plan), plan.columns, _nulls(plan))

    def explain(self, plan: SumPlan | None) -> NoisewiseError:
        """Read again, without types and then column by column, to find what is wrong."""
        untyped = {} if plan is None else dict.fromkeys(self._guess.names, pa.binary())
        if plan is None or not self._readable(untyped, plan.columns, ()):
            return SourceError(
                f"{self.name} is empty or damaged: a CSV file is UTF-8 text, has a first line of "
                "distinct column names, and as many values in every line"
            )
        wanted, codes = self._wanted(plan), {code.column: code for code in plan.codes}
        for column in plan.columns:
            types = untyped | {column: wanted[column]}
            if not self._readable(types, [column], _nulls(plan)):
                if column in codes:
                    return misfit(codes[column])
                return unfit(column, "a number" if column in plan.numeric else "text")
        return SourceError(f"{self.name} could not be read to its end")

    def _wanted(self, plan: SumPlan) -> dict[str, pa.DataType]:
        """Numbers are float64, levels what their list is, ids text; true and false stay."""
        types = {column: self._number(column, pa.float64()) for column in plan.numeric}
        for code in plan.codes:
            textual = isinstance(code.levels[0], str)
            types[code.column] = pa.string() if textual else self._level(code)
        if plan.person is not None:
            # A guess would depend on the ids of others, and differ from file to file.
            types[plan.person.column] = pa.string()
        return types

    def _number(self, column: str, usual: pa.DataType) -> pa.DataType:
        guess = self._guess.field(column).type
        return guess if pa.types.is_boolean(guess) else usual

    def _level(self, code: Coded) -> pa.DataType:
        guess = self._guess.field(code.column).type
        return guess if pa.types.is_floating(guess) else self._number(code.column, pa.int64())

    def _readable(
        self, types: dict[str, pa.DataType], columns: list[str], nulls: tuple[str, ...]
    ) -> bool:
        try:
            for _ in self._scan(types, columns, nulls):
                pass
        except (pa.ArrowException, OSError):
            return False
        return True

    def _scan(
        self, types: dict[str, pa.DataType], columns: list[str], nulls: tuple[str, ...]
    ) -> Iterator[pa.RecordBatch]:
        options = pyarrow.csv.ConvertOptions(
            column_types=types, strings_can_be_null=True, null_values=list(nulls)
        )
        layout = ds.CsvFileFormat(convert_options=options)
        yield from scan(ds.dataset(self._path, format=layout), columns)


def _nulls(plan: SumPlan) -> tuple[str, ...]:
    """Spellings of "missing"; "NA" is none where a public list has it (Namibia, North America)."""
    listed = {level for code in plan.codes for level in code.levels}
    return tuple(spelling for spelling in NULLS if spelling not in listed)

"""CSV, Parquet and Arrow files, single or by glob, as batches."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds

from noisewise.artifact import ArgumentError, SourceError
from noisewise.release.plan import SumPlan
from noisewise.release.sources.frames import scan

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}


class FileBatches:
    """Files of one format, read in batches; memory does not grow with their number or length."""

    def __init__(self, pattern: str) -> None:
        self._paths = _find(pattern)
        self._format = _format(self._paths, pattern)

    def types(self) -> dict[str, pa.DataType | None]:
        """From the first file; CSV columns have no type before the plan gives them one."""
        schema = self._dataset(None).schema
        if self._format == "csv":
            return dict.fromkeys(schema.names)
        return dict(zip(schema.names, schema.types, strict=True))

    def rows(self) -> int | None:
        """Parquet and Arrow files say; CSV would have to be read."""
        return None if self._format == "csv" else int(self._dataset(None).count_rows())

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """In bounded memory."""
        yield from scan(self._dataset(plan), plan)

    def _dataset(self, plan: SumPlan | None) -> ds.Dataset:
        if self._format != "csv":
            return ds.dataset(self._paths, format=self._format)
        types: dict[str, pa.DataType] = {}
        if plan is not None:
            types = dict.fromkeys(plan.numeric, pa.float64())
            for code in plan.codes:
                textual = isinstance(code.levels[0], str)
                types[code.column] = pa.string() if textual else pa.int64()
        options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=True)
        return ds.dataset(self._paths, format=ds.CsvFileFormat(convert_options=options))


def _find(pattern: str) -> list[str]:
    path = Path(pattern)
    if path.is_file():
        return [str(path)]
    if path.is_dir():
        found = sorted(str(p) for p in path.rglob("*") if p.suffix.lower() in FORMATS)
    else:
        found = sorted(p for p in glob.glob(pattern, recursive=True) if Path(p).is_file())
    if not found:
        raise SourceError(f"source: no file matches {pattern!r}")
    return found


def _format(paths: list[str], pattern: str) -> str:
    formats = {FORMATS.get(Path(p).suffix.lower()) for p in paths}
    if len(formats) != 1 or None in formats:
        raise ArgumentError(
            f"source: {pattern!r} must name files of one kind, ending in {', '.join(FORMATS)}"
        )
    return str(formats.pop())

"""Parquet and Arrow files; and which files a path, a folder or a glob means."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from noisewise.artifact import ArgumentError, NoisewiseError, SourceError
from noisewise.privacy.sources.arrow import Batches, Types
from noisewise.privacy.sources.csv_files import CsvFile
from noisewise.privacy.sources.scan import scan
from noisewise.privacy.sum_plan import SumPlan

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}


class TypedFile:
    """A Parquet or Arrow file. Each is read by its own schema: parts may differ in types."""

    def __init__(self, path: str, kind: str) -> None:
        self._path = path
        self._kind = kind

    @property
    def name(self) -> str:
        """The file."""
        return f"file {self._path!r}"

    def types(self) -> Types:
        """As the file says."""
        schema = self._dataset().schema
        return list(zip(schema.names, schema.types, strict=True))

    def rows(self) -> int | None:
        """From the footer."""
        return int(self._dataset().count_rows())

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """In bounded memory."""
        yield from scan(self._dataset(), plan.columns)

    def explain(self, plan: SumPlan | None) -> NoisewiseError:
        """Once its types are checked, what fails is the file."""
        if plan is None:
            return SourceError(f"{self.name} is empty, damaged, or not what its ending says")
        return SourceError(f"{self.name} is damaged: it could not be read to its end")

    def _dataset(self) -> ds.Dataset:
        return ds.dataset(self._path, format=self._kind)


def open_files(pattern: str) -> list[Batches]:
    """The files, in order of their names, which must be of one format."""
    paths = _find(os.path.expanduser(pattern), pattern)
    formats = {FORMATS.get(Path(p).suffix.lower()) for p in paths}
    if len(formats) != 1 or None in formats:
        raise ArgumentError(
            f"source: {pattern!r} must name files of one kind, ending in {', '.join(FORMATS)}"
        )
    kind = str(formats.pop())
    return [CsvFile(p) if kind == "csv" else TypedFile(p, kind) for p in paths]


def _find(expanded: str, pattern: str) -> list[str]:
    if not pattern:
        raise ArgumentError("source: the path is empty")
    path = Path(expanded)
    if path.is_file():
        return [str(path)]
    if path.is_dir():
        found = sorted(str(p) for p in path.rglob("*") if p.suffix.lower() in FORMATS)
    else:
        found = sorted(p for p in glob.glob(expanded, recursive=True) if Path(p).is_file())
    if not found:
        raise SourceError(f"source: no file matches {pattern!r}")
    return found

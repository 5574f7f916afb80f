"""Parquet and Arrow files; and the right reader for each file that a path means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from noisewise.artifact import ArgumentError, NoisewiseError, SourceError
from noisewise.privacy.sources.arrow import Batches, Types
from noisewise.privacy.sources.arrow_datasets import scan
from noisewise.privacy.sources.csv_files import CsvFile
from noisewise.privacy.sources.paths import FORMATS, PACKED, find_files
from noisewise.privacy.sum_plan import SumPlan


class TypedFile:
    """A Parquet or Arrow file. Each is read by its own schema: parts may differ in types."""

    spelled = False

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
    """Return a reader for each file, in order of their names; they must be of one format."""
    paths = find_files(pattern)
    formats = {FORMATS.get(Path(p).suffix.lower()) for p in paths}
    if len(formats) != 1 or None in formats:
        packed = any(Path(p).suffix.lower() in PACKED for p in paths)
        raise ArgumentError(
            f"source: {pattern!r} must name files of one kind, ending in {', '.join(FORMATS)}"
            + ("; compressed files are not read: unpack them first" if packed else "")
        )
    kind = str(formats.pop())
    return [CsvFile(p) if kind == "csv" else TypedFile(p, kind) for p in paths]

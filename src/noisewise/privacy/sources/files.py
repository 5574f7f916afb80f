"""Files: which ones a path, a folder or a glob means, and the right reader for each."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from noisewise.artifact import ArgumentError, NoisewiseError, SourceError
from noisewise.privacy.sources.arrow import Batches, Types
from noisewise.privacy.sources.arrow_datasets import scan
from noisewise.privacy.sources.csv_files import CsvFile
from noisewise.privacy.sum_plan import SumPlan

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}
"""The format, in Arrow's words, that the ending of a name stands for."""

COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".lz4", ".br", ".snappy")
"""Endings of compressed files, which are refused (chosen: what pandas, Arrow and Spark write)."""


def open_files(pattern: str) -> list[Batches]:
    """Return a reader for each file, in order of their names; they must be of one format."""
    paths = find_files(pattern)
    formats = {FORMATS.get(Path(p).suffix.lower()) for p in paths}
    if len(formats) != 1 or None in formats:
        compressed = any(Path(p).suffix.lower() in COMPRESSED for p in paths)
        raise ArgumentError(
            f"source: {pattern!r} must name files of one kind, ending in {', '.join(FORMATS)}"
            + ("; compressed files are not read: unpack them first" if compressed else "")
        )
    kind = str(formats.pop())
    return [CsvFile(p) if kind == "csv" else TypedFile(p, kind) for p in paths]


def find_files(pattern: str) -> list[str]:
    """List the files, in order of their names.

    In folders, and where a wildcard matches, names that begin with ``_`` or ``.`` are no data, and
    nothing below them is: so Spark, Hive and Arrow have it, which keep unfinished and removed
    parts there. A name that is written out in full counts, whatever it is.
    """
    if not pattern:
        raise ArgumentError("source: the path is empty")
    expanded = os.path.expanduser(pattern)
    path = Path(expanded)
    if path.is_file():
        return [str(path)]
    paths = _in_folder(path) if path.is_dir() else _matching(expanded)
    if not paths:
        raise SourceError(f"source: no file matches {pattern!r}")
    _refuse_second_names(paths, pattern)
    return sorted(paths)


def _refuse_second_names(paths: list[str], pattern: str) -> None:
    """Raise an ArgumentError at a link to another of the files: each record would count twice."""
    first: dict[tuple[int, int], str] = {}
    for path in sorted(paths):
        about = os.stat(path)
        other = first.setdefault((about.st_dev, about.st_ino), path)
        if other != path:
            raise ArgumentError(
                f"source: {pattern!r} names one file twice, as {other!r} and as {path!r}; its "
                "records would count twice. Leave one of the names out"
            )


def _in_folder(folder: Path) -> list[str]:
    shown = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(map(_is_hidden, path.relative_to(folder).parts))
    ]
    if any(_is_compressed(path) for path in shown):
        raise ArgumentError(
            f"source: folder {str(folder)!r} holds compressed files, which are not read; unpack "
            "them, or give a pattern that leaves them out"
        )
    return [str(path) for path in shown if path.suffix.lower() in FORMATS]


def _matching(pattern: str) -> list[str]:
    """List the files that match, apart from hidden ones that no part of the pattern names."""
    parts = Path(pattern).parts
    return [
        path
        for path in glob.glob(pattern, recursive=True)
        if Path(path).is_file()
        and not any(_is_hidden(part) and not _is_named(part, parts) for part in Path(path).parts)
    ]


def _is_hidden(part: str) -> bool:
    return part.startswith(("_", ".")) and part not in (".", "..")


def _is_named(part: str, pattern: tuple[str, ...]) -> bool:
    return any(part[0] == wanted[0] and fnmatchcase(part, wanted) for wanted in pattern)


def _is_compressed(path: Path) -> bool:
    """Tell whether it is a compressed file of a kind that is read when unpacked."""
    return path.suffix.lower() in COMPRESSED and Path(path.stem).suffix.lower() in FORMATS


class TypedFile:
    """A Parquet or Arrow file, read by its own schema: parts of a table may differ in types."""

    spelled = False

    def __init__(self, path: str, kind: str) -> None:
        self._path = path
        self._kind = kind

    @property
    def name(self) -> str:
        """Return what an error calls the file."""
        return f"file {self._path!r}"

    def types(self) -> Types:
        """Return columns and types as the file's schema has them."""
        schema = self._dataset().schema
        return list(zip(schema.names, schema.types, strict=True))

    def rows(self) -> int | None:
        """Return the number of rows, from the file's footer."""
        return int(self._dataset().count_rows())

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """Yield batches of the plan's columns, in bounded memory."""
        text = {c.column for c in plan.codes if isinstance(c.levels[0], str)}
        dataset = self._dataset()
        if self._kind == "parquet" and text:
            # Distinct texts with an index, as the file has them: a fourth of the time.
            layout = ds.ParquetFileFormat(dictionary_columns=text)
            dataset = ds.dataset(self._path, format=layout)
        yield from scan(dataset, plan.columns)

    def explain(self, plan: SumPlan | None) -> NoisewiseError:
        """Return an error that blames the file: its types were checked before."""
        if plan is None:
            return SourceError(f"{self.name} is empty, damaged, or not what its ending says")
        return SourceError(f"{self.name} is damaged: it could not be read to its end")

    def _dataset(self) -> ds.Dataset:
        return ds.dataset(self._path, format=self._kind)

"""Which files a path, a folder or a glob means."""

from __future__ import annotations

import glob
import os
from fnmatch import fnmatchcase
from pathlib import Path

from noisewise.artifact import ArgumentError, SourceError

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}
"""Formats by the ending of a file's name."""
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".lz4", ".br", ".snappy")
"""Endings of compressed files, which are not read as they are."""


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
    found = _in_folder(path) if path.is_dir() else _matching(expanded)
    if not found:
        raise SourceError(f"source: no file matches {pattern!r}")
    return sorted(found)


def _in_folder(folder: Path) -> list[str]:
    shown = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(map(_is_hidden, path.relative_to(folder).parts))
    ]
    if any(is_packed(path) for path in shown):
        raise ArgumentError(
            f"source: folder {str(folder)!r} holds compressed files, which are not read; unpack "
            "them, or give a pattern that leaves them out"
        )
    return [str(path) for path in shown if path.suffix.lower() in FORMATS]


def _matching(pattern: str) -> list[str]:
    """Files that match, apart from hidden ones that no part of the pattern names."""
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


def is_packed(path: Path) -> bool:
    """Tell whether it is a compressed file of a kind that is read when unpacked."""
    return path.suffix.lower() in PACKED and Path(path.stem).suffix.lower() in FORMATS

"""Summaries as Parquet files, which most tools for tables read: one file, or a folder of slabs.

A file holds the rows of ``PosteriorSummary.table()``, one per group and parameter, and in its
metadata under ``noisewise`` the words as JSON. The files of a folder are such files too, each with
the settings of its run; ``_settings.json`` beside them says how many there must be. Other tools
leave out files whose names begin with an underscore, so that they read the folder as one table.

PyArrow is loaded only where such files are written or read; results that stay in memory need none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisewise.artifact import ArgumentError, Level
from noisewise.artifact.atomic_file import atomic_write
from noisewise.artifact.validation import is_printable, levels
from noisewise.artifact.version import VERSION as SOFTWARE
from noisewise.inference.summaries import (
    STATISTICS,
    GroupSummaries,
    PosteriorSummary,
    SummaryWords,
    posterior_summary,
)

FORMAT = "noisewise-summary"
"""What a summary file calls itself."""
FORMAT_VERSION = 1
"""The version of that format which is written and read."""
PARQUET = b"PAR1"
"""The bytes with which a Parquet file begins."""
SETTINGS_FILE = "_settings.json"
"""The file of a folder that says what its slabs are of."""
MAX_SETTINGS_BYTES = 2**24
"""Bytes of that file at most (chosen)."""
MAX_SLABS = 10**6
"""Slabs of a folder at most (chosen)."""
NUMBERS = (*STATISTICS, "tries")
"""The columns of numbers; each takes eight bytes a row, since nothing is compressed."""


class FolderSettings(NamedTuple):
    """What the slabs of a folder are of, and whether it is filled by parts."""

    settings: dict[str, Any]
    in_parts: bool


def slab_name(number: int) -> str:
    """Return the name of a slab's file."""
    return f"slab-{number:06d}.parquet"


def save(summary: PosteriorSummary, path: Path, settings: Mapping[str, Any] | None = None) -> Path:
    """Write a summary as one file, whole or not at all.

    Args:
        summary: of all groups, or of a slab of them.
        path: where the file goes.
        settings: of the run, which a slab keeps.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "software": SOFTWARE,
        "parameters": summary.parameters,
        "words": asdict(summary.words),
        "settings": settings,
    }
    table = pa.table({name: pa.array(values) for name, values in summary.table().items()})
    table = table.replace_schema_metadata({"noisewise": json.dumps(words)})
    refused = lambda why: ArgumentError(f"path: cannot write {str(path)!r}: {why}")  # noqa: E731
    with atomic_write(path, refused) as temporary:
        pq.write_table(
            table, temporary, compression="none", use_dictionary=["parameter"],
            write_page_checksum=True,
        )  # fmt: skip
    return path


def load(path: Path) -> PosteriorSummary:
    """Read a summary: a file, or a folder of slabs that must all be there.

    An ArgumentError says what is wrong with any other content.
    """
    if not path.is_dir():
        return read(path)[0]
    kept = read_settings(path)
    if kept is None:
        raise ArgumentError(f"path: {str(path)!r} is a folder, and not one of summaries by infer")
    return joined(path, kept.settings)


def joined(folder: Path, settings: Mapping[str, Any]) -> PosteriorSummary:
    """Return the summary in a folder whose slabs must all be there, and of these settings."""
    count = settings["slabs"]
    missing = [k for k in range(count) if not (folder / slab_name(k)).is_file()]
    if missing:
        raise ArgumentError(
            f"path: {len(missing)} of {count} slabs are missing in {str(folder)!r}; infer them "
            "with the same settings, and those that are there are kept"
        )
    parts = [read_slab(folder, k, settings) for k in range(count)]
    first = parts[0]
    if first.keys is None:
        return first
    keys = tuple(key for part in parts for key in part.keys or ())
    return posterior_summary(first.parameters, [numbers_of(p) for p in parts], keys, first.words)


def read_slab(folder: Path, number: int, settings: Mapping[str, Any]) -> PosteriorSummary:
    """Return a slab; an ArgumentError where it is of other settings."""
    path = folder / slab_name(number)
    summary, kept = read(path)
    if kept != {**settings, "slab": number}:
        raise ArgumentError(
            f"out: {str(path)!r} is of {difference(kept or {}, settings)}; give another folder"
        )
    return summary


def numbers_of(summary: PosteriorSummary) -> GroupSummaries:
    """Return a summary's numbers without its words."""
    return GroupSummaries(np.stack([summary.numbers[s] for s in STATISTICS]), summary.tries)


def difference(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Return the first setting in which two runs differ, in words."""
    for name, value in asked.items():
        if kept.get(name) != value:
            if isinstance(value, int | str) and len(str(value)) < 40:
                return f"another run: {name} {kept.get(name)!r}, not {value!r}"
            return f"another run: its {name} differ"
    return "another slab"


def write_settings(folder: Path, settings: Mapping[str, Any], *, in_parts: bool) -> None:
    """Write what the slabs of a folder are of."""
    path = folder / SETTINGS_FILE
    content = json.dumps({"settings": settings, "in_parts": in_parts}, indent=1)
    refused = lambda why: ArgumentError(f"out: cannot write {str(path)!r}: {why}")  # noqa: E731
    with atomic_write(path, refused) as temporary:
        temporary.write_text(content + "\n", encoding="utf-8")


def read_settings(folder: Path) -> FolderSettings | None:
    """Return what the slabs of a folder are of; None where no run has begun there."""
    path = folder / SETTINGS_FILE
    if not path.is_file():
        return None
    why = "it is too large"
    if path.stat().st_size <= MAX_SETTINGS_BYTES:
        try:
            return _checked_settings(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError) as error:
            why = ascii(str(error))[1:-1][:300]
    raise ArgumentError(f"path: {str(path)!r} is no settings of a run ({why})")


def _checked_settings(content: Any) -> FolderSettings:
    settings = content.get("settings") if isinstance(content, dict) else None
    if not isinstance(settings, dict) or settings.get("format") != [FORMAT, FORMAT_VERSION]:
        raise ValueError(f"not of {FORMAT} version {FORMAT_VERSION}")
    slabs = settings.get("slabs")
    if isinstance(slabs, bool) or not isinstance(slabs, int) or not 0 < slabs <= MAX_SLABS:
        raise ValueError(f"slabs must be a whole number from 1 to {MAX_SLABS}")
    return FolderSettings(settings, content.get("in_parts") is True)


def read(path: Path) -> tuple[PosteriorSummary, dict[str, Any] | None]:
    """Return the summary in a file, and the settings of its run where it is a slab."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            said = (file.schema_arrow.metadata or {}).get(b"noisewise")
            if said is None:
                raise ArgumentError(f"path: {str(path)!r} was not written by PosteriorSummary.save")
            words = json.loads(said)
            if (words["format"], words["version"]) != (FORMAT, FORMAT_VERSION):
                raise ArgumentError(
                    f"path: {str(path)!r} has summary format {words['version']!r}, this noisewise "
                    f"reads {FORMAT_VERSION}; infer again from the release"
                )
            # Before anything is allocated: numbers are kept as they are.
            if file.metadata.num_rows * len(NUMBERS) * 8 > path.stat().st_size:
                raise ValueError("it is too small for its rows")
            return _summary(file.read(use_threads=False), words), words["settings"]
    except ArgumentError:
        raise
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, RecursionError) as error:
        why = ascii(str(error))[1:-1][:300]
    raise ArgumentError(
        f"path: {str(path)!r} lacks part of a summary ({why}); it was changed or damaged"
    )


def _summary(table: Any, words: Mapping[str, Any]) -> PosteriorSummary:
    """Return the summary of a file's table and words; a ValueError where they do not fit."""
    parameters = tuple(words["parameters"])
    said: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in words["words"].items()
    }
    spoken = SummaryWords(**said)
    _check_texts([*parameters, *(v for v in said.values() if isinstance(v, str))])
    _check_texts([*spoken.guarantees, *spoken.cautions])
    size = len(parameters)
    if not size or table.num_rows % size:
        raise ValueError("rows are not of the parameters' number")
    groups = table.num_rows // size
    if table.column("parameter").to_pylist() != [*parameters] * groups:
        raise ValueError("parameters are not in their order")
    numbers = np.stack([_column(table, s, np.float64).reshape(groups, size).T for s in STATISTICS])
    tries = _column(table, "tries", np.int64)[::size]
    keys: tuple[Level, ...] | None = None
    if spoken.group_column is not None:
        listed: Sequence[Any] = table.column(0).to_pylist()[::size]
        keys = levels(listed, "groups") if listed else ()
    elif groups != 1:
        raise ValueError("there are rows of several groups")
    return posterior_summary(parameters, [GroupSummaries(numbers, tries)], keys, spoken)


def _column(table: Any, name: str, kind: type[np.generic]) -> np.ndarray:
    values: np.ndarray = table.column(name).to_numpy()
    if values.dtype != kind:
        raise ValueError(f"{name} must be numbers")
    return values


def _check_texts(texts: Sequence[object]) -> None:
    if not all(isinstance(t, str) and all(map(is_printable, t.split("\n"))) for t in texts):
        raise ValueError("words must be printable text")

"""Files that a command reads or writes: results, pages and tables.

What is to be written is checked before time or budget is spent, and never goes over other files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from noisewise.artifact import ArgumentError, Release
from noisewise.artifact.atomic_file import atomic_write

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.inference import Result

ResultFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="RESULT", help="A file that `noisewise infer` wrote.")
]

PAGE_START = b"<!doctype html>"
"""How every page begins that ``report`` writes."""


def check_writable(
    out: Path, ours: Callable[[Path], bool], what: str, option: str = "--out"
) -> None:
    """Raise an ArgumentError where a result could not be written, and so would be lost.

    Args:
        out: where the result is to go.
        ours: whether a file that is there already may be replaced.
        what: what such a file would be.
        option: the option that names the file.
    """
    if not out.parent.is_dir():
        raise ArgumentError(f"{option}: there is no folder {str(out.parent)!r}")
    # A device or a pipe would be replaced by an ordinary file.
    if (out.exists() and not out.is_file()) or not os.access(out.parent, os.W_OK):
        raise ArgumentError(f"{option}: {str(out)!r} cannot be written")
    if out.exists() and not ours(out):
        raise ArgumentError(
            f"{option}: {str(out)!r} exists and is not a {what}; it will not be overwritten"
        )


def check_page(out: Path | None, option: str) -> None:
    """Raise an ArgumentError where a page was asked for and could not be written."""
    if out is not None:
        check_writable(out, _is_page, "page", option)


def _is_page(path: Path) -> bool:
    """Return whether a file may be one of our pages: HTML it is, at least."""
    with open(path, "rb") as opened:
        return opened.read(len(PAGE_START)).lower() == PAGE_START


def check_table(out: Path | None) -> None:
    """Raise an ArgumentError where a CSV file was asked for and could not be written."""
    if out is not None:
        check_writable(out, lambda path: path.suffix == ".csv", "file that ends in .csv")


def write_table(rows: pd.DataFrame, out: Path) -> None:
    """Write rows as a CSV file, whole or not at all; `check_table` was asked before."""
    with atomic_write(
        out, lambda why: ArgumentError(f"--out: {str(out)!r} cannot be written: {why}")
    ) as temporary:
        rows.to_csv(temporary, index=False)


def load_result(path: Path) -> Result:
    """Read a file that ``infer`` wrote; an ArgumentError says what else it is."""
    from noisewise.inference import load

    loaded = load(path)
    if isinstance(loaded, Release):
        raise ArgumentError(f"RESULT: {str(path)!r} is a release; run noisewise infer on it first")
    return loaded

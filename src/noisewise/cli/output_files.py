"""Files that a command writes: checked before time or budget is spent, never over other files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from noisewise.artifact import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

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
    """Write rows as a CSV file; `check_table` was asked before."""
    try:
        rows.to_csv(out, index=False)
    except OSError as error:
        raise ArgumentError(f"--out: {str(out)!r} cannot be written: {error.strerror}") from None

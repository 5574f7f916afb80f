"""Where the records of a CSV file end: quotation marks, escapes and line ends, byte by byte.

Quotation marks decide which line breaks end a record (RFC 4180). A mark that is out of place, or
escaped in another dialect, would make one record's text decide where others end. Such a file is
refused before it is read (Lemma 0, `docs/proofs/records.md`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

CHUNK = 2**22
"""Bytes that are read at a time (chosen)."""
BOM = b"\xef\xbb\xbf"
"""The mark with which some programs begin UTF-8 files."""
QUOTE, COMMA, FEED, RETURN, BACKSLASH = b'",\n\r\\'
"""The bytes that tell where cells and records end."""
EDGES = np.zeros(256, bool)
EDGES[[QUOTE, COMMA, FEED, RETURN]] = True
"""Which bytes may stand at the edge of a cell."""

STRAY = (
    "a quotation mark stands inside a cell that is not enclosed in them, or is followed by more "
    "text; enclose the cell and double the marks inside it, as CSV writers do"
)
"""A fault in words."""
ESCAPED = (
    "a backslash stands before a quotation mark, and two dialects read that differently; write "
    "the file with marks doubled instead (Spark: option('escape', '\"')), or as Parquet"
)
"""A fault in words."""
UNCLOSED = "a quotation mark that opens a cell is never closed"
"""A fault in words."""
LONE = (
    "a carriage return stands without a line feed outside quotation marks, and readers disagree "
    "on whether it ends a record"
)
"""A fault in words."""


def find_fault(path: str) -> str | None:
    """Say why the ends of records cannot be told, without a word of the file; None: they can."""
    inside = False
    for before, chunk, after in _windows(path):
        if not inside and chunk.find(b'"') < 0 and chunk.find(b"\r") < 0:
            continue
        window = np.frombuffer(before + chunk + after, np.uint8)
        marks = np.flatnonzero(window[1:-1] == QUOTE) + 1
        fault = _misplaced(window, marks, inside) or _lone_return(window, marks, inside)
        if fault is not None:
            return fault
        inside ^= bool(len(marks) % 2)
    return UNCLOSED if inside else None


def _windows(path: str) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the file piece by piece, each with the byte before and after it."""
    with open(path, "rb") as file:
        if file.read(len(BOM)) != BOM:
            file.seek(0)
        before, chunk = b"\n", file.read(CHUNK)
        while chunk:
            following = file.read(CHUNK)
            yield before, chunk, following[:1] or b"\n"
            before, chunk = chunk[-1:], following


def _misplaced(window: np.ndarray, marks: np.ndarray, inside: bool) -> str | None:
    """Say what is wrong with the marks, which open and close cells in turn.

    A doubled mark closes a cell and opens it again at once, so that each mark touches an edge of
    a cell or its twin, and nothing else.
    """
    opening, closing = marks[int(inside) :: 2], marks[int(not inside) :: 2]
    if (window[closing - 1] == BACKSLASH).any():
        return ESCAPED
    placed = EDGES[window[opening - 1]].all() and EDGES[window[closing + 1]].all()
    return None if placed else STRAY


def _lone_return(window: np.ndarray, marks: np.ndarray, inside: bool) -> str | None:
    returns = np.flatnonzero(window[1:-1] == RETURN) + 1
    lone = returns[window[returns + 1] != FEED]
    outside = (np.searchsorted(marks, lone) + inside) % 2 == 0
    return LONE if outside.any() else None

"""Large release files in little memory: numbers go from the text into arrays, not into objects.

As Python objects the content of a file takes 7 to 27 times its size. Nearly all of a large release
are whole numbers, below ``"values"`` and in lists. They are cut out of the text, parsed piece by
piece, and kept as 64-bit integers; what is left is small and parsed as usual. In its place each cut
leaves the word NaN, which JSON itself does not have and which Python's parser hands to a hook, in
the order of the text.
"""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisewise.artifact.errors import ReleaseError

MAX_TEXTS = 2_200_000
"""Texts of a file outside ``values``: as many as a release may have groups and levels (chosen)."""

MAX_OTHERS = 200_000
"""Lists, objects and single numbers of a file beside those texts (chosen); each takes 60 bytes."""

CHUNK = 2**16
"""Bytes of numbers that are parsed at once (chosen)."""

_BLANK = rb"[ \t\n\r]*+"
_TEXT = rb'"(?:[^"\\]++|\\.)*+'
_CUTS = re.compile(
    rb'(?P<texts>(?:"[^"\\]*+"' + _BLANK + rb"," + _BLANK + rb")++)"
    rb"|(?P<text>" + _TEXT + rb'(?:"|\Z))'
    rb"|(?P<numbers>\[[-0-9, \t\n\r]{64,}+\])",
    re.DOTALL,
)
_OPENING = re.compile(_BLANK + rb":" + _BLANK + rb"\{")
_MEMBER = re.compile(
    _BLANK + rb"(" + _TEXT + rb'")' + _BLANK + rb":" + _BLANK
    + rb"\[([-0-9, \t\n\r]++)\]" + _BLANK + rb"([,}])",
    re.DOTALL,
)  # fmt: skip
_CONSTANT = re.compile(rb"NaN|-?Infinity")


@dataclass(frozen=True)
class NamedRows:
    """The content of a ``values`` object: a line for each name as written, rows of equal width."""

    written: bytes
    rows: np.ndarray

    def names(self) -> list[str]:
        """Return the names, in the order of the rows."""
        try:
            return [json.loads(name) for name in self.written.decode().split("\n")[:-1]]
        except ValueError:
            raise ReleaseError("release: not valid JSON: a name of 'values'") from None

    def named(self, names: Iterable[str]) -> bool:
        """Return whether these are the names, in this order, written as this library writes."""
        expected = hashlib.sha256()
        for name in names:
            expected.update(json.dumps(name).encode() + b"\n")
        return expected.digest() == hashlib.sha256(self.written).digest()


def parse(held: list[Any], object_pairs_hook: Callable[[list[tuple[str, Any]]], object]) -> object:
    """Parse JSON; long lists of whole numbers become arrays, ``values`` objects become `NamedRows`.

    Args:
        held: the content of the file in UTF-8, alone in a list: it is taken out, to be freed as
            soon as it is cut.
        object_pairs_hook: as that of ``json.loads``.
    """
    pieces, cuts = _cut(held.pop())
    skeleton = b"".join(pieces).decode("utf-8")
    pieces.clear()
    left = iter(cuts)
    return json.loads(
        skeleton, parse_constant=lambda _: next(left), object_pairs_hook=object_pairs_hook
    )


def _cut(content: bytes) -> tuple[list[bytes], list[np.ndarray | NamedRows]]:
    """Return what is left of the text, and what was cut out."""
    pieces: list[bytes] = []
    cuts: list[np.ndarray | NamedRows] = []
    place = kept = texts = others = 0
    while texts <= MAX_TEXTS and (match := _CUTS.search(content, place)) is not None:
        start, end = match.span()
        others += _count_parts(content, place, start)
        place = end
        if match.lastgroup == "numbers":
            cut: np.ndarray | NamedRows | None = _numbers(content, start + 1, end - 1)
            others += _count_parts(content, start, end) if cut is None else 0
        else:
            texts += content.count(b'"', start, end) // 2 if match.lastgroup == "texts" else 1
            cut = None
            if content.startswith(b'"values"', start) and end - start == len('"values"'):
                start, place, cut = _columns(content, end)
        if cut is not None:
            cuts.append(cut)
            pieces += (content[kept:start], b"NaN")
            kept = place
    others += _count_parts(content, place, len(content))
    if texts > MAX_TEXTS or others > MAX_OTHERS + texts:
        raise ReleaseError("release: the file has more parts than any release")
    pieces.append(content[kept:])
    return pieces, cuts


def _count_parts(content: bytes, start: int, end: int) -> int:
    """Return how many lists, objects and further members begin here; refuse NaN and infinities."""
    if (constant := _CONSTANT.search(content, start, end)) is not None:
        name = constant[0].decode()
        raise ReleaseError(f"release: {name} stands for a number; all numbers must be finite")
    return sum(content.count(sign, start, end) for sign in (b",", b"[", b"{"))


def _columns(content: bytes, place: int) -> tuple[int, int, NamedRows | None]:
    """Return where a ``values`` object begins and ends, and what is in it.

    None where it is anything but rows of equally many whole numbers; nothing is then cut.
    """
    refused = place, place, None
    opening = _OPENING.match(content, place)
    if opening is None:
        return refused
    start, place, last = opening.end() - 1, opening.end(), False
    written, numbers, widths, members = bytearray(), _Numbers(), set(), 0
    try:
        while not last:
            member = _MEMBER.match(content, place)
            if member is None:
                return refused
            written += member[1]
            written += b"\n"
            widths.add(content.count(b",", *member.span(2)))
            numbers.add(content, *member.span(2))
            place, last, members = member.end(), member[3] == b"}", members + 1
        rows = numbers.all()
    except (ValueError, OverflowError):
        return refused
    if len(widths) != 1 or written.count(b"\n") != members:
        return refused
    return start, place, NamedRows(bytes(written), rows.reshape(members, -1))


def _numbers(content: bytes, start: int, end: int) -> np.ndarray | None:
    """Return the numbers of a list; None where one is no whole number of 64 bits."""
    numbers = _Numbers()
    try:
        numbers.add(content, start, end)
        return numbers.all()
    except (ValueError, OverflowError):
        return None


class _Numbers:
    """Whole numbers of 64 bits, parsed from texts with commas between them, many at a time."""

    def __init__(self) -> None:
        self._kept, self._waiting, self._size = array("q"), list[bytes](), 0

    def add(self, content: bytes, start: int, end: int) -> None:
        """Take the numbers there; a ValueError or OverflowError, now or later, if one is none."""
        while (comma := content.find(b",", start + CHUNK, end)) > 0:
            self._wait(content[start:comma])
            start = comma + 1
        self._wait(content[start:end])

    def _wait(self, text: bytes) -> None:
        if not text.strip():  # an empty list, or a comma too many
            raise ValueError
        self._waiting.append(text)
        self._size += len(text)
        if self._size >= CHUNK:
            self._parse()

    def _parse(self) -> None:
        if self._waiting:
            self._kept.extend(json.loads(b"[%b]" % b",".join(self._waiting)))
        self._waiting, self._size = [], 0

    def all(self) -> np.ndarray:
        """Return all numbers."""
        self._parse()
        numbers = np.frombuffer(self._kept, np.int64)
        numbers.flags.writeable = False
        return numbers

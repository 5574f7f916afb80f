"""Checks of values, shared by every type on the wire: what, where, and what is accepted.

JSON objects are taken apart by `Fields`: nothing missing, nothing unknown, every type right.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.low_memory_json import NamedRows

MANY = 100_000
"""Entries above which a set of them would take much memory (chosen)."""

Level = str | int
"""A public category: a piece of text or a whole number."""

MAX_INT = 2**63 - 1
"""The largest 64-bit integer."""

MAX_TEXT = 4096
"""Characters of a text at most (chosen); the published schema says the same."""

TRUE_WORDS, FALSE_WORDS = ("true", "True", "TRUE"), ("false", "False", "FALSE")
"""Spellings of 1 and 0: what pandas, Arrow, Spark and R write."""

_PLAIN_DIGITS = re.compile(r"-?[1-9][0-9]{0,18}|0")

# Controls of terminals; lone surrogates, which UTF-8 cannot write; and marks that change the
# direction of what follows or break its line, so that a name shows as another (Unicode's TR 36).
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


def shown(value: object) -> str:
    """Return the value for an error message: on one line, printable and short, whatever it is."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict | NamedRows):
        return "a JSON object"
    if isinstance(value, list | tuple | np.ndarray):
        return f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a whole number of more than 40 digits"
    if isinstance(value, frozenset):
        value = sorted(value)
    text = repr(value[:100] if isinstance(value, str) else value)
    return text if len(text) <= 60 else f"{text[:56]} ..."


def nearest(value: object, listed: Iterable[object]) -> str:
    """Return a question that names the public entry whose spelling is nearest; "" for none.

    Only for what people typed: of a record it would tell how that is spelt.
    """
    if not isinstance(value, str):
        return ""
    # Upper and lower case are the commonest difference.
    by_text = {entry.casefold(): entry for entry in listed if isinstance(entry, str)}
    near = difflib.get_close_matches(value.casefold(), by_text, 1)
    return f"; did you mean {shown(by_text[near[0]])}?" if near else ""


def integer(value: object, where: str, low: int = -MAX_INT, high: int = MAX_INT) -> int:
    """Return a true integer (not a bool, not a float) within [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ReleaseError(f"{where} must be a whole number in [{low}, {high}], not {shown(value)}")
    return value


def real(value: object, where: str) -> float:
    """Return a finite number as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ReleaseError(f"{where} must be a number, not {shown(value)}")
    if isinstance(value, int) and abs(value) > MAX_INT:
        raise ReleaseError(f"{where} is too large: {shown(value)}")
    if not math.isfinite(value):
        raise ReleaseError(f"{where} must be finite, not {shown(value)}")
    return float(value)


def positive(value: object, where: str) -> float:
    """Return a finite number above zero."""
    number = real(value, where)
    if number <= 0:
        raise ReleaseError(f"{where} must be above zero, not {number!r}")
    return number


def text(value: object, where: str) -> str:
    """Return a non-empty string of printable characters, at most MAX_TEXT of them."""
    if not isinstance(value, str) or not value or len(value) > MAX_TEXT:
        raise ReleaseError(
            f"{where} must be a non-empty text of at most {MAX_TEXT} characters, not {shown(value)}"
        )
    if not is_printable(value):
        raise ReleaseError(
            f"{where} must be printable text, not {shown(value)}: control characters, and marks "
            "that change the direction of text, are refused"
        )
    return value


def is_printable(value: str) -> bool:
    """Return whether a terminal or a page shows the text as it is."""
    return _UNPRINTABLE.search(value) is None


def one_of(value: object, allowed: Sequence[str], where: str) -> str:
    """Return the value, which must be one of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise ReleaseError(f"{where} must be one of {', '.join(allowed)}, not {shown(value)}")
    return value


def level(value: object, where: str) -> Level:
    """Return a public category or group key."""
    if isinstance(value, str):
        return text(value, where)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ReleaseError(f"{where} must be a text or a whole number, not {shown(value)}")
    return integer(value, where)


def levels(values: Sequence[object], where: str) -> tuple[Level, ...]:
    """Return a non-empty list of distinct levels, all text or all whole numbers."""
    for i, value in enumerate(values):
        level(value, f"{where}[{i}]")
    checked: tuple[Level, ...] = tuple(values)  # type: ignore[arg-type]  # each was checked
    if not checked:
        raise ReleaseError(f"{where} must not be empty")
    if len({type(v) for v in checked}) > 1:
        raise ReleaseError(f"{where} must be all text or all whole numbers")
    distinct(checked, where)
    return checked


def spellings(value: object) -> tuple[Level, ...]:
    """Return the levels that a value may name, whether it comes as a text or as a number.

    A whole number and its plain digits are one level, as are true and 1, false and 0.

    Example:
        >>> spellings("7"), spellings(7.0), spellings("07")
        (('7', 7), (7, '7'), ('07',))
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return int(value), *(TRUE_WORDS if value else FALSE_WORDS), str(int(value))
    if isinstance(value, str):
        if value in (*TRUE_WORDS, *FALSE_WORDS):
            return value, int(value in TRUE_WORDS)
        return (value, int(value)) if _PLAIN_DIGITS.fullmatch(value) else (value,)
    if isinstance(value, int | float) and math.isfinite(value) and value == int(value):
        return int(value), str(int(value))
    return ()


def listed_level(value: object, listed: Sequence[Level]) -> Level | None:
    """Return the level of a public list that a value names; None where it names none."""
    return next((level for level in spellings(value) if level in listed), None)


def distinct(values: Sequence[object], where: str) -> None:
    """Raise a ReleaseError where an entry stands twice."""
    if len(values) > MANY:
        values = _of_equal_hash(values)
    if len(set(values)) != len(values):
        seen: set[object] = set()
        twice = next(v for v in values if v in seen or seen.add(v))  # type: ignore[func-returns-value]
        raise ReleaseError(f"{where} must not repeat an entry: {shown(twice)} stands twice")


def _of_equal_hash(values: Sequence[object]) -> list[object]:
    """Return the values whose hash is not their own, at eight bytes for each of the others."""
    hashes = np.fromiter(map(hash, values), np.int64, len(values))
    hashes.sort()
    shared = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    return [v for v in values if hash(v) in shared] if shared else []


MAX_ITEMS = 2_200_000
"""Entries of a list that become Python objects (chosen): more than a release may have groups."""


class Fields:
    """A JSON object being taken apart; ``done`` complains about what nobody asked for."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise ReleaseError(f"{where}: must be a JSON object, not {shown(value)}")
        self._left = dict(value)
        self.where = where

    def take(self, name: str) -> Any:
        """Return the field, which its taker checks; a ReleaseError where it is missing."""
        if name not in self._left:
            raise ReleaseError(f"{self.where}: {name!r} is missing")
        return self._left.pop(name)

    def optional(self, name: str) -> Any:
        """Return the field, which its taker checks, or None where it is missing."""
        return self._left.pop(name, None)

    def items(self, name: str) -> list[Any]:
        """Return the field, which must be a list."""
        value = self.take(name)
        if isinstance(value, np.ndarray) and len(value) <= MAX_ITEMS:
            value = value.tolist()  # long lists of a large file are parsed as arrays
        if not isinstance(value, list):
            raise ReleaseError(f"{self.where}: {name!r} must be a list, not {shown(value)}")
        return value

    def flag(self, name: str) -> bool:
        """Return the field, which must be true or false."""
        value = self.take(name)
        if not isinstance(value, bool):
            raise ReleaseError(f"{self.where}: {name!r} must be true or false, not {shown(value)}")
        return value

    def object(self, name: str) -> dict[str, Any]:
        """Return the field, which must be an object with free keys."""
        value = self.take(name)
        if not isinstance(value, dict):
            raise ReleaseError(f"{self.where}: {name!r} must be a JSON object, not {shown(value)}")
        return value

    def done(self) -> None:
        """Raise a ReleaseError where a field was not taken."""
        if self._left:
            raise ReleaseError(f"{self.where}: unknown field {shown(min(self._left))}")


@contextmanager
def located(where: str) -> Iterator[None]:
    """Put ``where`` before the message of any ReleaseError: which of several it is about."""
    try:
        yield
    except ReleaseError as error:
        raise ReleaseError(f"{where}: {error}") from None

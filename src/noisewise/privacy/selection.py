"""Which of the owner's records a source hands over, and which neighbour relation that allows.

A table as it is has one row per record. A filter that looks at one record at a time keeps some of
them, and how many is then a secret. Anything else (a join, a limit, distinct rows) may answer one
changed record with several changed rows. The proof is in ``docs/proofs/selection.md``.

The owner's own filter is ``where=``, whose grammar is small so that every source gives a value one
meaning:

    age >= 18 and sex = 'f' and "household income" < 2e5

A condition compares one column with one public constant. Numbers are compared as float64, the way
every source reads a number; text is compared as it is written, for equality only, since engines
sort it differently. A record with a missing value in a column of a condition is not selected, by
``!=`` neither. What is missing is up to the source: an empty cell of a CSV file is, and so is
``NA`` where the column is not compared with it; an empty text of a data frame or a database is a
text, for which ``sex != 'f'`` holds. Why selection is private under add-remove neighbours: section
3 of the proof.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from noisewise.artifact import ArgumentError, Neighbours
from noisewise.privacy.arguments import name, shown

Kept = Literal["all", "some", "unknown"]
"""How many records of its table a source keeps, as far as can be told."""
_ORDER = ("all", "some", "unknown")


@dataclass(frozen=True)
class KeptRecords:
    """What a source keeps of its table: all records, some by a filter, or who knows what.

    ``by`` says in words what does it, for an error message.
    """

    kept: Kept
    by: str = ""


ALL = KeptRecords("all")
"""What a source without any filter keeps."""


def some(by: str) -> KeptRecords:
    """Return what a filter keeps that looks at one record at a time."""
    return KeptRecords("some", by)


def unknown(by: str) -> KeptRecords:
    """Return what an operation keeps in which one record may change several rows."""
    return KeptRecords("unknown", by)


def whole() -> KeptRecords:
    """Return what a table as it is keeps."""
    return ALL


def strictest(found: Iterable[KeptRecords]) -> KeptRecords:
    """Return the one among several steps that allows least."""
    return max(found, key=lambda each: _ORDER.index(each.kept), default=ALL)


def refuse_kept_records(records: KeptRecords, neighbours: Neighbours) -> None:
    """Raise an ArgumentError where the neighbour relation does not go with what is kept."""
    if records.kept == "unknown":
        raise ArgumentError(
            f"source: it is made by {records.by}, where one record may change more than one "
            "row, so that no noise is known to suffice; write it to a table with one row per "
            "record first and release that table"
        )
    if records.kept == "some" and neighbours == "replace-one":
        raise ArgumentError(
            f"source: it is made by {records.by}, so the number of records kept is a secret, "
            "but under replace-one neighbours that number is made public; release with "
            "neighbours='add-remove' (where= selects records of any source), or give the table "
            "itself"
        )


Operator = Literal["=", "!=", "<", "<=", ">", ">="]
"""How a column is compared with a constant."""

COMPARISONS: dict[Operator, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The comparisons, for arrays and for expressions of an engine."""

EXACT_WHOLE = 2**53
"""Whole numbers from here on are not all told apart by float64."""

FORM = "conditions such as age >= 18 and sex = 'f'"
"""The form of ``where``, for errors."""

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    | '(?P<text>(?:[^']|'')*)'
    | "(?P<quoted>(?:[^"]|"")*)"
    | (?P<word>[^\W\d]\w*)
    | (?P<operator><=|>=|!=|==|=|<|>)
    )\s*""",
    re.VERBOSE,
)
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Condition:
    """One comparison of a column with a public number or text."""

    column: str
    operator: Operator
    constant: float | str

    @property
    def is_numeric(self) -> bool:
        """Whether the column is compared as a number."""
        return not isinstance(self.constant, str)

    def __str__(self) -> str:
        plain = _PLAIN_NAME.fullmatch(self.column) and self.column.lower() != "and"
        column = self.column if plain else '"' + self.column.replace('"', '""') + '"'
        return f"{column} {self.operator} {_written(self.constant)}"


def _written(constant: float | str) -> str:
    if isinstance(constant, str):
        return "'" + constant.replace("'", "''") + "'"
    return str(int(constant)) if constant.is_integer() and abs(constant) < 1e15 else repr(constant)


def parse_where(where: object) -> tuple[Condition, ...]:
    """Return the conditions that a text such as ``age >= 18 and sex = 'f'`` joins; None has none.

    Raises:
        ArgumentError: the text is not of that form.
    """
    if where is None:
        return ()
    if not isinstance(where, str):
        raise ArgumentError(f"where: must be text, {FORM}, not {shown(where)}")
    tokens = _tokens(where)
    conditions = []
    for start in range(0, len(tokens), 4):
        piece, joint = tokens[start : start + 3], tokens[start + 3 : start + 4]
        conditions.append(_condition(piece))
        if joint and not _is_and(joint[0]):
            raise ArgumentError(f"where: conditions are joined by 'and'; give {FORM}")
    if not conditions or len(tokens) % 4 != 3:
        raise ArgumentError(f"where: must be {FORM}, not {shown(where)}")
    return tuple(conditions)


def in_words(conditions: tuple[Condition, ...]) -> str | None:
    """Return the conditions as text that `parse_where` reads, or None where there are none."""
    return " and ".join(map(str, conditions)) or None


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return kinds and texts of the pieces."""
    tokens, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ArgumentError(f"where: must be {FORM}, not {shown(text)}")
        kind = str(match.lastgroup)
        tokens.append((kind, match[kind]))
        place = match.end()
    return tokens


def _is_and(token: tuple[str, str]) -> bool:
    return token[0] == "word" and token[1].lower() == "and"


def _condition(tokens: list[tuple[str, str]]) -> Condition:
    kinds = tuple(kind for kind, _ in tokens)
    fits = len(tokens) == 3 and kinds[0] in ("word", "quoted") and kinds[1] == "operator"
    if not fits or _is_and(tokens[0]) or kinds[2] not in ("number", "text"):
        raise ArgumentError(
            f"where: a condition is a column, a comparison ({' '.join(get_args(Operator))}) and a "
            f"number or a text in single quotes; give {FORM}"
        )
    column = tokens[0][1].replace('""', '"') if kinds[0] == "quoted" else tokens[0][1]
    sign = cast(Operator, "=" if tokens[1][1] == "==" else tokens[1][1])
    constant = _number(tokens[2][1]) if kinds[2] == "number" else _text(tokens[2][1], sign)
    return Condition(name(column, "where"), sign, constant)


def _number(written: str) -> float:
    value = float(written)
    if not math.isfinite(value) or abs(value) >= EXACT_WHOLE:
        raise ArgumentError(f"where: numbers must be below 2**53 in size, not {written}")
    return value + 0.0  # 0.0 for -0.0


def _text(written: str, sign: Operator) -> str:
    constant = written.replace("''", "'")
    if not constant:
        raise ArgumentError("where: an empty text is a missing value in some sources; name another")
    if sign not in ("=", "!="):
        raise ArgumentError(
            f"where: text is compared by = and != only, not by {sign}: engines sort it differently"
        )
    return constant

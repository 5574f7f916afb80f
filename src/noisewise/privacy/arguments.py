"""The owner's arguments, checked before anything else: an error names the argument and a remedy.

An argument that is no plain value is named by its type only: a column of the sensitive table, given
where a number or a public list belongs, must not end up in an error's text.
"""

from __future__ import annotations

import datetime
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, Groups, Level, ReleaseError
from noisewise.artifact import validation as wire
from noisewise.artifact.readable_numbers import in_full

_SHORT = 4
"""A list of so few plain values is shown as it was written."""


def shown(value: object) -> str:
    """Return a plain value, or a few of them, as written; of anything else its type."""
    if value is None or isinstance(value, str | numbers.Number | np.bool_):
        return wire.shown(value)
    if isinstance(value, list | tuple) and len(value) <= _SHORT:
        inside = ", ".join(shown(v) for v in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return type(value).__name__


def number(value: object, argument: str) -> float:
    """Return a finite number, Python's or NumPy's, as a float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ArgumentError(f"{argument}: must be a number, not {shown(value)}")
    try:
        plain = float(value)
    except OverflowError:
        plain = math.inf
    if not math.isfinite(plain):
        raise ArgumentError(f"{argument}: must be a finite number, not {shown(value)}")
    return plain


def number_or_date(value: object, argument: str) -> float:
    """Return a finite number, or a date as days since 1970-01-01, as columns of dates are read."""
    plain = value.astype("datetime64[D]").item() if isinstance(value, np.datetime64) else value
    if isinstance(plain, datetime.datetime):
        if plain.tzinfo is not None or plain != plain:  # Pandas' NaT differs from itself.
            raise ArgumentError(f"{argument}: must be a date without a time zone")
        plain = plain.date()
    if isinstance(plain, datetime.date):
        return float((plain - datetime.date(1970, 1, 1)).days)
    return number(plain, argument)


def positive(value: object, argument: str) -> float:
    """Return a finite number above zero."""
    plain = number(value, argument)
    if not plain > 0:
        raise ArgumentError(f"{argument}: must be above zero, not {shown(value)}")
    return plain


def pair(value: object, argument: str) -> tuple[float, float]:
    """Return two finite numbers, or two dates as numbers."""
    ends = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(ends, Sequence) or isinstance(ends, str | bytes) or len(ends) != 2:
        raise ArgumentError(f"{argument}: must be a pair (lower, upper), not {shown(value)}")
    return number_or_date(ends[0], argument), number_or_date(ends[1], argument)


def mapping(value: object, argument: str, form: str) -> Mapping[Any, Any]:
    """Return a dictionary, such as ``form``; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{argument}: must be a dictionary, {form}, not {shown(value)}")
    return value


def scalar(value: object) -> object:
    """Return a NumPy scalar as Python's, a bool as 0 or 1."""
    if isinstance(value, np.generic):
        value = value.item()
    return int(value) if isinstance(value, bool) else value


# -- columns, bounds, lists ------------------------------------------------------------------------

_HOW = "bounds are public knowledge: give them, for example bounds={{{0!r}: (0, 1)}}"
"""The remedy for bounds that are missing."""


FINEST_SHARE = 1e-12
"""Of the larger limit: smaller magnitudes are not told apart in a search for bounds (chosen). Each
decade more is ten candidates of either sign more, and noise hides a percent of records more."""


@dataclass(frozen=True)
class PrivateBounds:
    """Let part of the budget find a column's bounds, by magnitude, within generous public limits.

    ``within`` may be a million times too wide. ``quantiles`` are the ones to aim for, and values
    beyond are moved to the bounds; left out, that is a per cent at either end, or less where noise
    lets less be seen. What is found is a `nw.Censored` where it cuts more than 2 % off. Magnitudes
    are distances from the point of ``within`` that is nearest to zero. Differences below
    ``resolution`` do not matter; left out, that is the larger limit times 1e-12.

    Example:
        >>> import noisewise as nw
        >>> nw.release.PrivateBounds(within=(0, 1_000_000)).within
        (0.0, 1000000.0)
    """

    within: tuple[float, float]
    quantiles: tuple[float, float] | None = None
    resolution: float = 0.0

    def __post_init__(self) -> None:
        limits = _interval(self.within, "within")
        object.__setattr__(self, "within", (limits.lower, limits.upper))
        if self.quantiles is not None:
            low, high = pair(self.quantiles, "quantiles")
            if not 0 <= low < high <= 1:
                raise ArgumentError(
                    f"quantiles: must satisfy 0 <= low < high <= 1, not {shown(self.quantiles)}"
                )
            object.__setattr__(self, "quantiles", (low, high))
        finest = FINEST_SHARE * max(abs(limits.lower), abs(limits.upper))
        given = number(self.resolution, "resolution")
        if given < 0:
            raise ArgumentError(f"resolution: must not be below zero, not {shown(self.resolution)}")
        object.__setattr__(self, "resolution", max(given, finest))
        if self.resolution > limits.half_width:
            raise ArgumentError(
                f"within: {shown(self.within)} is too narrow to be searched in steps of "
                f"{self.resolution:g}; give bounds instead"
            )


def names(value: object, argument: str) -> tuple[str, ...]:
    """Return one column name or several distinct ones, as a tuple."""
    if isinstance(value, str):
        return (name(value, argument),)
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise ArgumentError(f"{argument}: must be column names, not {shown(value)}")
    given = tuple(name(v, argument) for v in value)
    if not given:
        raise ArgumentError(f"{argument}: names no column")
    if len(set(given)) != len(given):
        raise ArgumentError(f"{argument}: names a column twice")
    return given


def name(value: object, argument: str) -> str:
    """Return one column name."""
    if not isinstance(value, str):
        raise ArgumentError(f"{argument}: must be a column name, not {type(value).__name__}")
    try:
        return wire.text(value, f"{argument}: a column name")
    except ReleaseError as error:
        raise ArgumentError(str(error)) from None


def bounds(column: str, value: object) -> Bounds:
    """Return the bounds that a (lower, upper) pair of finite numbers gives."""
    if value is None:
        raise ArgumentError(f"bounds: none for column {column!r}; {_HOW.format(column)}")
    return value if isinstance(value, Bounds) else _interval(value, f"bounds[{column!r}]")


def _interval(value: object, argument: str) -> Bounds:
    lower, upper = pair(value, argument)
    if not lower < upper:
        raise ArgumentError(f"{argument}: lower must be below upper, not {shown(value)}")
    try:
        return Bounds(lower, upper)
    except ReleaseError as error:
        raise ArgumentError(str(error).replace("bounds:", f"{argument}:", 1)) from None


def all_bounds(
    columns: tuple[str, ...], given: object, factors: tuple[str, ...] = ()
) -> dict[str, Bounds | PrivateBounds]:
    """Return bounds, or the request to choose them privately, for exactly these columns.

    Args:
        columns: those that need bounds.
        given: what the owner gave.
        factors: columns that have levels, and so no bounds.
    """
    if not isinstance(given, Mapping):
        raise ArgumentError(f"bounds: none; {_HOW.format(columns[0])}")
    for column in factors:
        if column in given:
            raise ArgumentError(
                f"bounds: {column!r} is a factor, which has levels and no bounds; if it is a "
                "column of numbers, leave it out of levels"
            )
    lacking = [column for column in columns if column not in given]
    for column in given:
        if column not in columns and lacking:
            raise ArgumentError(
                f"column {lacking[0]!r} has no bounds, and {shown(column)} has bounds but is no "
                "column of this release: is one of them misspelt?"
            )
    found = {
        c: b if isinstance(b := given.get(c), PrivateBounds) else bounds(c, b) for c in columns
    }
    # Last, so that it hides no other error.
    for column in given:
        if column not in columns:
            raise ArgumentError(
                f"bounds: {shown(column)} is not among the columns {', '.join(columns)}"
            )
    return found


def dated_columns(given: Mapping[str, object]) -> dict[str, bool]:
    """Return whether bounds were given as dates, of the columns where their form tells it."""
    pairs = {c: b for c, b in given.items() if not isinstance(b, Bounds | PrivateBounds)}
    return {
        c: all(isinstance(end, datetime.date | np.datetime64) for end in ends)
        for c, ends in pairs.items()
        if isinstance(ends, Iterable)
    }


def widest_bounds(limits: Bounds | PrivateBounds) -> Bounds:
    """Return the bounds, or the public range within which they will be chosen."""
    return limits if isinstance(limits, Bounds) else Bounds(*limits.within)


def groups(value: object) -> Groups | None:
    """Return the groups that ``{"column": [public list of keys]}`` names, or None."""
    if value is None:
        return None
    if isinstance(value, Mapping) and len(value) > 1 and all(map(_is_list, value.values())):
        raise ArgumentError(
            f"groups: must be of one column, not of {len(value)}; for groups by several, make one "
            "column of these in the table, with a public list of its own"
        )
    if not isinstance(value, Mapping) or len(value) != 1:
        # Names no key: where records were given by group, keys are people.
        found = f"a dictionary of {len(value)} entries" if isinstance(value, Mapping) else None
        raise ArgumentError(
            "groups: must be a dictionary {column: [public list of keys]} of one column, "
            f"not {found or type(value).__name__}"
        )
    ((column, keys),) = value.items()
    if isinstance(keys, Mapping):
        # Names no key here either: the one group may be of one person.
        raise ArgumentError(
            "groups: must be a dictionary {column: [public list of keys]}, and has a dictionary "
            "in place of the list"
        )
    return Groups(name(column, "groups"), levels(keys, f"groups[{column!r}]"))


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def levels(value: object, argument: str) -> tuple[Level, ...]:
    """Return a public list of distinct categories; booleans are 0 and 1, NumPy scalars plain ones.

    Entries are named by position: where a column of the table was given instead of a list, they
    are records.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise ArgumentError(f"{argument}: must be a public list, not {type(value).__name__}")
    plain = tuple(scalar(v) for v in value)
    seen: set[object] = set()
    for position, entry in enumerate(plain):
        if not isinstance(entry, str | int):
            raise ArgumentError(
                f"{argument}: entry {position} must be text or a whole number, "
                f"not {type(entry).__name__}"
            )
        if entry in seen:
            raise ArgumentError(f"{argument}: entry {position} repeats an earlier one")
        seen.add(entry)
    if len({type(entry) for entry in plain}) > 1:
        raise ArgumentError(f"{argument}: must be all text or all whole numbers")
    if not plain:
        raise ArgumentError(f"{argument}: must not be empty")
    try:
        return wire.levels(plain, argument)
    except ReleaseError:
        pass
    raise ArgumentError(
        f"{argument}: must be printable text of at most {wire.MAX_TEXT} characters (no control "
        "characters, no marks that change its direction), or whole numbers of 64 bits"
    )


def numeric_fill(
    given: object, columns: Mapping[str, Bounds | PrivateBounds]
) -> dict[str, float | Level]:
    """Return public fill values for missing numbers; inside the bounds, where those are public."""
    filled: dict[str, float | Level] = {}
    for column, value in mapping(given, "fill", "{column: public value}").items():
        if column not in columns:
            raise ArgumentError(f"fill: {shown(column)} is not among {', '.join(columns)}")
        plain, limits = number_or_date(value, f"fill[{column!r}]"), columns[column]
        if isinstance(limits, Bounds) and not limits.lower <= plain <= limits.upper:
            raise ArgumentError(
                f"fill[{column!r}]: {in_full(plain)} lies outside the column's bounds "
                f"({in_full(limits.lower)}, {in_full(limits.upper)})"
            )
        filled[column] = plain
    return filled


def column_fill(
    given: object,
    columns: Mapping[str, Bounds | PrivateBounds],
    levels_of: Mapping[str, tuple[Level, ...]],
) -> dict[str, float | Level]:
    """Return public fill values: a number for a numeric column, a level for a factor."""
    values = mapping(given, "fill", "{column: public value}")
    for column in values:
        if column not in (*columns, *levels_of):
            listed = ", ".join((*columns, *levels_of))
            raise ArgumentError(f"fill: {shown(column)} is not among {listed}")
    numbers_given = {c: v for c, v in values.items() if c in columns}
    levels_given = {c: v for c, v in values.items() if c in levels_of}
    return numeric_fill(numbers_given, columns) | level_fill(levels_given, levels_of)


def level_fill(
    given: object, levels_of: Mapping[str, tuple[Level, ...]]
) -> dict[str, float | Level]:
    """Return public fill values for missing categories: each one of the column's levels."""
    filled: dict[str, float | Level] = {}
    for column, value in mapping(given, "fill", "{column: public level}").items():
        if column not in levels_of:
            raise ArgumentError(f"fill: {shown(column)} is not among {', '.join(levels_of)}")
        level = wire.listed_level(value, levels_of[column])
        if level is None:
            raise ArgumentError(
                f"fill[{column!r}]: {shown(value)} is not among the column's levels"
                f"{wire.nearest(value, levels_of[column])}"
            )
        filled[column] = level
    return filled


def other_levels(given: object, levels_of: Mapping[str, tuple[Level, ...]]) -> dict[str, Level]:
    """Return public levels for what is not on the list; each must itself stand there."""
    levels: dict[str, Level] = {}
    for column, value in mapping(given, "other", "{column: public level}").items():
        if column not in levels_of:
            listed = ", ".join(levels_of)
            raise ArgumentError(
                f"other: {shown(column)} is not among {listed}"
                if listed
                else f"other: {shown(column)} has no levels"
            )
        level = wire.listed_level(value, levels_of[column])
        if level is None:
            raise ArgumentError(
                f"other[{column!r}]: {shown(value)} is not among the column's levels; the level "
                f"that counts the others must be public like the rest"
                f"{wire.nearest(value, levels_of[column])}"
            )
        levels[column] = level
    return levels

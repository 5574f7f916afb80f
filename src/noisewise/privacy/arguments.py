"""The owner's arguments, checked at the door: each error names the argument and its remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from noisewise.artifact import ArgumentError, Bounds, Groups, Level, ReleaseError
from noisewise.artifact import check as wire
from noisewise.privacy.values import mapping, number, pair, scalar, shown

_HOW = "bounds are public knowledge: give them, for example bounds={{{0!r}: (0, 1)}}"


@dataclass(frozen=True)
class PrivateBounds:
    """Let part of the budget choose a column's bounds by private quantiles.

    ``within`` is public and may be generous; ``quantiles`` are the ones to aim for; the search runs
    over evenly spaced candidates.
    """

    within: tuple[float, float]
    quantiles: tuple[float, float] = (0.01, 0.99)
    candidates: int = 1025

    def __post_init__(self) -> None:
        limits = _interval(self.within, "within")
        object.__setattr__(self, "within", (limits.lower, limits.upper))
        low, high = pair(self.quantiles, "quantiles")
        if not 0 <= low < high <= 1:
            raise ArgumentError(
                f"quantiles: must satisfy 0 <= low < high <= 1, not {shown(self.quantiles)}"
            )
        object.__setattr__(self, "quantiles", (low, high))
        if not isinstance(self.candidates, int) or not 3 <= self.candidates <= 2**16 + 1:
            raise ArgumentError(
                f"candidates: must be a whole number in [3, {2**16 + 1}], "
                f"not {shown(self.candidates)}"
            )
        # Neighbouring candidates must differ in float64, or the chosen interval could be empty.
        step = limits.half_width / self.half_candidates
        if limits.upper - step == limits.upper or limits.lower + step == limits.lower:
            raise ArgumentError(
                f"within: {shown(self.within)} is too narrow for {self.candidates} candidates"
            )

    @property
    def half_candidates(self) -> int:
        """Candidates on either side of the middle one."""
        return (self.candidates - 1) // 2


def names(value: object, argument: str) -> tuple[str, ...]:
    """One column name or several distinct ones."""
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
    """One column name."""
    if not isinstance(value, str):
        raise ArgumentError(f"{argument}: must be a column name, not {type(value).__name__}")
    try:
        return wire.text(value, f"{argument}: a column name")
    except ReleaseError as error:
        raise ArgumentError(str(error)) from None


def bounds(column: str, value: object) -> Bounds:
    """A (lower, upper) pair of finite numbers."""
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


def all_bounds(columns: tuple[str, ...], given: object) -> dict[str, Bounds | PrivateBounds]:
    """Bounds, or the wish to have them chosen privately, for exactly these columns."""
    if not isinstance(given, Mapping):
        raise ArgumentError(f"bounds: none; {_HOW.format(columns[0])}")
    for column in given:
        if column not in columns:
            raise ArgumentError(
                f"bounds: {shown(column)} is not among the columns {', '.join(columns)}"
            )
    return {c: b if isinstance(b := given.get(c), PrivateBounds) else bounds(c, b) for c in columns}


def widest(limits: Bounds | PrivateBounds) -> Bounds:
    """What is public about a column's bounds before any are chosen."""
    return limits if isinstance(limits, Bounds) else Bounds(*limits.within)


def groups(value: object) -> Groups | None:
    """``{"column": [public list of keys]}``."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ArgumentError(
            "groups: must be a dictionary {column: [public list of keys]} of one column, "
            f"not {type(value).__name__}"
            + (f" of {len(value)}" if isinstance(value, Mapping) else "")
        )
    ((column, keys),) = value.items()
    return Groups(name(column, "groups"), levels(keys, f"groups[{column!r}]"))


def levels(value: object, argument: str) -> tuple[Level, ...]:
    """A public list of distinct categories; booleans are 0 and 1, NumPy scalars plain ones.

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
        f"{argument}: must be printable text of at most {wire.MAX_TEXT} characters, or whole "
        "numbers of 64 bits"
    )


def numeric_fill(
    given: object, columns: Mapping[str, Bounds | PrivateBounds]
) -> dict[str, float | Level]:
    """Public fill values for missing numbers; inside the bounds, where those are public."""
    filled: dict[str, float | Level] = {}
    for column, value in mapping(given, "fill", "{column: public value}").items():
        if column not in columns:
            raise ArgumentError(f"fill: {shown(column)} is not among {', '.join(columns)}")
        plain, limits = number(value, f"fill[{column!r}]"), columns[column]
        if isinstance(limits, Bounds) and not limits.lower <= plain <= limits.upper:
            raise ArgumentError(
                f"fill[{column!r}]: {plain:g} lies outside the column's bounds "
                f"({limits.lower:g}, {limits.upper:g})"
            )
        filled[column] = plain
    return filled


def level_fill(
    given: object, levels_of: Mapping[str, tuple[Level, ...]]
) -> dict[str, float | Level]:
    """Public fill values for missing categories: each one of the column's levels."""
    filled: dict[str, float | Level] = {}
    for column, value in mapping(given, "fill", "{column: public level}").items():
        if column not in levels_of:
            raise ArgumentError(f"fill: {shown(column)} is not among {', '.join(levels_of)}")
        plain, listed = scalar(value), levels_of[column]
        if not isinstance(plain, str | int | float) or plain not in listed:
            raise ArgumentError(
                f"fill[{column!r}]: {shown(value)} is not among the column's levels"
            )
        filled[column] = listed[listed.index(plain)]  # 1.0 is 1
    return filled

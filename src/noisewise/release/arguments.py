"""The owner's arguments, checked at the door: each error names the argument and its remedy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from noisewise.artifact import ArgumentError, Bounds, Groups, Level, ReleaseError
from noisewise.artifact import check as wire

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
        bounds("within", self.within)
        low, high = self.quantiles
        if not 0 <= low < high <= 1:
            raise ArgumentError(
                f"quantiles: must satisfy 0 <= low < high <= 1, not {self.quantiles!r}"
            )
        if not isinstance(self.candidates, int) or not 3 <= self.candidates <= 2**16 + 1:
            raise ArgumentError(f"candidates: must be in [3, {2**16 + 1}], not {self.candidates!r}")

    @property
    def half_candidates(self) -> int:
        """Candidates on either side of the middle one."""
        return (self.candidates - 1) // 2


def names(value: str | Iterable[str], argument: str) -> tuple[str, ...]:
    """One column name or several distinct ones."""
    given = (value,) if isinstance(value, str) else tuple(value)
    for name in given:
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"{argument}: must be column names, not {name!r}")
    if not given or len(set(given)) != len(given):
        raise ArgumentError(f"{argument}: must be one or more distinct columns, not {value!r}")
    return given


def bounds(column: str, value: object) -> Bounds:
    """A (lower, upper) pair of finite numbers."""
    if isinstance(value, Bounds):
        return value
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise ArgumentError(f"bounds[{column!r}]: must be (lower, upper), not {value!r}")
    for end in value:
        if isinstance(end, bool) or not isinstance(end, int | float) or not math.isfinite(end):
            raise ArgumentError(f"bounds[{column!r}]: must be two finite numbers, not {value!r}")
    if not value[0] < value[1]:
        raise ArgumentError(f"bounds[{column!r}]: lower must be below upper, not {value!r}")
    try:
        return Bounds(*value)
    except ReleaseError as error:
        raise ArgumentError(f"bounds[{column!r}]: {error}") from None


def all_bounds(columns: tuple[str, ...], given: object) -> dict[str, Bounds | PrivateBounds]:
    """Bounds, or the wish to have them chosen privately, for exactly these columns."""
    if not isinstance(given, Mapping):
        raise ArgumentError(f"bounds: {_HOW.format(columns[0])}")
    for column in columns:
        if column not in given:
            raise ArgumentError(f"bounds: none for column {column!r}; {_HOW.format(column)}")
    for column in given:
        if column not in columns:
            raise ArgumentError(f"bounds: {column!r} is not among the columns {', '.join(columns)}")
    return {
        c: given[c] if isinstance(given[c], PrivateBounds) else bounds(c, given[c]) for c in columns
    }


def groups(value: object) -> Groups | None:
    """``{"column": [public list of keys]}``."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ArgumentError(
            "groups: must be {column: [public list of keys]}, with one column, "
            f"not {type(value).__name__}"
        )
    (column, keys), *_ = value.items()
    return Groups(names(column, "groups")[0], levels(keys, f"groups[{column!r}]"))


def levels(value: object, argument: str) -> tuple[Level, ...]:
    """A public list of distinct categories; booleans are 0 and 1, NumPy scalars plain ones."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise ArgumentError(f"{argument}: must be a public list, not {type(value).__name__}")
    plain = tuple(_plain(v) for v in value)
    try:
        return wire.levels(plain, argument)
    except ReleaseError as error:
        raise ArgumentError(str(error)) from None


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return int(value) if isinstance(value, bool) else value


def numeric_fill(
    given: Mapping[str, object] | None, columns: Mapping[str, Bounds | PrivateBounds]
) -> dict[str, float]:
    """Public fill values for missing numbers; inside the bounds, where those are public."""
    filled: dict[str, float] = {}
    for column, value in (given or {}).items():
        if column not in columns:
            raise ArgumentError(f"fill: {column!r} is not among {', '.join(columns)}")
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise ArgumentError(f"fill[{column!r}]: must be a finite number, not {value!r}")
        limits = columns[column]
        if isinstance(limits, Bounds) and not limits.lower <= value <= limits.upper:
            raise ArgumentError(f"fill[{column!r}]: {value!r} lies outside the column's bounds")
        filled[column] = float(value)
    return filled


def level_fill(
    given: Mapping[str, object] | None, levels_of: Mapping[str, tuple[Level, ...]]
) -> dict[str, Level]:
    """Public fill values for missing categories: each one of the column's levels."""
    filled: dict[str, Level] = {}
    for column, value in (given or {}).items():
        if column not in levels_of:
            raise ArgumentError(f"fill: {column!r} is not among {', '.join(levels_of)}")
        plain = _plain(value)
        if plain not in levels_of[column]:
            raise ArgumentError(f"fill[{column!r}]: {value!r} is not among the column's levels")
        filled[column] = plain
    return filled

"""How a column is distributed, by public guess: normal, uniform, skewed, or a list of values.

A plan makes records of guessed laws. Every column is a function of a standard normal score, its
quantile function at Φ(score), so that all laws see the same random numbers. Unless a guess says
otherwise, a number is normal and fills its bounds with three standard deviations either way, and
the levels of a factor are equally frequent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from noisewise.artifact import ArgumentError, Bounds, Level

FILLED = 3.0
"""Standard deviations either way with which a column is taken to fill its bounds (chosen)."""
WORDS = ("binary", "uniform", "skewed")
"""The laws that have a name: half at either bound; even within the bounds; exponential from the
lower bound on, with the deviation that a normal column would have."""
ROUNDING = 1e-6
"""How far shares may be from adding up to one."""


@dataclass(frozen=True)
class ColumnLaw:
    """Mean and deviation of a column, and its shape.

    ``shape`` is "normal", "uniform", "skewed" or "values"; the latter have ``shares``.
    """

    shape: str
    mean: float
    sd: float
    values: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    def quantile(self, score: np.ndarray) -> np.ndarray:
        """Return values of the column at normal scores."""
        if self.shape == "normal":
            return np.asarray(self.mean + self.sd * score)
        if self.shape == "values":
            ends = np.cumsum(self.shares)[:-1]
            return np.asarray(np.take(self.values, np.searchsorted(ends, ndtr(score))))
        if self.shape == "uniform":
            return np.asarray(self.mean + self.sd * np.sqrt(12) * (ndtr(score) - 0.5))
        return np.asarray(self.mean - self.sd * (1 + np.log(ndtr(-score))))


def separated(
    given: Mapping[str, Any], columns: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the guesses of how columns are distributed, and those that are numbers.

    ``slope:age`` is the coefficient ``age``, for a column whose own guess is its distribution.
    """
    about = {
        name: value
        for name, value in given.items()
        if name in columns and isinstance(value, str | Mapping | tuple | list)
    }
    numbers = {
        name.removeprefix("slope:"): value for name, value in given.items() if name not in about
    }
    return about, numbers


def values_law(values: Sequence[float], shares: Sequence[float]) -> ColumnLaw:
    """Return the law of values that occur with these shares."""
    at, p = np.array(values, float), np.array(shares, float)
    mean = float(p @ at)
    sd = float(np.sqrt(p @ (at - mean) ** 2))
    return ColumnLaw("values", mean, sd, tuple(at.tolist()), tuple(p.tolist()))


def numeric_law(
    column: str, bounds: Bounds, given: object, mean: float | None, sd: float | None
) -> ColumnLaw:
    """Return the law of a number.

    Args:
        column: its name, for messages.
        bounds: its public bounds.
        given: the guess: None, a word, a pair (mean, deviation), or shares of values.
        mean: a guess of the mean alone, None where there is none.
        sd: likewise of the deviation.
    """
    moments = {f"mean:{column}": mean, f"sd:{column}": sd}
    if given in ("binary", "uniform") or isinstance(given, Mapping | tuple | list):
        for name in (name for name, value in moments.items() if value is not None):
            raise ArgumentError(f"guess: {name} follows from the guess of {column}; give one")
    if isinstance(given, tuple | list):
        mean, sd = _pair(column, given)
        given = None
    sd = bounds.half_width / FILLED if sd is None else sd
    if not sd > 0:
        raise ArgumentError(f"guess: sd:{column} must be above zero, not {sd!r}")
    if given is None:
        return ColumnLaw("normal", bounds.centre if mean is None else mean, sd)
    if given == "binary":
        return values_law((bounds.lower, bounds.upper), (0.5, 0.5))
    if given == "uniform":
        return ColumnLaw("uniform", bounds.centre, bounds.half_width / np.sqrt(3))
    if given == "skewed":
        return ColumnLaw("skewed", bounds.lower + sd if mean is None else mean, sd)
    if isinstance(given, Mapping):
        return values_law([_number(column, v) for v in given], _shares(column, given.values()))
    raise ArgumentError(
        f"guess: {column} must be a pair (mean, deviation), shares of values, or one of "
        f"{', '.join(WORDS)}, not {given!r}"
    )


def factor_law(column: str, levels: Sequence[Level], given: object) -> ColumnLaw:
    """Return the law of the index of a level: equal shares unless others are given."""
    places = range(len(levels))
    if given is None or given == "uniform" or (given == "binary" and len(levels) == 2):
        return values_law(places, [1 / len(levels)] * len(levels))
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"guess: {column} has levels, so its guess is a share for each, not {given!r}"
        )
    by_text = {str(level): share for level, share in given.items()}
    for level in by_text:
        if level not in map(str, levels):
            listed = ", ".join(map(str, levels))
            raise ArgumentError(f"guess: {level!r} is not a level of {column}; there are {listed}")
    missing = [str(level) for level in levels if str(level) not in by_text]
    if missing:
        left = (1 - sum(by_text.values())) / len(missing)
        by_text |= dict.fromkeys(missing, left)
    return values_law(places, _shares(column, [by_text[str(level)] for level in levels]))


def _pair(column: str, given: Sequence[Any]) -> tuple[float, float]:
    if len(given) != 2:
        raise ArgumentError(f"guess: {column} must be a pair (mean, deviation), not {given!r}")
    return _number(column, given[0]), _number(column, given[1])


def _number(column: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ArgumentError(f"guess: {column} is a number, and {value!r} is not") from None


def _shares(column: str, given: Any) -> list[float]:
    shares = [_number(column, share) for share in given]
    if not shares or min(shares) < 0 or abs(sum(shares) - 1) > ROUNDING:
        raise ArgumentError(
            f"guess: shares of {column} must be zero or more and add up to 1, not {shares}"
        )
    return shares

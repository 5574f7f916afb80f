"""Records to predict, as the release took its own: gaps filled, levels by their codes.

What a table holds is predicted as it was summed, so that the columns of the released table itself
can be given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, Level, Release
from noisewise.models.linear_regression import design_matrix


def checked(
    releases: Sequence[Release],
    levels: Mapping[str, tuple[Level, ...]],
    record: Mapping[str, object],
) -> dict[str, float]:
    """Return the numbers of a record, and the codes of its levels.

    Args:
        releases: behind the posterior; they say what stands for gaps.
        levels: of the factors.
        record: a value for every covariate, as a user gave it.
    """
    at: dict[str, float] = {}
    for column, given in record.items():
        value, where = as_released(releases, column, given), f"new_x[{column!r}]"
        if column in levels:
            (code,) = design_matrix.codes([value], levels[column], where, _why_not(value))
            at[column] = int(code)
            continue
        gap = _why_not(value) if _is_gap(value) else ""
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
            raise ArgumentError(f"{where}: must be one number, not {value!r}{gap}")
        if not np.isfinite(value):
            raise ArgumentError(f"{where}: must be a finite number, not {value!r}{gap}")
        at[column] = float(value)
    return at


def as_released(releases: Sequence[Release], column: str, value: object) -> object:
    """Return a value of a covariate as the release took it, where the file says how.

    A gap becomes the public value for gaps; true and false become 1 and 0 in a column of numbers
    between 0 and 1. Other values stay as they are.
    """
    if _is_gap(value):
        return next((r.fill[column] for r in releases if column in r.fill), value)
    bounds = releases[0].bounds.get(column) if releases else None
    is_flag = isinstance(value, bool | np.bool_) and bounds == Bounds(0, 1)
    return float(value) if is_flag else value  # type: ignore[arg-type]


def _why_not(value: object) -> str:
    """Return why a value that a table may hold is not predicted, to be added to an error."""
    if _is_gap(value):
        return "; the release has no public value for gaps in this column"
    return "; a release does not say which level counts values off the list: give that level"


def _is_gap(value: object) -> bool:
    """Return whether a value is missing: None, NaN, or what pandas writes for it."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")

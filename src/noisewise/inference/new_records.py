"""New records to predict: one, or a table of them; columns that are not needed are ignored."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.inference.results import Prediction

MOST_NUMBERS = 2 * 10**8
"""Draws of all records together (chosen: 1.6 GB, and as much for their means)."""


def given_records(
    new_x: object, wanted: Sequence[str], draws: int
) -> tuple[list[dict[str, Any]], bool]:
    """Return the wanted columns of every record, and whether a table of them was given.

    Args:
        new_x: what a caller gave as records.
        wanted: the columns that are needed.
        draws: numbers that are drawn for every record.
    """
    # Where there is a table of pandas, pandas was loaded.
    pandas: Any = sys.modules.get("pandas")
    listed = ", ".join(wanted)
    if pandas is not None and isinstance(new_x, pandas.DataFrame):
        _check_there(list(new_x.columns), wanted)
        if not len(new_x):
            raise ArgumentError("new_x: must have at least one row")
        if len(new_x) * draws > MOST_NUMBERS:
            raise ArgumentError(
                f"new_x: must have at most {MOST_NUMBERS // draws:,} rows, not {len(new_x):,}"
            )
        return new_x[list(wanted)].to_dict("records"), True
    record = new_x.to_dict() if pandas is not None and isinstance(new_x, pandas.Series) else new_x
    if not isinstance(record, Mapping):
        raise ArgumentError(
            f"new_x: must be one record, a dictionary with a value for each of {listed}, or a "
            "pandas table with these columns"
        )
    _check_there(list(record), wanted)
    return [{column: record[column] for column in wanted}], False


def _check_there(given: Sequence[object], wanted: Sequence[str]) -> None:
    """Raise an ArgumentError where a column is missing; names beside the point may be misspelt."""
    missing = [column for column in wanted if column not in given]
    if not missing:
        return
    others = [str(column) for column in given if column not in wanted]
    there = f"; not needed: {', '.join(others)}" if others else ""
    raise ArgumentError(
        f"new_x: must give a value to each of {', '.join(wanted)}; no value for "
        f"{', '.join(missing)}{there}"
    )


def together(predicted: Sequence[Prediction]) -> Prediction:
    """Return the predictions of several records as one, whose arrays lead with the record."""
    return Prediction(
        np.stack([p.draws for p in predicted]), np.stack([p.expected for p in predicted])
    )

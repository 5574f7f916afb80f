"""Records of the analyst's own, as positions in the public lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError, Level


def codes(table: Any, levels: Mapping[str, tuple[Level, ...]]) -> dict[str, np.ndarray]:
    """Any table whose columns are reached by name."""
    found: dict[str, np.ndarray] = {}
    for column, listed in levels.items():
        try:
            values = np.asarray(table[column])
        except (KeyError, IndexError, TypeError, ValueError):
            raise ArgumentError(f"table: has no column {column!r}") from None
        if values.ndim != 1:
            raise ArgumentError(f"table: column {column!r} must be one-dimensional")
        places = {level: i for i, level in enumerate(listed)}
        index = np.array([places.get(v, -1) for v in values.tolist()], np.int64)
        if (index < 0).any():
            raise ArgumentError(
                f"table: column {column!r} holds a value that is not among its public levels"
            )
        found[column] = index
    if len({len(v) for v in found.values()}) != 1:
        raise ArgumentError("table: its columns differ in length")
    return found

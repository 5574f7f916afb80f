"""The design matrix of records: numbers and levels to products of columns.

A column of the design is a product of numeric columns, where all its factors have a given level
(``formula.DesignColumn``).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from noisewise.artifact import ArgumentError, Level, validation
from noisewise.formula import DesignColumn

MAX_LISTED = 20
"""Levels that an error lists (chosen)."""


def table_columns(design: Sequence[DesignColumn]) -> tuple[str, ...]:
    """Return the columns of the table behind a design, in order of first mention."""
    named = ((*c.numeric, *(f for f, _ in c.levels)) for c in design)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(named)))


def design_matrix(
    design: Sequence[DesignColumn], columns: Mapping[str, np.ndarray], rows: int
) -> np.ndarray:
    """Return the design (row, column) of records.

    Args:
        design: its columns.
        columns: of the table: numbers, and codes of factors, one per row.
        rows: how many records there are.
    """
    matrix = np.ones((rows, len(design)))
    for i, column in enumerate(design):
        for name in column.numeric:
            matrix[:, i] *= columns[name]
        for factor, code in column.levels:
            matrix[:, i] *= columns[factor] == code
    return matrix


def codes(
    values: Sequence[object] | np.ndarray, levels: Sequence[Level], where: str, hint: str = ""
) -> np.ndarray:
    """Return the position of every value among the levels; an ArgumentError lists the levels.

    A level is named by its number or its text, 1 and 0 also by True and False. ``hint`` ends the
    error, unless a level is spelt much like the value.
    """
    place = {level: i for i, level in enumerate(levels)}
    positions = np.empty(len(values), int)
    for i, value in enumerate(values):
        level = next((level for level in validation.spellings(value) if level in place), None)
        if level is None:
            listed = ", ".join(map(repr, levels[:MAX_LISTED]))
            more = ", …" if len(levels) > MAX_LISTED else ""
            why = validation.nearest(value, levels) or hint
            plain = value.item() if isinstance(value, np.generic) else value
            raise ArgumentError(f"{where}: must be one of {listed}{more}, not {plain!r}{why}")
        positions[i] = place[level]
    return positions

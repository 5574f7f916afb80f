"""Records with factors in memory: their design, and their sums within cells.

For simulations only. What an owner publishes is summed by the engines, on whole numbers.
Columns are arrays over records (..., record): numbers as they are, factors as indices of levels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from noisewise.artifact import Bounds
from noisewise.artifact.statistics.cell_sums import CellSums, product_bounds
from noisewise.formula import DesignColumn

Columns = Mapping[str, np.ndarray]
"""Columns of a table by name."""


def design_matrix(design: Sequence[DesignColumn], columns: Columns) -> np.ndarray:
    """Return the design (..., record, column) of records."""
    shape = next(iter(columns.values())).shape
    matrix = np.ones((*shape, len(design)))
    for j, column in enumerate(design):
        for name in column.numeric:
            matrix[..., j] *= columns[name]
        for factor, level in column.levels:
            matrix[..., j] *= columns[factor] == level
    return matrix


def boxed_columns(
    statistic: CellSums, bounds: Mapping[str, Bounds], columns: Columns, *, clamp: bool
) -> np.ndarray:
    """Return the numeric columns of a statistic (column, ..., record), mapped to the box.

    Args:
        statistic: what is summed.
        bounds: public bounds of the table's columns.
        columns: of the records.
        clamp: whether values of the table are moved into their bounds first, as owners do.
    """
    boxed = []
    for product in statistic.numeric:
        value = np.ones(())
        for name in product:
            part = columns[name]
            value = value * (np.clip(part, *_ends(bounds[name])) if clamp else part)
        box = product_bounds(product, bounds)
        boxed.append((value - box.centre) / box.half_width)
    return np.stack(boxed)


def _ends(bounds: Bounds) -> tuple[float, float]:
    return bounds.lower, bounds.upper


def sums_within_cells(statistic: CellSums, boxed: np.ndarray, columns: Columns) -> np.ndarray:
    """Return the sums (trial, component) in box units.

    Args:
        statistic: what is summed.
        boxed: its numeric columns (column, trial, record).
        columns: the factors among them are read (trial, record).
    """
    trials, size = boxed.shape[1:]
    sums = []
    for block in statistic.blocks:
        shape = statistic.shape(block)
        cell = np.zeros((trials, size), np.int64)
        for factor, levels in zip(block.within, shape, strict=True):
            cell = cell * levels + columns[statistic.factors[factor]]
        cells = math.prod(shape)
        cell += cells * np.arange(trials)[:, None]
        weight = np.prod(boxed[list(block.product)], axis=0) if block.product else None
        total = np.bincount(
            cell.ravel(), None if weight is None else weight.ravel(), minlength=cells * trials
        )
        sums.append(total.reshape(trials, cells))
    return np.concatenate(sums, axis=1).astype(float)

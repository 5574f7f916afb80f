"""Sums within cells of records in memory, for simulations only.

What an owner publishes is summed by the engines, on whole numbers. Columns are arrays (trial,
record): numbers as they are, factors as indices of levels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from noisewise.artifact import Bounds
from noisewise.artifact.statistics.cell_sums import CellSums

Columns = Mapping[str, np.ndarray]
"""Columns of a table by name."""


def boxed_columns(statistic: CellSums, bounds: Sequence[Bounds], columns: Columns) -> np.ndarray:
    """Return the numeric columns of a statistic (column, trial, record), mapped to the box.

    Args:
        statistic: what is summed.
        bounds: of its numeric columns.
        columns: of the records, clamped.
    """
    boxed = []
    for product, box in zip(statistic.numeric, bounds, strict=True):
        value = np.ones(())
        for name in product:
            value = value * columns[name]
        boxed.append((value - box.centre) / box.half_width)
    return np.stack(boxed)


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
            cell = cell * levels + columns[statistic.factors[factor]].astype(np.int64)
        cells = math.prod(shape)
        cell += cells * np.arange(trials)[:, None]
        weight = np.prod(boxed[list(block.product)], axis=0) if block.product else None
        total = np.bincount(
            cell.ravel(), None if weight is None else weight.ravel(), minlength=cells * trials
        )
        sums.append(total.reshape(trials, cells))
    return np.concatenate(sums, axis=1).astype(float)

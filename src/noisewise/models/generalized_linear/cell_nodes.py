"""Nodes of covariates that are levels of factors, and numbers within them.

Of levels everything is known that pairs of factors tell: the law of their cells is the one of
largest entropy with these tables, found by iterative proportional fitting. Numbers are independent
of the cells once whitened, each with the law on the box that ``covariate_nodes`` makes of its mean
and variance. Levels come first in the factor L, so that whitening keeps them at two values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import qmc

from noisewise.models.generalized_linear.covariate_nodes import (
    GRID,
    LARGEST,
    LEAST_CELL,
    LEAST_INDICATED,
    NODES_OF_COLUMNS,
    CovariateNodes,
    box_density,
    gauss_rule,
    product_rule,
    standardised,
)

Tables = dict[tuple[int, ...], np.ndarray]
"""Shares of records within the levels of a factor, or of two."""
DrawLevels = Callable[[np.ndarray, Tables, tuple[int, ...]], np.ndarray]
"""Uniform numbers (node, dimension), tables and sizes in, levels (node, factor) out."""
MOST_CELLS = 4096
"""Combinations of levels that are all enumerated (chosen); of more, factors are drawn one given the
one before."""
FITTING_ROUNDS = 100
"""Rounds of iterative proportional fitting (chosen)."""
FITTED = 1e-9
"""Change of a cell at which the fitting ends (chosen)."""
FEWEST = 3
"""Fewest nodes of a number's rule (chosen)."""


def cell_nodes(mean: np.ndarray, covariance: np.ndarray, sizes: tuple[int, ...]) -> CovariateNodes:
    """Return standardised nodes: levels of factors but the first of each, then numbers in the box.

    Args:
        mean: of the columns.
        covariance: likewise.
        sizes: levels of each factor.
    """
    binary = sum(c - 1 for c in sizes)
    others = len(mean) - binary
    tables = pair_tables(mean[:binary], covariance[:binary, :binary], sizes)
    laws = [box_density(mean[j], covariance[j, j]) for j in range(binary, len(mean))]
    if math.prod(sizes) > MOST_CELLS:
        return _drawn(_chained, tables, sizes, laws)
    probability = fitted_cells(tables, sizes)
    kept = np.flatnonzero(probability > LEAST_CELL)
    if others > max(NODES_OF_COLUMNS) or len(kept) * FEWEST**others > LARGEST:
        return _drawn(_by_cell(probability), tables, sizes, laws)
    levels = np.stack(np.unravel_index(kept, sizes), axis=1)
    cells, weight = _columns(levels, sizes), probability[kept] / probability[kept].sum()
    counts = NODES_OF_COLUMNS[others]
    while len(cells) * math.prod(counts) > LARGEST and max(counts) > FEWEST:
        counts = tuple(max(FEWEST, c - 1) for c in counts)
    rules = [gauss_rule(GRID, law, c) for law, c in zip(laws, counts, strict=False)]
    numeric = product_rule(rules) if rules else CovariateNodes(np.zeros((1, 0)), np.ones(1))
    z = np.column_stack([
        np.repeat(cells, len(numeric.weight), axis=0), np.tile(numeric.z, (len(cells), 1))
    ])  # fmt: skip
    whole = np.repeat(weight, len(numeric.weight)) * np.tile(numeric.weight, len(cells))
    return standardised(_levels_whitened(z, whole, binary), whole)


def pair_tables(mean: np.ndarray, covariance: np.ndarray, sizes: tuple[int, ...]) -> Tables:
    """Return shares within the levels of every factor, and of every two, as tables."""
    second = np.block([[np.ones((1, 1)), mean[None]],
                       [mean[:, None], covariance + np.outer(mean, mean)]])  # fmt: skip
    rows, place = [], 1
    for c in sizes:
        own = np.zeros((c, len(second)))
        own[0, 0] = 1.0
        own[0, place : place + c - 1] = -1.0
        own[np.arange(1, c), np.arange(place, place + c - 1)] = 1.0
        rows.append(own)
        place += c - 1
    tables: Tables = {}
    for f, own in enumerate(rows):
        share = np.maximum(own @ second[:, 0], LEAST_INDICATED)
        tables[f,] = share / share.sum()
    for f, g in itertools.combinations(range(len(sizes)), 2):
        table = np.maximum(rows[f] @ second @ rows[g].T, LEAST_CELL)
        tables[f, g] = table / table.sum()
    return tables


def fitted_cells(tables: Tables, sizes: tuple[int, ...]) -> np.ndarray:
    """Return the law of all cells of largest entropy that has these tables, or is near them."""
    cells = np.ones(sizes) / math.prod(sizes)
    every = range(len(sizes))
    finest = [t for t in tables if len(t) == min(2, len(sizes))]
    for _ in range(FITTING_ROUNDS):
        before = cells
        for factors in finest:
            away = tuple(f for f in every if f not in factors)
            ratio = tables[factors] / np.maximum(cells.sum(axis=away), 1e-300)
            cells = cells * np.expand_dims(ratio, away)
        if np.abs(cells - before).max() < FITTED:
            break
    return np.asarray(cells / cells.sum()).ravel()


def _columns(levels: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Return the 0/1 columns of levels (node, factor), the first level of each left out."""
    parts = [levels[:, [f]] == np.arange(1, c) for f, c in enumerate(sizes)]
    return np.concatenate([np.zeros((len(levels), 0)), *parts], axis=1)


def _levels_whitened(z: np.ndarray, weight: np.ndarray, binary: int) -> np.ndarray:
    """Return nodes whose level columns have variance 1: so they weigh as much as numbers."""
    off = z - weight @ z
    size = np.sqrt(weight @ off**2)
    return np.asarray(off / np.where(np.arange(z.shape[1]) < binary, np.maximum(size, 1e-6), 1.0))


def _by_cell(probability: np.ndarray) -> DrawLevels:
    """Return a function that draws levels from the law of all cells."""

    def drawn(uniform: np.ndarray, tables: Tables, sizes: tuple[int, ...]) -> np.ndarray:
        cell = np.searchsorted(np.cumsum(probability), uniform[:, 0]).clip(0, len(probability) - 1)
        return np.stack(np.unravel_index(cell, sizes), axis=1)

    return drawn


def _chained(uniform: np.ndarray, tables: Tables, sizes: tuple[int, ...]) -> np.ndarray:
    """Return levels (node, factor), each factor drawn given the one before."""
    levels = np.empty((len(uniform), len(sizes)), int)
    for f, c in enumerate(sizes):
        law = np.tile(tables[f,], (len(uniform), 1))
        if f:
            law = tables[f - 1, f][levels[:, f - 1]]
            law = law / law.sum(axis=1, keepdims=True)
        levels[:, f] = (np.cumsum(law, axis=1) < uniform[:, [f]]).sum(axis=1).clip(0, c - 1)
    return levels


def _drawn(
    draw: DrawLevels, tables: Tables, sizes: tuple[int, ...], laws: Sequence[np.ndarray]
) -> CovariateNodes:
    """Return points of a Sobol sequence, put through the cells' law and the columns' laws."""
    half = qmc.Sobol(len(sizes) + len(laws), seed=0).random(LARGEST // 2)
    uniform = np.clip(np.concatenate([half, 1 - half]), 1e-6, 1 - 1e-6)
    columns = [_columns(draw(uniform, tables, sizes), sizes)]
    for j, law in enumerate(laws, len(sizes)):
        place = (np.argsort(np.argsort(uniform[:, j])) + 0.5) / len(uniform)
        quantile = np.interp(place, np.cumsum(law) - 0.5 * law, GRID)
        columns.append(((quantile - quantile.mean()) / max(quantile.std(), 1e-9))[:, None])
    weight = np.full(len(uniform), 1 / len(uniform))
    return standardised(_levels_whitened(np.column_stack(columns), weight,
                                         sum(c - 1 for c in sizes)), weight)  # fmt: skip

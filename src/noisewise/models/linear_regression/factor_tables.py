"""Tables of levels behind noisy counts: coordinates in which they can be sampled.

*One table of all factors*, where there are at most two or where factors interact: cells
N = n softmax(0, w), shares ~ Dirichlet(½), whole numbers relaxed. Every w is valid.

*Tables of two factors each*, for three and more: pairs of levels do not come from free cells. The
margins M_f = n softmax(0, w_f) are free, and the tables differ from independence by E,

    N_fg(l, l') = M_f(l) M_g(l') / n + E(l, l'),   E / √(M_f M_g) ~ N(0, ν_fg²),   log ν learnt,

over all cells, rows and columns of E adding up to zero: in the levels but the first it is normal
with precision K_f ⊗ K_g / ν², K_f = diag(1/M_f) + 11'/M_f(0), |K_f| = n / Π M_f(l), whichever level
is first. The sampler moves η with E = η / √(1/noise² + 1/(ν² M_f M_g)): in units of the noise where
it is smaller than what is known before, and of that where it is not. Tables are valid if the Gram
matrix of the indicators is positive definite, and cells are not far below zero.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.linear_regression.factor_structure import Structure

CELL_SHARE = 0.5
"""Dirichlet exponent of the shares of cells, and of margins (Jeffreys')."""
LEAST_CELL = 1e-6
"""Records added to every cell (chosen): keeps an empty cell's design from being singular."""
LOG_ASSOCIATION = math.log(0.1)
"""Median of log ν (chosen): a correlation of indicators of a tenth, up to tenfold either way."""
NEGATIVE = 0.25
"""How far cells may lie below zero, in noise scales, about (chosen): a smooth wall."""
FITTING_ROUNDS = 30
"""Rounds of iterative proportional fitting of the first table (chosen)."""


class Tables(NamedTuple):
    """Counts at a point.

    ``x_gram`` (stratum, column, column) of a covariate's level columns, ``y_gram`` of the
    response's; ``by_cells`` the counts within every set of factors that is asked for.
    """

    x_gram: jax.Array
    y_gram: jax.Array
    by_cells: Mapping[tuple[int, ...], jax.Array]
    log_density: jax.Array

    def cells(self, within: tuple[int, ...]) -> jax.Array:
        """Return the counts within the cells of some factors."""
        return self.by_cells[within]


@lru_cache(maxsize=64)
def pairs(structure: Structure) -> tuple[tuple[int, int], ...]:
    """Return all pairs of factors."""
    return tuple(itertools.combinations(range(len(structure.sizes)), 2))


@lru_cache(maxsize=64)
def number_of_coordinates(structure: Structure) -> int:
    """Return how many coordinates the tables have."""
    if not structure.pairwise:
        return math.prod(structure.cells) - 1
    free = [c - 1 for c in structure.sizes]
    return sum(free) + sum(free[f] * free[g] for f, g in pairs(structure))


def coordinate_sizes(structure: Structure) -> np.ndarray:
    """Return rough sizes of the coordinates before data are seen."""
    sizes = np.full(number_of_coordinates(structure), 2.0)
    if structure.pairwise:
        sizes[sum(c - 1 for c in structure.sizes) :] = 1.0
    return sizes


def wanted_cells(structure: Structure) -> list[tuple[int, ...]]:
    """Return the sets of factors within which counts or means are asked for."""
    return sorted({b.within for b in structure.blocks if len(b.product) < 2})


def tables_at(
    w: jax.Array, n: jax.Array, noise: jax.Array, spreads: jax.Array, structure: Structure
) -> Tables:
    """Return the tables at coordinates w.

    Args:
        w: coordinates of the tables.
        n: records in all.
        noise: scale of a count's noise.
        spreads: log ν of every pair of factors, where tables are of pairs.
        structure: of the statistic.
    """
    if structure.pairwise:
        return _of_pairs(w, n, noise, spreads, structure)
    log_share = jax.nn.log_softmax(jnp.concatenate([jnp.zeros(1), w]))
    return _of_all(n * jnp.exp(log_share) + LEAST_CELL, structure, CELL_SHARE * log_share.sum())


def _of_all(table: jax.Array, structure: Structure, log_density: jax.Array) -> Tables:
    by_stratum = table.reshape(structure.cells)
    x_grid, y_grid = structure.x_grid, structure.y_grid
    return Tables(
        jnp.einsum("ck,sc,cl->skl", x_grid, by_stratum, x_grid),
        jnp.einsum("ck,c,cl->kl", y_grid, table, y_grid),
        {
            within: jnp.asarray(structure.margin(within)) @ table
            for within in wanted_cells(structure)
        },
        log_density,
    )


@lru_cache(maxsize=64)
def _indicators(structure: Structure) -> tuple[np.ndarray, list[int]]:
    """Return the matrix from level columns to indicators of all levels, and where factors begin."""
    starts = np.concatenate([[0], np.cumsum(structure.sizes)])
    matrix = np.zeros((starts[-1], len(structure.x_columns)))
    for k, column in enumerate(structure.x_columns):
        if column.term:
            (f,), (level,) = column.term, column.levels
            matrix[starts[f] + level, k] = 1.0
            matrix[starts[f], k] = -1.0
    matrix[starts[:-1], 0] = 1.0
    return matrix, [int(s) for s in starts]


def _of_pairs(
    w: jax.Array, n: jax.Array, noise: jax.Array, spreads: jax.Array, structure: Structure
) -> Tables:
    sizes = structure.sizes
    place, value = 0, jnp.zeros(())
    margins = []
    for c in sizes:
        log_share = jax.nn.log_softmax(jnp.concatenate([jnp.zeros(1), w[place : place + c - 1]]))
        margins.append(n * jnp.exp(log_share) + LEAST_CELL)
        value = value + CELL_SHARE * log_share.sum()
        place += c - 1
    first = [1 + sum(c - 1 for c in sizes[:f]) for f in range(len(sizes))]
    free = jnp.concatenate([m[1:] for m in margins])
    gram = jnp.diag(jnp.concatenate([n[None], free]))
    gram = gram.at[0, 1:].set(free).at[1:, 0].set(free)
    for (f, g), log_nu in zip(pairs(structure), spreads, strict=True):
        a, b = margins[f], margins[g]
        shape = (sizes[f] - 1, sizes[g] - 1)
        eta = w[place : place + shape[0] * shape[1]].reshape(shape)
        place += shape[0] * shape[1]
        known = jnp.exp(2 * log_nu) * a[1:, None] * b[None, 1:] / n
        size = 1 / jnp.sqrt(1 / noise**2 + 1 / known)
        apart = eta * size
        value = value + jnp.log(size).sum() + _log_apart(apart, a, b, n, log_nu)
        block = a[1:, None] * b[None, 1:] / n + apart
        rows, columns = first[f] + np.arange(shape[0]), first[g] + np.arange(shape[1])
        gram = gram.at[np.ix_(rows, columns)].set(block)
        gram = gram.at[np.ix_(columns, rows)].set(block.T)
    matrix, starts = _indicators(structure)
    whole = matrix @ gram @ matrix.T
    by_cells: dict[tuple[int, ...], jax.Array] = {}
    for within in wanted_cells(structure):
        if len(within) == 1:
            by_cells[within] = margins[within[0]]
        else:
            f, g = within
            cells = whole[starts[f] : starts[f + 1], starts[g] : starts[g + 1]].reshape(-1)
            by_cells[within] = cells
            below = jnp.minimum(cells / (NEGATIVE * noise), 0.0)
            value = value - 0.5 * (below**2).sum()
    return Tables(gram[None], gram, by_cells, value)


def _log_apart(
    apart: jax.Array, a: jax.Array, b: jax.Array, n: jax.Array, log_nu: jax.Array
) -> jax.Array:
    """Return the log density of a table's difference from independence."""
    rows = jnp.concatenate([-apart.sum(axis=0)[None], apart])
    whole = jnp.concatenate([-rows.sum(axis=1)[:, None], rows], axis=1)
    square = (whole**2 / (a[:, None] * b[None])).sum() * n
    p, q = apart.shape
    half = 0.5 * (q * (jnp.log(n) - jnp.log(a).sum()) + p * (jnp.log(n) - jnp.log(b).sum()))
    return half - p * q * (log_nu - 0.5 * jnp.log(n)) - 0.5 * square * jnp.exp(-2 * log_nu)


def first_tables(
    structure: Structure, counts: Mapping[tuple[int, ...], np.ndarray], n: float, noise: float
) -> tuple[np.ndarray, Tables]:
    """Return coordinates of valid tables near noisy counts, and the tables."""
    if not structure.pairwise:
        table = _fitted(structure, counts, n, noise)
        return np.log(table[1:] / table[0]), _of_all(jnp.asarray(table), structure, jnp.zeros(()))
    w = np.zeros(number_of_coordinates(structure))
    sizes, place, margins = structure.sizes, 0, []
    for f, c in enumerate(sizes):
        seen = np.zeros(c)
        for within, cells in counts.items():
            if f in within:
                table = cells.reshape([sizes[i] for i in within])
                seen += table.sum(axis=1 - within.index(f))
        seen = np.maximum(seen / (len(sizes) - 1), 0.5 * noise)
        margins.append(seen * n / seen.sum())
        w[place : place + c - 1] = np.log(margins[f][1:] / margins[f][0])
        place += c - 1
    nu = math.exp(LOG_ASSOCIATION)
    for f, g in pairs(structure):
        a, b = margins[f][1:, None], margins[g][None, 1:]
        seen = counts[f, g].reshape(sizes[f], sizes[g])[1:, 1:]
        size = 1 / np.sqrt(1 / noise**2 + n / (nu**2 * a * b))
        limit = 0.3 * a * b / n
        eta = np.clip(seen - a * b / n, -limit, limit) / size
        w[place : place + eta.size] = eta.ravel()
        place += eta.size
    begin = sum(c - 1 for c in sizes)
    spreads = jnp.full(len(pairs(structure)), LOG_ASSOCIATION)
    while True:
        tables = tables_at(jnp.asarray(w), jnp.asarray(n), jnp.asarray(noise), spreads, structure)
        if np.linalg.eigvalsh(np.asarray(tables.y_gram))[0] > 0:
            return w, tables
        w[begin:] *= 0.5


def _fitted(
    structure: Structure, counts: Mapping[tuple[int, ...], np.ndarray], n: float, noise: float
) -> np.ndarray:
    """Return cells whose margins are near the noisy counts, by iterative proportional fitting."""
    cells = math.prod(structure.cells)
    table = np.full(cells, n / cells)
    for _ in range(FITTING_ROUNDS):
        for within, seen in counts.items():
            margin = structure.margin(within)
            wanted = np.maximum(seen, 0.3 * noise)
            wanted = wanted * n / wanted.sum()
            table = table * (margin.T @ (wanted / np.maximum(margin @ table, 1e-12)))
    return np.asarray(np.maximum(table, 1e-4))

"""Counts of records in the cells of factors, behind noisy ones: coordinates to sample them in.

*One table of all factors*, where there are at most two (of few levels) or factors interact: cells
N = n softmax(0, w), shares ~ Dirichlet(½), whole numbers relaxed. Every w is valid.

*Tables of two factors each*, for more: pairs of levels do not come from free cells. The
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

import noisewise.numerics.jax_settings  # noqa: F401  # float64
from noisewise.models.linear_regression.factor_structure import Structure

CELL_SHARE = 0.5
"""Dirichlet exponent of the shares of cells, and of margins (Jeffreys')."""
LEAST_CELL = 1e-6
"""Records added to every cell (chosen): keeps an empty cell's design from being singular."""
LOG_ASSOCIATION = math.log(0.1)
"""Median of log ν (chosen): a correlation of indicators of a tenth, up to tenfold either way."""
BEYOND = 0.25
"""How far cells may lie below zero, and sums within them beyond what records in the box add up to,
in noise scales, about (chosen): a smooth wall."""
FITTING_ROUNDS = 30
"""Rounds of iterative proportional fitting of the first table (chosen)."""


class LatentCounts(NamedTuple):
    """The counts behind the noise, at a point of the sampler.

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


def latent_counts_at(
    w: jax.Array, n: jax.Array, noise: jax.Array, spreads: jax.Array, structure: Structure
) -> LatentCounts:
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


def _of_all(table: jax.Array, structure: Structure, log_density: jax.Array) -> LatentCounts:
    by_stratum = table.reshape(structure.cells)
    x_grid, y_grid = structure.x_grid, structure.y_grid
    return LatentCounts(
        jnp.einsum("ck,sc,cl->skl", x_grid, by_stratum, x_grid),
        jnp.einsum("ck,c,cl->kl", y_grid, table, y_grid),
        {
            within: jnp.asarray(structure.margin(within)) @ table
            for within in wanted_cells(structure)
        },
        log_density,
    )


class _Levels(NamedTuple):
    """Constant maps between the levels of all factors, one after the other, and what is free.

    ``factor`` and ``level`` of each; ``free`` the levels but the first of every factor; ``starts``
    of the factors; ``coordinate`` (free, free) the place of each difference E among the
    coordinates; ``across`` (level, level) whether two levels are of different factors; ``contrast``
    (level, free) from differences of free levels to those of all; ``degrees`` how often |K| of each
    factor counts.
    """

    factor: np.ndarray
    level: np.ndarray
    free: np.ndarray
    starts: np.ndarray
    coordinate: np.ndarray
    across: np.ndarray
    contrast: np.ndarray
    degrees: np.ndarray


@lru_cache(maxsize=64)
def _levels(structure: Structure) -> _Levels:
    sizes = structure.sizes
    factor = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    level = np.arange(len(factor)) - starts[factor]
    free = np.flatnonzero(level > 0)
    coordinate = np.zeros((len(free), len(free)), int)
    place = len(free)
    for f, g in pairs(structure):
        rows, columns = np.flatnonzero(factor[free] == f), np.flatnonzero(factor[free] == g)
        block = place + np.arange(len(rows) * len(columns)).reshape(len(rows), len(columns))
        coordinate[np.ix_(rows, columns)] = block
        coordinate[np.ix_(columns, rows)] = block.T
        place += block.size
    contrast = np.zeros((len(factor), len(free)))
    contrast[free, np.arange(len(free))] = 1.0
    contrast[starts[factor[free]], np.arange(len(free))] = -1.0
    total = sum(c - 1 for c in sizes)
    degrees = np.array([total - (c - 1) for c in sizes], float)
    across = factor[:, None] != factor[None]
    return _Levels(factor, level, free, starts, coordinate, across, contrast, degrees)


def _of_pairs(
    w: jax.Array, n: jax.Array, noise: jax.Array, spreads: jax.Array, structure: Structure
) -> LatentCounts:
    known = _levels(structure)
    free, factor, across = known.free, known.factor, known.across
    m = len(structure.sizes)
    # Margins: a row of logits per factor, padded, the first of each zero.
    logits = jnp.full((m, max(structure.sizes)), -jnp.inf)
    logits = logits.at[:, 0].set(0.0).at[factor[free], known.level[free]].set(w[: len(free)])
    log_share = jax.nn.log_softmax(logits, axis=1)[factor, known.level]
    margin = n * jnp.exp(log_share) + LEAST_CELL
    value = CELL_SHARE * log_share.sum()
    nu = jnp.zeros((m, m)).at[tuple(np.array(pairs(structure)).T)].set(jnp.exp(spreads))
    nu = (nu + nu.T)[factor[:, None], factor[None]]
    product = margin[:, None] * margin[None]
    before = jnp.where(across, nu**2 * product, 1.0)
    size = 1 / jnp.sqrt(1 / noise**2 + 1 / before[np.ix_(free, free)])
    apart_free = jnp.where(across[np.ix_(free, free)], w[known.coordinate] * size, 0.0)
    apart = known.contrast @ apart_free @ known.contrast.T
    # Every table stands twice in these matrices.
    value = value + 0.5 * jnp.where(across[np.ix_(free, free)], jnp.log(size), 0.0).sum()
    value = value - 0.25 * jnp.where(across, apart**2 / before, 0.0).sum()
    ranks = np.array([(structure.sizes[f] - 1) * (structure.sizes[g] - 1)
                      for f, g in pairs(structure)])  # fmt: skip
    log_margins = jnp.zeros(m).at[factor].add(jnp.log(margin))
    value = value - ranks @ spreads + 0.5 * known.degrees @ (jnp.log(n) - log_margins)
    cells = product / n + apart
    below = jnp.minimum(cells / (BEYOND * noise), 0.0)
    value = value - 0.25 * jnp.where(across, below**2, 0.0).sum()
    inner = jnp.where(across[np.ix_(free, free)], cells[np.ix_(free, free)], 0.0)
    inner = inner + jnp.diag(margin[free])
    gram = jnp.block([[n[None, None], margin[free][None]], [margin[free][:, None], inner]])
    starts = known.starts
    by_cells = {
        within: margin[starts[within[0]] : starts[within[0] + 1]]
        if len(within) == 1
        else cells[
            starts[within[0]] : starts[within[0] + 1], starts[within[1]] : starts[within[1] + 1]
        ].reshape(-1)
        for within in wanted_cells(structure)
    }
    return LatentCounts(gram[None], gram, by_cells, value)


def first_latent_counts(
    structure: Structure, counts: Mapping[tuple[int, ...], np.ndarray], n: float, noise: float
) -> tuple[np.ndarray, LatentCounts]:
    """Return coordinates of valid tables near noisy counts, and the tables."""
    if not structure.pairwise:
        table = _fitted(structure, counts, n, noise)
        return np.log(table[1:] / table[0]), _of_all(jnp.asarray(table), structure, jnp.zeros(()))
    w = np.zeros(number_of_coordinates(structure))
    sizes, place, margins = structure.sizes, 0, []
    for f, (c, seen) in enumerate(zip(sizes, noisy_margins(structure, counts), strict=True)):
        seen = np.maximum(seen, 0.5 * noise)
        margins.append(seen * n / seen.sum())
        w[place : place + c - 1] = np.log(margins[f][1:] / margins[f][0])
        place += c - 1
    nu = math.exp(LOG_ASSOCIATION)
    for f, g in pairs(structure):
        a, b = margins[f][1:, None], margins[g][None, 1:]
        seen = counts[f, g].reshape(sizes[f], sizes[g])[1:, 1:]
        size = 1 / np.sqrt(1 / noise**2 + 1 / (nu**2 * a * b))
        limit = 0.3 * a * b / n
        eta = np.clip(seen - a * b / n, -limit, limit) / size
        w[place : place + eta.size] = eta.ravel()
        place += eta.size
    begin = sum(c - 1 for c in sizes)
    spreads = jnp.full(len(pairs(structure)), LOG_ASSOCIATION)
    while True:
        tables = latent_counts_at(
            jnp.asarray(w), jnp.asarray(n), jnp.asarray(noise), spreads, structure
        )
        if np.linalg.eigvalsh(np.asarray(tables.y_gram))[0] > 0:
            return w, tables
        w[begin:] *= 0.5


def noisy_margins(
    structure: Structure, counts: Mapping[tuple[int, ...], np.ndarray]
) -> list[np.ndarray]:
    """Return each factor's margin, averaged over its tables with the other factors."""
    sizes, margins = structure.sizes, []
    for f, c in enumerate(sizes):
        seen = np.zeros(c)
        for (first, second), cells in counts.items():
            if f in (first, second):
                seen += cells.reshape(sizes[first], sizes[second]).sum(axis=int(f == first))
        margins.append(seen / (len(sizes) - 1))
    return margins


def indicator_gram(
    structure: Structure, counts: Mapping[tuple[int, ...], np.ndarray], n: float
) -> np.ndarray:
    """Return the Gram matrix of the level columns from tables of pairs as they are."""
    known, sizes = _levels(structure), structure.sizes
    margin = np.concatenate(noisy_margins(structure, counts))
    whole = np.diag(margin)
    for (f, g), cells in counts.items():
        rows = slice(known.starts[f], known.starts[f + 1])
        columns = slice(known.starts[g], known.starts[g + 1])
        whole[rows, columns] = cells.reshape(sizes[f], sizes[g])
        whole[columns, rows] = whole[rows, columns].T
    free = known.free
    inner = whole[np.ix_(free, free)]
    return np.block([[np.array([[n]]), margin[free][None]], [margin[free][:, None], inner]])


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

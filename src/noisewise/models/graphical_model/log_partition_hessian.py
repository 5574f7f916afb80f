"""An approximate Hessian of the log-partition function that is cheap to solve with.

∇²A is the covariance of the indicators of all cells. Split a function of a table into the additive
one nearest to it, a constant and one function per column (least squares under μ_C), and the rest,
and let only the additive parts of different tables covary:

    B = Σ_C (W - W E G⁻¹ Eᵀ W)  +  Qᵀ S Q,      Q = Σ_C J G⁻¹ Eᵀ W

with W = diag(μ_C), E the indicators of a table's columns and the constant, G = EᵀWE, J what drops
the constant, and S the covariance of the indicators of all columns. What moves a function of one
column from one table to another changes no probability: B is zero there, as ∇²A is. On trees of
pair tables B is ∇²A. With a diagonal D, d = 1/(W + D) and Z = Eᵀ W D d E,

    (B + D)⁻¹ q = d (q + W E e),   e = Z⁻¹ (a - Jᵀh),   a = Eᵀ W d q,
    (S⁻¹ + Σ_C J (Z⁻¹ - G⁻¹) Jᵀ) h = Σ_C J Z⁻¹ a:

one matrix per table as large as its columns' states, and one as large as all columns' states.

S is completed from tables that show some columns together (``completed_covariance``): where no
table shows two columns, it is what linear prediction through the tables implies. Columns enter in
the reverse of the order they are summed out; each is predicted from those already there that share
a table with it. On trees nothing is lost: the expectation of an indicator given a column is linear
in that column's indicators. The last state of a column follows from the others and has no
indicator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from noisewise.models.graphical_model.structure import Structure
from noisewise.numerics.interior_point import Solver

MIN_CELL_SHARE = 1e-9
"""Cells of less than this share of the mean are taken to have it, so that W can be inverted."""
MAX_ARRAY_ENTRIES = 2**23
"""Numbers in any one array (64 MiB): beyond, the curvature is not worth its cost (chosen)."""
MAX_CANONICAL_CORRELATION = 0.999
"""Between a column and those before it (chosen), so that S can be inverted."""

TableCovariance = tuple[np.ndarray, np.ndarray]
"""Of several tables: which indicators they have, and those indicators' covariances."""


@dataclass(frozen=True, eq=False)
class TableBatch:
    """Tables of one shape: their cells, where their columns' states are, E, W and G⁻¹."""

    cells: np.ndarray
    states: np.ndarray
    indicators: np.ndarray
    weights: np.ndarray
    inverse: np.ndarray


@dataclass(frozen=True, eq=False)
class AdditiveCurvature:
    """The matrix B of all tables, with S and S⁻¹."""

    tables: tuple[TableBatch, ...]
    covariance: np.ndarray
    precision: np.ndarray

    def times(self, x: np.ndarray) -> np.ndarray:
        """Return B x."""
        main, parts = np.zeros((*x.shape[:-1], len(self.covariance))), []
        for t in self.tables:
            part = (t.weights * x[..., t.cells]) @ t.indicators
            part = _each(t.inverse, part)
            _collect(main, t, part)
            parts.append(part)
        main, product = main @ self.covariance, np.empty_like(x)
        for t, part in zip(self.tables, parts, strict=True):
            change = _each(t.inverse, _distribute(main, t)) - part
            product[..., t.cells] = t.weights * (x[..., t.cells] + change @ t.indicators.T)
        return product

    def solver(self, diagonal: np.ndarray) -> Solver:
        """Return q → (B + diag)⁻¹ q."""
        system, inverses, shrinks = self.precision.copy(), [], []
        for t in self.tables:
            own = diagonal[t.cells]
            shrink = 1 / (t.weights + own)
            inverse = np.linalg.inv(_gram(t.indicators, t.weights * own * shrink))
            np.add.at(
                system,
                (t.states[:, :, None], t.states[:, None, :]),
                (inverse - t.inverse)[:, 1:, 1:],
            )
            inverses.append(inverse)
            shrinks.append(shrink)
        factor = cho_factor(system, check_finite=False)

        def solve(q: np.ndarray) -> np.ndarray:
            main, sums = np.zeros((*q.shape[:-1], len(system))), []
            for t, inverse, shrink in zip(self.tables, inverses, shrinks, strict=True):
                total = (t.weights * shrink * q[..., t.cells]) @ t.indicators
                _collect(main, t, _each(inverse, total))
                sums.append(total)
            main, x = cho_solve(factor, main.T, check_finite=False).T, np.empty_like(q)
            for t, inverse, shrink, total in zip(self.tables, inverses, shrinks, sums, strict=True):
                change = _each(inverse, total - _distribute(main, t)) @ t.indicators.T
                x[..., t.cells] = shrink * (q[..., t.cells] + t.weights * change)
            return x

        return solve


def curvature_fits(model: Structure) -> bool:
    """Return whether B is small enough to work with."""
    entries = sum(math.prod(s := model.shape(c)) * sum(s) for c in model.cliques)
    return entries <= MAX_ARRAY_ENTRIES and sum(model.states) ** 2 <= MAX_ARRAY_ENTRIES


def additive_curvature(model: Structure, mu: np.ndarray) -> AdditiveCurvature:
    """Return B at marginals ``mu``."""
    mu = np.maximum(mu, MIN_CELL_SHARE * mu.mean())
    columns = _indicator_places(model)
    shapes: dict[tuple[int, ...], list[int]] = {}
    for i, clique in enumerate(model.cliques):
        shapes.setdefault(model.shape(clique), []).append(i)
    tables, shown = [], []
    for shape, members in shapes.items():
        cells = np.stack([np.arange(w.start, w.stop) for w in (model.slices[i] for i in members)])
        states = np.stack([np.concatenate([columns[v] for v in model.cliques[i]]) for i in members])
        indicators = _indicators(shape)
        weights = mu[cells] / mu[cells].sum(axis=1, keepdims=True)
        gram = _gram(indicators, weights)
        single = gram[:, 0, 1:]
        tables.append(TableBatch(cells, states, indicators, weights, np.linalg.inv(gram)))
        shown.append((states, gram[:, 1:, 1:] - single[:, :, None] * single[:, None, :]))
    covariance = completed_covariance(model, shown)
    return AdditiveCurvature(tuple(tables), covariance, np.linalg.inv(covariance))


def _indicators(shape: tuple[int, ...]) -> np.ndarray:
    """Return E: cells by the constant and all but the last state of every column."""
    cells = np.indices(shape).reshape(len(shape), -1)
    states = [np.eye(k)[state][:, :-1] for k, state in zip(shape, cells, strict=True)]
    return np.hstack([np.ones((cells.shape[1], 1)), *states])


def _gram(indicators: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return Eᵀ W E of every table."""
    return np.asarray((indicators.T * weights[:, None, :]) @ indicators)


def _each(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return every table's (symmetric) matrix times its vector."""
    return np.asarray((vectors[..., None, :] @ matrices)[..., 0, :])


def _collect(main: np.ndarray, tables: TableBatch, parts: np.ndarray) -> None:
    """Add the tables' functions of columns to ``main`` in place (J)."""
    for i, own in enumerate(tables.states):
        main[..., own] += parts[..., i, 1:]


def _distribute(main: np.ndarray, tables: TableBatch) -> np.ndarray:
    """Give every table its columns' functions, with a constant of zero (Jᵀ)."""
    parts = main[..., tables.states]
    return np.concatenate([np.zeros((*parts.shape[:-1], 1)), parts], axis=-1)


def _indicator_places(model: Structure) -> dict[str, np.ndarray]:
    """Return where each column's indicators stand in S."""
    stops = np.cumsum([k - 1 for k in model.states])
    return {
        v: np.arange(stop - k + 1, stop)
        for v, k, stop in zip(model.variables, model.states, stops, strict=True)
    }


def completed_covariance(model: Structure, shown: list[TableCovariance]) -> np.ndarray:
    """Return S, the covariance of all indicators, from those that tables show."""
    where = _indicator_places(model)
    size = sum(len(own) for own in where.values())
    seen, known = np.eye(size), np.zeros((size, size), dtype=bool)
    for states, covariances in shown:
        pairs = (states[:, :, None], states[:, None, :])
        seen[pairs], known[pairs] = covariances, True
    whole, placed = np.zeros((size, size)), np.zeros(0, dtype=int)
    for v in reversed(model.order):
        own = where[v]
        whole[np.ix_(own, own)] = seen[np.ix_(own, own)]
        near = placed[known[np.ix_(own, placed)].any(axis=0)]
        if len(near):
            coefficients = _regression_coefficients(
                seen[np.ix_(own, own)], seen[np.ix_(own, near)], whole[np.ix_(near, near)]
            )
            across = coefficients @ whole[np.ix_(near, placed)]
            whole[np.ix_(own, placed)], whole[np.ix_(placed, own)] = across, across.T
        placed = np.concatenate([placed, own])
    return whole


def _regression_coefficients(own: np.ndarray, across: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return the coefficients that predict ``own`` indicators from those ``before``."""
    a, b = np.linalg.cholesky(own), np.linalg.cholesky(before)
    white = np.linalg.solve(b, np.linalg.solve(a, across).T).T
    left, correlations, right = np.linalg.svd(white, full_matrices=False)
    # What tables show and what is implied need not fit together: correlations stay below one.
    white = (left * np.minimum(correlations, MAX_CANONICAL_CORRELATION)) @ right
    return np.asarray(a @ np.linalg.solve(b.T, white.T).T)

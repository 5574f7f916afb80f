"""The Hessian of the log-partition function, nearly, in a form that is cheap to solve with.

∇²A is the covariance of the indicators of all cells. Split a function of a table into the additive
one nearest to it, a constant and one function per column (least squares under μ_C), and the rest,
and let only the additive parts of different tables covary:

    B = Σ_C (W - W E G⁻¹ Eᵀ W)  +  Qᵀ S Q,      Q = Σ_C J G⁻¹ Eᵀ W

with W = diag(μ_C), E the indicators of a table's columns and the constant, G = EᵀWE, J what drops
the constant, and S the covariance of the indicators of all columns (``columns.py``). What moves a
function of one column from one table to another changes no probability: B is zero there, as ∇²A is.
On trees of pair tables B is ∇²A. With a diagonal D, d = 1/(W + D) and Z = Eᵀ W D d E,

    (B + D)⁻¹ q = d (q + W E e),   e = Z⁻¹ (a - Jᵀh),   a = Eᵀ W d q,
    (S⁻¹ + Σ_C J (Z⁻¹ - G⁻¹) Jᵀ) h = Σ_C J Z⁻¹ a:

one matrix per table as large as its columns' states, and one as large as all columns' states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from noisewise.models.graphical_model.columns import completed, places
from noisewise.models.graphical_model.structure import Structure
from noisewise.numerics.secant import Solve

RARE = 1e-9
"""Cells of less than this share of the mean are taken to have it."""
LARGEST = 2**23
"""Numbers in any one array."""


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of one shape: their cells, where their columns' states are, E, W and G⁻¹."""

    cells: np.ndarray
    states: np.ndarray
    indicators: np.ndarray
    weights: np.ndarray
    inverse: np.ndarray


@dataclass(frozen=True, eq=False)
class Additive:
    """B, of all tables."""

    tables: tuple[Tables, ...]
    covariance: np.ndarray
    precision: np.ndarray

    def times(self, x: np.ndarray) -> np.ndarray:
        """B x."""
        main, parts = np.zeros((*x.shape[:-1], len(self.covariance))), []
        for t in self.tables:
            part = (t.weights * x[..., t.cells]) @ t.indicators
            part = _each(t.inverse, part)
            _collect(main, t, part)
            parts.append(part)
        main, product = main @ self.covariance, np.empty_like(x)
        for t, part in zip(self.tables, parts, strict=True):
            change = _each(t.inverse, _spread(main, t)) - part
            product[..., t.cells] = t.weights * (x[..., t.cells] + change @ t.indicators.T)
        return product

    def solver(self, diagonal: np.ndarray) -> Solve:
        """q → (B + diag)⁻¹ q."""
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
                found = (t.weights * shrink * q[..., t.cells]) @ t.indicators
                _collect(main, t, _each(inverse, found))
                sums.append(found)
            main, x = cho_solve(factor, main.T, check_finite=False).T, np.empty_like(q)
            for t, inverse, shrink, found in zip(self.tables, inverses, shrinks, sums, strict=True):
                change = _each(inverse, found - _spread(main, t)) @ t.indicators.T
                x[..., t.cells] = shrink * (q[..., t.cells] + t.weights * change)
            return x

        return solve


def fits(model: Structure) -> bool:
    """Whether B is small enough to work with."""
    spread = sum(math.prod(s := model.shape(c)) * sum(s) for c in model.cliques)
    return spread <= LARGEST and sum(model.states) ** 2 <= LARGEST


def additive(model: Structure, mu: np.ndarray) -> Additive:
    """B at marginals ``mu``."""
    mu = np.maximum(mu, RARE * mu.mean())
    columns = places(model)
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
        tables.append(Tables(cells, states, indicators, weights, np.linalg.inv(gram)))
        shown.append((states, gram[:, 1:, 1:] - single[:, :, None] * single[:, None, :]))
    covariance = completed(model, shown)
    return Additive(tuple(tables), covariance, np.linalg.inv(covariance))


def _indicators(shape: tuple[int, ...]) -> np.ndarray:
    """Cells by the constant and all but the last state of every column."""
    cells = np.indices(shape).reshape(len(shape), -1)
    states = [np.eye(k)[state][:, :-1] for k, state in zip(shape, cells, strict=True)]
    return np.hstack([np.ones((cells.shape[1], 1)), *states])


def _gram(indicators: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.asarray((indicators.T * weights[:, None, :]) @ indicators)


def _each(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Every table's (symmetric) matrix times its vector."""
    return np.asarray((vectors[..., None, :] @ matrices)[..., 0, :])


def _collect(main: np.ndarray, tables: Tables, parts: np.ndarray) -> None:
    """Add the tables' functions of columns up (J)."""
    for i, own in enumerate(tables.states):
        main[..., own] += parts[..., i, 1:]


def _spread(main: np.ndarray, tables: Tables) -> np.ndarray:
    """And back: the constant is zero (Jᵀ)."""
    parts = main[..., tables.states]
    return np.concatenate([np.zeros((*parts.shape[:-1], 1)), parts], axis=-1)

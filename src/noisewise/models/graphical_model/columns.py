"""How columns covary, from tables of some of them: the covariance of all their indicators.

What no table shows is what linear prediction through the tables implies. Columns enter in the
reverse of the order they are summed out; each is predicted from those already there that share a
table with it. On trees nothing is lost: the expectation of an indicator given a column is linear in
that column's indicators. The last state of a column follows from the others and has no indicator.
"""

from __future__ import annotations

import numpy as np

from noisewise.models.graphical_model.structure import Structure

CORRELATED = 0.999
"""Largest canonical correlation between a column and those before it."""

Shown = tuple[np.ndarray, np.ndarray]
"""Of several tables: which indicators they have, and those indicators' covariances."""


def places(model: Structure) -> dict[str, np.ndarray]:
    """Where each column's indicators stand."""
    stops = np.cumsum([k - 1 for k in model.states])
    return {
        v: np.arange(stop - k + 1, stop)
        for v, k, stop in zip(model.variables, model.states, stops, strict=True)
    }


def completed(model: Structure, shown: list[Shown]) -> np.ndarray:
    """The covariance of all indicators."""
    where = places(model)
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
            share = _shares(
                seen[np.ix_(own, own)], seen[np.ix_(own, near)], whole[np.ix_(near, near)]
            )
            across = share @ whole[np.ix_(near, placed)]
            whole[np.ix_(own, placed)], whole[np.ix_(placed, own)] = across, across.T
        placed = np.concatenate([placed, own])
    return whole


def _shares(own: np.ndarray, across: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Regression coefficients. Canonical correlations are kept below one: what tables show and what
    is implied need not fit together.
    """
    a, b = np.linalg.cholesky(own), np.linalg.cholesky(before)
    white = np.linalg.solve(b, np.linalg.solve(a, across).T).T
    left, correlations, right = np.linalg.svd(white, full_matrices=False)
    white = (left * np.minimum(correlations, CORRELATED)) @ right
    return np.asarray(a @ np.linalg.solve(b.T, white.T).T)

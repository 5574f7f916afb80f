"""Graphical models the obvious way: write down the probability of every record, and add up.

The oracle of the fast code; plain NumPy and SciPy, for models of a few thousand records at most.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import optimize
from scipy.integrate import quad

Clique = tuple[str, ...]


def joint(
    sizes: dict[str, int], cliques: tuple[Clique, ...], theta: np.ndarray
) -> tuple[float, np.ndarray]:
    """log Z and the table of all probabilities, one axis per variable."""
    names = list(sizes)
    weights = np.zeros(tuple(sizes.values()))
    for record in itertools.product(*(range(k) for k in sizes.values())):
        value, start = 0.0, 0
        for clique in cliques:
            cell = 0
            for v in clique:
                cell = cell * sizes[v] + record[names.index(v)]
            value += theta[start + cell]
            start += math.prod(sizes[v] for v in clique)
        weights[record] = value
    top = weights.max()
    total = top + math.log(np.exp(weights - top).sum())
    return total, np.exp(weights - total)


def marginal(sizes: dict[str, int], probabilities: np.ndarray, columns: Clique) -> np.ndarray:
    """Axes in the order asked for."""
    names = list(sizes)
    summed = probabilities.sum(axis=tuple(i for i, v in enumerate(names) if v not in columns))
    left = [v for v in names if v in columns]
    return np.transpose(summed, [left.index(v) for v in columns])


def clique_marginals(
    sizes: dict[str, int], cliques: tuple[Clique, ...], theta: np.ndarray
) -> np.ndarray:
    probabilities = joint(sizes, cliques, theta)[1]
    return np.concatenate([marginal(sizes, probabilities, c).ravel() for c in cliques])


def covariance(sizes: dict[str, int], cliques: tuple[Clique, ...], theta: np.ndarray) -> np.ndarray:
    """Of the indicators of all cells: the Hessian of log Z."""
    indicator = indicators(sizes, cliques)
    q = joint(sizes, cliques, theta)[1].ravel()
    mean = indicator @ q
    return (indicator * q) @ indicator.T - np.outer(mean, mean)


def estep_by_scipy(
    sizes: dict[str, int],
    cliques: tuple[Clique, ...],
    theta: np.ndarray,
    t: np.ndarray,
    scale: float,
) -> tuple[np.ndarray, float]:
    """The E-step's primal, max θᵀμ + H(μ) - ‖t - μ‖₁/b, over all distributions q of records.

    H(n) is the entropy of the model with those marginals, the largest among q that have them: so
    q's own entropy is maximised. |r| is split into two nonnegative parts (a linear constraint).
    """
    indicator = indicators(sizes, cliques)
    cells, records = indicator.shape

    def loss(x: np.ndarray) -> float:
        q, parts = x[:records], x[records:]
        return float((q * np.log(q)).sum() - theta @ (indicator @ q) + parts.sum() / scale)

    def slope(x: np.ndarray) -> np.ndarray:
        q = x[:records]
        return np.concatenate([np.log(q) + 1 - indicator.T @ theta, np.full(2 * cells, 1 / scale)])

    equal = np.zeros((cells + 1, records + 2 * cells))
    equal[:cells, :records] = indicator
    equal[:cells, records : records + cells] = np.eye(cells)
    equal[:cells, records + cells :] = -np.eye(cells)
    equal[cells, :records] = 1
    right = np.append(t, 1.0)
    q = np.full(records, 1 / records)
    r = t - indicator @ q
    start = np.concatenate([q, np.maximum(r, 0), np.maximum(-r, 0)])
    found = optimize.minimize(
        loss, start, jac=slope, method="SLSQP",
        bounds=[(1e-12, 1)] * records + [(0, None)] * (2 * cells),
        constraints={"type": "eq", "fun": lambda x: equal @ x - right, "jac": lambda _: equal},
        options={"maxiter": 500, "ftol": 1e-13},
    )  # fmt: skip
    return indicator @ found.x[:records], -float(found.fun)


def indicators(sizes: dict[str, int], cliques: tuple[Clique, ...]) -> np.ndarray:
    names = list(sizes)
    columns = []
    for record in itertools.product(*(range(k) for k in sizes.values())):
        column: list[float] = []
        for clique in cliques:
            table = np.zeros([sizes[v] for v in clique])
            table[tuple(record[names.index(v)] for v in clique)] = 1
            column += table.ravel().tolist()
        columns.append(column)
    return np.array(columns).T


def normal_laplace(x: float, variance: float, scale: float) -> float:
    """The convolution, integrated."""
    s = math.sqrt(variance)
    # Both densities written down: scipy's functions take fifty times as long.
    constant = 1 / (math.sqrt(2 * math.pi * variance) * 2 * scale)
    value, _ = quad(
        lambda u: math.exp(-(u**2) / (2 * variance) - abs(x - u) / scale) * constant,
        -12 * s, 12 * s, points=[x] if abs(x) < 12 * s else None, limit=400,
    )  # fmt: skip
    return math.log(value)


def person_weights(
    records: list[dict[str, object]], person: str, cliques: tuple[Clique, ...],
    levels: dict[str, tuple[object, ...]], steps: int,
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Every record with floor(steps / K), in Python's own integers; and how many people."""
    counted: dict[object, int] = {}
    for record in records:
        counted[record[person]] = counted.get(record[person], 0) + 1
    cells = {(c, cell): 0 for c in cliques for cell in itertools.product(*(levels[v] for v in c))}
    for record in records:
        for c in cliques:
            cells[c, tuple(record[v] for v in c)] += steps // counted[record[person]]
    return np.array(list(cells.values())), len(counted)

"""Laws of standardised covariates as nodes and weights, made from their public moments.

Only two moments of the covariates are released. Their shape matters as soon as the response is not
linear in them (``response_moments.py``), and bounds say something about it: the law of largest
entropy on [-1, 1] with a given mean and variance has density ∝ exp(λ₁ x + λ₂ x²). It is uniform for
a variance of ⅓, sits on the two ends for 1 - mean², resembles a skewed beta where the mean is near
a bound, and is nearly normal where the column is narrow.

Nodes of several columns, given mean and covariance S = L Lᵀ in column order, are of z = L⁻¹(x - x̄):

* columns that are 0 or 1 (at both bounds): their cells, with the law of largest entropy given all
  pairs, ∝ exp(Σ h_i x_i + Σ J_ij x_i x_j), which knows of indicators that exclude each other;
* other columns: independent standardised nodes, each by Gauss' rule for its law on the box.

Indicators come first in L, so that whitening keeps them at their two values; ``order`` says which
column stands where. Where the rule would need more than `LARGEST` nodes, they are points of a Sobol
sequence instead. Finally weights are multiplied by exp(quadratic), so that the nodes' mean is
exactly 0 and their covariance I.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.special import ndtri
from scipy.stats import qmc

GRID = np.linspace(-1, 1, 401)
"""Where densities on the box are tabulated (docs of the study: finer grids change nothing)."""
LARGEST = 512
"""Most nodes, twice as many where rules cannot be shortened (chosen: more cost time and change
posteriors by less than their own noise)."""
NODES_OF_COLUMNS = {
    0: (1,), 1: (32,), 2: (16, 16), 3: (6, 6, 6), 4: (4, 4, 4, 4), 5: (3, 3, 3, 3, 3),
}  # fmt: skip
"""Nodes of each column that is no indicator, by the number of such columns (chosen; five columns by
243 nodes are as exact as by 512 points: docs/evidence-generalized-linear.md)."""
MOST_INDICATORS = 9
"""Indicators whose cells are all enumerated; more are drawn (chosen)."""
LEAST_VARIANCE = 1e-8
"""Least variance of a column in the box (chosen)."""
LEAST_INDICATED = 1e-4
"""Least share of records at either end of an indicator (chosen: both ends stay)."""
LEAST_CELL = 1e-5
"""Share of records below which a cell of indicators is left out (chosen)."""


class CovariateNodes(NamedTuple):
    """Standardised nodes (node, column), columns in the order of L, and weights (node)."""

    z: np.ndarray
    weight: np.ndarray


def padded(nodes: CovariateNodes, size: int) -> CovariateNodes:
    """Return as many nodes as asked for; the new ones weigh nothing."""
    extra = size - len(nodes.weight)
    return CovariateNodes(np.pad(nodes.z, ((0, extra), (0, 0))), np.pad(nodes.weight, (0, extra)))


def box_density(mean: float, variance: float) -> np.ndarray:
    """Return the law of largest entropy on ``GRID`` with this mean and variance, as weights.

    Newton's method on the dual, which is convex. The moments are moved inside what a column in the
    box can have, and a column too narrow for the grid is the normal.
    """
    mean = float(np.clip(mean, -0.995, 0.995))
    spacing = GRID[1] - GRID[0]
    variance = float(np.clip(variance, LEAST_VARIANCE, 0.999 * (1 - mean**2)))
    if variance < (2 * spacing) ** 2:
        off = (GRID - mean) / np.sqrt(max(variance, (0.5 * spacing) ** 2))
        weights = np.exp(-0.5 * off**2)
        return np.asarray(weights / weights.sum())
    features = np.stack([GRID - mean, (GRID - mean) ** 2 - variance])
    natural = np.array([0.0, -0.5 / variance if variance < 0.2 else 0.0])
    return _tilted(np.ones_like(GRID), features, natural)[0]


def _tilted(
    base: np.ndarray, features: np.ndarray, start: np.ndarray, ridge: float = 1e-12
) -> tuple[np.ndarray, np.ndarray]:
    """Return base · exp(λ·features), normalised, under which all features have mean 0, and λ.

    Damped Newton steps on log Σ base exp(λ·features) + ½ ridge |λ|².
    """

    def value(lam: np.ndarray) -> tuple[float, np.ndarray]:
        exponent = lam @ features
        top = exponent.max()
        weights = base * np.exp(exponent - top)
        total = weights.sum()
        return float(np.log(total) + top + 0.5 * ridge * lam @ lam), weights / total

    lam = np.array(start)
    now, weights = value(lam)
    for _ in range(60):
        gradient = features @ weights + ridge * lam
        if np.abs(gradient).max() < 1e-12:
            break
        centred = features - (features @ weights)[:, None]
        hessian = (centred * weights) @ centred.T + (ridge + 1e-14) * np.eye(len(lam))
        step = np.linalg.lstsq(hessian, -gradient, rcond=1e-13)[0]
        size = 1.0
        while size > 1e-6:
            new, moved = value(lam + size * step)
            if np.isfinite(new) and new <= now + 1e-4 * size * float(gradient @ step) + 1e-15:
                break
            size /= 2
        else:
            break
        lam, now, weights = lam + size * step, new, moved
    return weights, lam


def gauss_rule(grid: np.ndarray, weights: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss' nodes and weights of a discrete law, standardised to mean 0 and variance 1.

    The eigenvalues of the Jacobi matrix that Lanczos' recursion gives (G. H. Golub, J. H. Welsch,
    "Calculation of Gauss quadrature rules", Mathematics of Computation 23, 1969).
    """
    kept = weights > 0
    grid, weights = grid[kept], weights[kept]
    mean = weights @ grid
    x = (grid - mean) / np.sqrt(weights @ (grid - mean) ** 2)
    basis = [np.sqrt(weights)]
    alpha: list[float] = []
    beta: list[float] = []
    for k in range(min(count, len(x))):
        u = x * basis[k]
        alpha.append(float(u @ basis[k]))
        u = u - alpha[k] * basis[k] - (beta[k - 1] * basis[k - 1] if k else 0.0)
        for q in basis:  # Orthogonal to all before, which rounding would spoil.
            u = u - (u @ q) * q
        length = float(np.linalg.norm(u))
        if length < 1e-9:
            break
        beta.append(length)
        basis.append(u / length)
    nodes, vectors = linalg.eigh_tridiagonal(alpha, beta[: len(alpha) - 1])
    return nodes, vectors[0] ** 2


def order_of(indicators: np.ndarray) -> np.ndarray:
    """Return the columns, indicators first."""
    return np.argsort(~np.asarray(indicators, bool), kind="stable")


def normal_nodes(columns: int) -> CovariateNodes:
    """Return nodes of independent standard normal columns."""
    if columns in NODES_OF_COLUMNS:
        rules = []
        for count in NODES_OF_COLUMNS[columns]:
            x, w = np.polynomial.hermite_e.hermegauss(count)
            rules.append((x, w / w.sum()))
        return product_rule(rules)
    z = ndtri(_points(columns))
    return standardised(z, np.full(len(z), 1 / len(z)))


def box_nodes(mean: np.ndarray, covariance: np.ndarray, indicators: np.ndarray) -> CovariateNodes:
    """Return nodes of the law made from bounds and moments, columns in the order of ``order_of``.

    Args:
        mean: of the columns in the box, in their own order.
        covariance: likewise.
        indicators: which columns are 0 or 1.
    """
    order = order_of(indicators)
    mean, covariance = mean[order], covariance[np.ix_(order, order)]
    binary = int(np.sum(indicators))
    others = len(mean) - binary
    if binary > MOST_INDICATORS or others > max(NODES_OF_COLUMNS):
        return _drawn(mean, covariance, binary)
    cells, probability = _cells(mean[:binary], covariance[:binary, :binary])
    counts = NODES_OF_COLUMNS[others]
    while len(cells) * np.prod(counts) > LARGEST and max(counts) > 3:
        counts = tuple(max(3, c - 1) for c in counts)
    if len(cells) * np.prod(counts) > 2 * LARGEST:
        return _drawn(mean, covariance, binary)
    rules = [
        gauss_rule(GRID, box_density(mean[j], covariance[j, j]), counts[j - binary])
        for j in range(binary, len(mean))
    ]
    numeric = product_rule(rules) if rules else CovariateNodes(np.zeros((1, 0)), np.ones(1))
    z = np.column_stack([
        np.repeat(cells, len(numeric.weight), axis=0), np.tile(numeric.z, (len(cells), 1))
    ])  # fmt: skip
    return standardised(z, np.repeat(probability, len(numeric.weight)) *
                         np.tile(numeric.weight, len(cells)))  # fmt: skip


def product_rule(rules: list[tuple[np.ndarray, np.ndarray]]) -> CovariateNodes:
    """Return all combinations of one-dimensional nodes; those that weigh nothing are left out."""
    z = np.stack(np.meshgrid(*(r[0] for r in rules), indexing="ij"), -1).reshape(-1, len(rules))
    weight = np.ones(1)
    for _, w in rules:
        weight = np.multiply.outer(weight, w).ravel()
    kept = weight > 1e-14 * weight.max()
    return CovariateNodes(z[kept], weight[kept] / weight[kept].sum())


def _cells(mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the whitened cells of indicators, and their probabilities."""
    size = len(mean)
    if not size:
        return np.zeros((1, 0)), np.ones(1)
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * size, indexing="ij"), -1).reshape(-1, size)
    share = np.clip((1 + mean) / 2, LEAST_INDICATED, 1 - LEAST_INDICATED)
    base = np.prod(np.where(corners > 0, share, 1 - share), axis=1)
    mean = 2 * share - 1
    rows, columns = np.triu_indices(size, 1)
    pairs = covariance[rows, columns] + mean[rows] * mean[columns]
    # Within what two such indicators can have together (Fréchet's bounds).
    low = np.abs(mean[rows] + mean[columns]) - 1
    high = 1 - np.abs(mean[rows] - mean[columns])
    pairs = np.clip(pairs, low + 1e-6, high - 1e-6)
    features = np.concatenate(
        [corners.T - mean[:, None], (corners[:, rows] * corners[:, columns] - pairs).T]
    )
    weights, _ = _tilted(base, features, np.zeros(len(features)), ridge=1e-6)
    kept = weights > LEAST_CELL
    corners, weights = corners[kept], weights[kept] / weights[kept].sum()
    return _whitened(corners, weights), weights


def _whitened(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return nodes with mean 0 and covariance I, by the factor of their covariance."""
    off = x - weights @ x
    covariance = (off.T * weights) @ off
    factor = np.linalg.cholesky(covariance + 1e-12 * np.eye(len(covariance)))
    return np.asarray(linalg.solve_triangular(factor, off.T, lower=True).T)


def _points(columns: int) -> np.ndarray:
    """Return points of a scrambled Sobol sequence, each with its mirror image."""
    half = qmc.Sobol(columns, seed=0).random(LARGEST // 2)
    half = np.clip(half, 1e-6, 1 - 1e-6)
    return np.concatenate([half, 1 - half])


def _drawn(mean: np.ndarray, covariance: np.ndarray, binary: int) -> CovariateNodes:
    """Return nodes of many columns: indicators by a Gaussian copula, others independent.

    The copula's correlations are those of the columns themselves.
    """
    white = ndtri(_points(len(mean)))
    weight = np.full(len(white), 1 / len(white))
    z = np.empty_like(white)
    if binary:
        deviation = np.sqrt(np.diagonal(covariance)[:binary])
        correlation = covariance[:binary, :binary] / np.outer(deviation, deviation)
        factor = np.linalg.cholesky(0.99 * correlation + 0.01 * np.eye(binary))
        normal = white[:, :binary] @ factor.T
        limit = ndtri(np.clip((1 + mean[:binary]) / 2, 1e-3, 1 - 1e-3))
        z[:, :binary] = np.where(normal < limit, 1.0, -1.0)
        z[:, :binary] = _whitened(z[:, :binary], weight)
    for j in range(binary, len(mean)):
        law = box_density(mean[j], covariance[j, j])
        place = np.argsort(np.argsort(white[:, j]))
        quantiles = np.interp((place + 0.5) / len(white), np.cumsum(law) - 0.5 * law, GRID)
        z[:, j] = (quantiles - quantiles.mean()) / max(quantiles.std(), 1e-9)
    return standardised(z, weight)


def standardised(z: np.ndarray, weight: np.ndarray) -> CovariateNodes:
    """Return nodes whose mean is 0 and covariance I.

    By weights ∝ exp(quadratic), which leave the nodes where they are; by whitening where these do
    not suffice, or are many.
    """
    size = z.shape[1]
    rows, columns = np.triu_indices(size)
    if len(rows) <= LARGEST // 8:
        features = np.concatenate(
            [z.T, (z[:, rows] * z[:, columns]).T - (rows == columns)[:, None]]
        )
        tilted, _ = _tilted(weight, features, np.zeros(len(features)), ridge=1e-10)
        if np.abs(features @ tilted).max() < 0.02:
            weight = tilted
    return CovariateNodes(_whitened(z, weight), weight)

"""Conjugate regression and above-threshold straight from the textbook: loops, no batching."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Natural:
    """Normal-inverse-gamma: precision Λ, Λμ, shape a, and rate + ½ μᵀΛμ. Products add these up."""

    precision: np.ndarray
    pull: np.ndarray
    shape: float
    energy: float

    def plus(self, other: Natural) -> Natural:
        return Natural(
            self.precision + other.precision,
            self.pull + other.pull,
            self.shape + other.shape,
            self.energy + other.energy,
        )

    def times(self, weight: float) -> Natural:
        return Natural(
            weight * self.precision, weight * self.pull, weight * self.shape, weight * self.energy
        )

    def marginal(self, coefficient: int) -> stats.rv_continuous:
        """Student's t of one coefficient."""
        mean = np.linalg.solve(self.precision, self.pull)
        rate = self.energy - mean @ self.precision @ mean / 2
        variance = rate / self.shape * np.linalg.inv(self.precision)[coefficient, coefficient]
        return stats.t(2 * self.shape, mean[coefficient], np.sqrt(variance))


def likelihood(x: np.ndarray, y: np.ndarray) -> Natural:
    """x is (rows, covariates); the intercept comes last."""
    design = np.column_stack([x, np.ones(len(y))])
    return Natural(design.T @ design, design.T @ y, len(y) / 2, y @ y / 2)


def normal_inverse_gamma(mean: object, precision: object, shape: float, rate: float) -> Natural:
    m, p = np.array(mean, float), np.array(precision, float)
    return Natural(p, p @ m, shape, rate + m @ p @ m / 2)


def zellner(x: np.ndarray, g: float) -> Natural:
    """g-prior of the slopes; flat in the intercept, which `flat_intercept` accounts for."""
    centred = x - x.mean(axis=0)
    d = x.shape[1]
    precision = np.zeros((d + 1, d + 1))
    precision[:d, :d] = centred.T @ centred / g
    return Natural(precision, np.zeros(d + 1), 0.0, 0.0)


def flat_intercept(coefficients: int) -> Natural:
    """p(α, σ²) ∝ 1/σ²: one normal factor σ⁻¹ less than a normal prior of α would have."""
    none = np.zeros(coefficients)
    return Natural(np.diag(none), none, -0.5, 0.0)


def discrete_laplace(scale: float, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Support -reach … reach and its probabilities."""
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(k) / scale)
    return k, weights / weights.sum()


def stopping_distribution(
    queries: list[int], level: int, threshold_scale: float, query_scale: float
) -> np.ndarray:
    """P(above-threshold stops at 0, 1, …, never), by summing over the threshold's noise."""
    reach = int(60 * max(threshold_scale, query_scale)) + max(map(abs, [*queries, level]))
    rho, weight = discrete_laplace(threshold_scale, reach)
    nu, mass = discrete_laplace(query_scale, 2 * reach + 2)
    upper = np.cumsum(mass[::-1])[::-1]
    still = np.ones(len(rho))
    found = []
    for query in queries:
        needed = np.clip(level + rho - query - nu[0], 0, len(nu) - 1)
        passes = upper[needed]
        found.append(float(weight @ (still * passes)))
        still = still * (1 - passes)
    return np.array([*found, float(weight @ still)])


def pava(values: list[float]) -> list[float]:
    """Isotonic regression by its min-max formula."""
    n = len(values)
    return [
        max(
            min(float(np.mean(values[i : k + 1])) for k in range(j, n))
            for i in range(j + 1)
        )
        for j in range(n)
    ]  # fmt: skip

"""Posteriors of noisewise for the trials of many tables at once, as groups of one problem.

Laplace noise has ε alone, Gaussian noise (ε, δ) by its privacy profile; neighbours replace one
record. Method ``exact`` with all defaults. Noise is NumPy's, of the scale of a release (E1).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from experiments.field.answers import LEVEL
from noisewise.models.linear_regression import exact
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    Units,
    default_covariates,
    default_response,
)
from noisewise.privacy.mechanisms import gaussian_budget

CHAINS, DRAWS = 4, 500


@dataclass(frozen=True, eq=False)
class Posteriors:
    """By trial (first axis) and coefficient: what posteriors say, and whether they converged."""

    mean: np.ndarray
    median: np.ndarray
    low: np.ndarray
    high: np.ndarray
    converged: np.ndarray
    seconds: float


def noise_scale(mechanism: str, q: int, epsilon: float, delta: float) -> float:
    """Return the scale of the noise of the sums of q columns in the box, replace-one (E1)."""
    if mechanism == "laplace":
        return q * (q + 2) ** 2 / (2 * (q + 1)) / epsilon
    moved = 2 * math.sqrt((q + 1) ** 2 // 4)
    return moved / math.sqrt(2 * gaussian_budget(epsilon, delta))


def packed_sums(records: np.ndarray) -> np.ndarray:
    """Return the sums of records (record, column) in the order of a release."""
    rows, columns = np.triu_indices(records.shape[1])
    return np.concatenate([(records.T @ records)[rows, columns], records.sum(axis=0)])


def infer(z: np.ndarray, n: np.ndarray, mechanism: str, scale: float, seed: int) -> Posteriors:
    """Return the posteriors of noisy sums (trial, sum) of n records each, with CPU seconds."""
    q = int(math.isqrt(9 + 8 * z.shape[1]) - 3) // 2
    units = Units(np.zeros(q), np.ones(q))
    problem = RegressionProblem(
        tuple(f"x{i + 1}" for i in range(q - 1)), "y", z, n.astype(float), False, scale,
        mechanism, default_response(units), default_covariates(units), units,
        tuple(range(len(z))), scale_free=True,
    )  # fmt: skip
    start = time.process_time()
    post = exact.run(problem, seed, CHAINS, DRAWS)
    seconds = time.process_time() - start
    names = [*problem.x, "intercept"]
    draws = np.stack([np.asarray(post.draws[name]).reshape(len(z), -1) for name in names], axis=1)
    tail = (1 - LEVEL) / 2
    low, median, high = np.quantile(draws, [tail, 0.5, 1 - tail], axis=-1)
    unconverged = set(post.unconverged)
    converged = np.array([k not in unconverged for k in range(len(z))])
    return Posteriors(draws.mean(axis=-1), median, low, high, converged, seconds)

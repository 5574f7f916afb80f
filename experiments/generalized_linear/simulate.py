"""Simulated releases, many at once: sums of records with Laplace noise of a release's scale.

The noise is NumPy's: these are simulations. Every trial is a group of one problem, so that all are
sampled side by side.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from noisewise.models.generalized_linear.problem import GeneralizedProblem
from noisewise.models.generalized_linear.response_laws import RESPONSE_LAWS
from noisewise.models.linear_regression.problem import Units
from noisewise.numerics.gram_packing import pack
from noisewise.priors import Predictor

COUNT_BOUND = 100.0
"""Upper bound of simulated counts; none is moved to it."""


def sensitivity(columns: int) -> float:
    """Return Δ₁ of a Gram matrix of so many columns, n public (docs/proofs/sensitivity.md)."""
    return columns * (columns + 2) ** 2 / (2 * (columns + 1))


def empty_problem(link: str, d: int, n: np.ndarray, epsilon: float, law: str) -> GeneralizedProblem:
    """Return a problem whose sums are still zero; columns are in the box already."""
    groups, upper = len(n), COUNT_BOUND if link == "poisson" else 1.0
    units = Units(np.append(np.zeros(d), upper / 2), np.append(np.ones(d), upper / 2))
    return GeneralizedProblem(
        link, tuple(f"x{j}" for j in range(d)), "y", np.arange(d), np.zeros(d, bool),
        np.zeros((groups, d * (d + 3) // 2)), np.zeros((groups, d + 1)), n.astype(float), False,
        sensitivity(d + 1) / epsilon, "laplace", units, tuple(range(groups)), Predictor(), law,
    )  # fmt: skip


def sums_of(x: np.ndarray, y: np.ndarray, upper: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of covariates in the box and of the response."""
    in_box = 2 * y / upper - 1
    response = np.concatenate([[in_box.sum()], in_box @ x])
    return pack(x.T @ x, x.sum(axis=0)), response


def normal_records(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Return normal covariates, most of them within the box, of random means and covariances."""
    factor = rng.standard_normal((d, d)) + 1.5 * np.eye(d)
    covariance = factor @ factor.T
    size = rng.uniform(0.15, 0.3, d) / np.sqrt(np.diagonal(covariance))
    mean = rng.uniform(-0.3, 0.3, d)
    return np.asarray(mean + rng.standard_normal((n, d)) @ (factor * size[:, None]).T)


def _two_clusters(rng: np.random.Generator, n: int) -> np.ndarray:
    side = np.where(rng.random(n) < 0.3, 0.7, -0.5)
    return np.clip(side + 0.08 * rng.standard_normal(n), -1, 1)[:, None]


def _factor(rng: np.random.Generator, n: int) -> np.ndarray:
    level = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    return 2.0 * (level[:, None] == np.arange(1, 4)) - 1


SHAPES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda rng, n: rng.uniform(-1, 1, (n, 1)),
    "binary .3": lambda rng, n: 2.0 * (rng.random((n, 1)) < 0.3) - 1,
    "beta(1, 6)": lambda rng, n: 2 * rng.beta(1, 6, (n, 1)) - 1,
    "four levels": _factor,
    "two clusters": _two_clusters,
}
"""Covariates of other shapes, in the box."""


def respond(rng: np.random.Generator, link: str, predictor: np.ndarray) -> np.ndarray:
    """Return responses at predictors."""
    law = RESPONSE_LAWS[link]
    return law.records(rng, law.mean(predictor))

"""Releases whose bounds are wider than their data, under the default prior, which knows the bounds.

    python -m tests.inference.loose TRIALS SEED

Columns start at their lower bound and fill 1/x and 1/y of the bounds; ``strength`` is the share of
the response's variance that the covariate explains. Noise is NumPy's: a simulation.
"""

from __future__ import annotations

import sys

import numpy as np

from experiments.regression_paper.simulate import binary, skewed, uniform
from noisewise.models.linear_regression import exact
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    Units,
    default_covariates,
    default_response,
)
from tests.inference.calibration import line
from tests.inference.regressions import sensitivity
from tests.reference import regression_reference as reference

SHAPES = {"uniform": uniform, "binary 0.2": binary(0.2), "beta(1,6)": skewed}
SPREAD = 0.3
"""Of the response, where its bounds fit: it stays within them."""

CELLS = [
    # shape, x, y, strength, n, epsilon
    ("uniform", 1, 1, 0.5, 2000, 1.0),
    ("binary 0.2", 1, 1, 0.5, 2000, 1.0),
    ("beta(1,6)", 1, 1, 0.5, 2000, 1.0),
    ("uniform", 1, 1, 0.05, 200, 1.0),
    ("uniform", 1, 1, 0.5, 200, 0.3),
    ("uniform", 2, 2, 0.5, 2000, 1.0),
    ("uniform", 3, 1, 0.5, 2000, 1.0),
    ("uniform", 3, 1, 0.5, 2000, 0.3),
    ("uniform", 1, 3, 0.5, 2000, 1.0),
    ("uniform", 3, 3, 0.9, 2000, 1.0),
    ("uniform", 10, 1, 0.5, 20_000, 1.0),
]


def simulate(
    trials: int, seed: int, shape: str, x: float, y: float, strength: float, n: int, epsilon: float
) -> tuple[RegressionProblem, np.ndarray]:
    """All trials as groups of one problem, and the truth (trial, slope … σ²), in the box."""
    rng = np.random.default_rng(seed)
    inside = SHAPES[shape](rng, trials, n, 1)[..., 0]
    column = (inside + 1) / x - 1
    known = SHAPES[shape](np.random.default_rng(0), 1, 1_000_000, 1)
    slope = rng.choice([-1, 1], trials) * SPREAD * np.sqrt(strength) / known.std() * x / y
    deviation = SPREAD * np.sqrt(1 - strength) / y
    middle = 1 / y - 1
    intercept = middle - slope * ((known.mean() + 1) / x - 1)
    response = intercept[:, None] + slope[:, None] * column
    response = np.clip(response + deviation * rng.standard_normal((trials, n)), -1, 1)
    tables = np.stack([column, response], axis=-1)
    sums = np.array([reference.statistic(table) for table in tables])
    scale = sensitivity(2) / epsilon
    z = sums + rng.laplace(0, scale, sums.shape)
    units = Units(np.zeros(2), np.ones(2))
    problem = RegressionProblem(
        ("x",), "y", z, np.full(trials, float(n)), False, scale, "laplace",
        default_response(units), default_covariates(units), units, tuple(range(trials)),
    )  # fmt: skip
    return problem, np.column_stack([slope, intercept, np.full(trials, deviation**2)])


def main(trials: str = "300", seed: str = "5") -> None:
    for cell in CELLS:
        problem, truth = simulate(int(trials), int(seed), *cell)
        shape, x, y, strength, n, epsilon = cell
        name = f"{shape}, bounds {x} x and {y} x, R2 {strength:g}, n={n} eps={epsilon:g}"
        print(line(name, exact.run(problem, int(seed), 4, 500), truth), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

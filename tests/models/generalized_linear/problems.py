"""Generalized linear models to infer from: problems in the box, and releases made by hand.

Noise comes from NumPy: these are simulations, not releases of anyone's data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from noisewise.artifact import Release
from noisewise.models.generalized_linear.problem import GeneralizedProblem
from noisewise.models.linear_regression.problem import Units
from noisewise.priors import Predictor
from tests.inference import regressions
from tests.reference import generalized_reference as reference

CHAINS, DRAWS = 2, 300
"""The shape that tests share: compiling takes longer than sampling."""

PRIOR = Predictor(level=0.3, level_sd=1.7, slopes_sd=1.2)


def problem(
    d: int, *, link: str = "logistic", mechanism: str = "laplace", noisy_n: bool = False,
    n: int = 90, scale: float = 4.0, law: str = "normal", seed: int = 1,
) -> GeneralizedProblem:  # fmt: skip
    """Sums of simulated records in the box, no indicators."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0.1, 0.3, (n, d)) @ (np.eye(d) + 0.3 * np.tri(d, d, -1))
    y = reference.draw_responses(rng, link, 0.2 + x.sum(axis=1))
    largest = 12.0 if link == "poisson" else 1.0
    box = 2 * y / largest - 1
    rows, columns = np.triu_indices(d)
    sums = np.concatenate([(x.T @ x)[rows, columns], x.sum(axis=0), [n] * noisy_n])
    response = np.append(box.sum(), box @ x)
    return GeneralizedProblem(
        link, tuple(f"x{i}" for i in range(d)), "y", np.arange(d), np.zeros(d, bool),
        (sums + rng.laplace(0, scale, len(sums)))[None],
        (response + rng.laplace(0, scale, d + 1))[None], np.array([float(n)]), noisy_n, scale,
        mechanism, Units(np.append(np.zeros(d), largest / 2), np.append(np.ones(d), largest / 2)),
        None, PRIOR, law,
    )  # fmt: skip


def of_records(
    x: np.ndarray, y: np.ndarray, scale: float, *, law: str = "normal", seed: int = 0
) -> GeneralizedProblem:
    """A logistic regression of records of one covariate in the box, y in {0, 1}."""
    rng, n = np.random.default_rng(seed), len(x)
    box = 2 * y - 1
    sums = np.array([x @ x, x.sum()]) + rng.laplace(0, scale, 2)
    response = np.array([box.sum(), box @ x]) + rng.laplace(0, scale, 2)
    return GeneralizedProblem(
        "logistic", ("x0",), "y", np.arange(1), np.zeros(1, bool), sums[None], response[None],
        np.array([float(n)]), False, scale, "laplace",
        Units(np.array([0.0, 0.5]), np.array([1.0, 0.5])), None, PRIOR, law,
    )  # fmt: skip


def records(
    n: int = 2000, *, slope: float = 0.8, level: float = -0.3, link: str = "logistic",
    seed: int = 0,
) -> np.ndarray:  # fmt: skip
    """Records (x, y): x about 50, of deviation 15, within 0 and 100."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(50, 15, n), 0, 100)
    y = reference.draw_responses(rng, link, level + slope * (x - 50) / 15)
    return np.column_stack([x, np.minimum(y, 30)])


def release(tables: list[np.ndarray] | np.ndarray, largest: float = 1.0, **words: Any) -> Release:
    """A linear regression's release of tables (x, y), noise of scale 5 unless said."""
    limits = {"x": (0.0, 100.0), "y": (0.0, largest)}
    if isinstance(tables, np.ndarray):
        return regressions.release([tables], limits, **{"scale": 5.0, "grouped": False, **words})
    return regressions.release(tables, limits, **{"scale": 5.0, **words})

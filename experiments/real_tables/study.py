"""Samples of n records of a table, one release each, and how often intervals hold the table's own.

The truth is the least-squares fit of the whole table as the owner clamps it. All samples of a cell
are groups of one problem. Noise is NumPy's, of the scale that an owner's release would have (errata
E1): a simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.real_tables.tables import Question
from noisewise.models.linear_regression import exact
from noisewise.models.linear_regression.prior_check import VISIBLE_DEVIATIONS, noisy_variances
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    Units,
    default_covariates,
    default_response,
)

FACTORS = (1, 3, 10)
"""How many times too high every upper bound was guessed."""
CELLS = ((500, 1.0), (5000, 1.0), (5000, 0.2))
"""n and ε."""


@dataclass(frozen=True)
class Row:
    """One regression in one cell; lists are slopes, intercept, σ²."""

    name: str
    f: int
    n: int
    epsilon: float
    prior: str
    coverage: list[float]
    width: list[float]
    least_squares_width: list[float]
    visible: list[bool]
    converged: float


def fit(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and σ² of least squares, and the widths of classical 95 % intervals."""
    n, q = records.shape
    design = np.column_stack([records[:, :-1], np.ones(n)])
    theta, *_ = np.linalg.lstsq(design, records[:, -1], rcond=None)
    sigma2 = ((records[:, -1] - design @ theta) ** 2).sum() / (n - q)
    errors = np.sqrt(sigma2 * np.diagonal(np.linalg.inv(design.T @ design)))
    return np.append(theta, sigma2), 3.92 * np.append(errors, sigma2 * np.sqrt(2 / (n - q)))


def noisy(
    rng: np.random.Generator, question: Question, f: int, n: int, epsilon: float, samples: int
) -> tuple[RegressionProblem, np.ndarray, np.ndarray]:
    """Return the problem of all samples, the truth, and mean widths without privacy."""
    box = question.in_box(f)
    q = box.shape[1]
    rows, columns = np.triu_indices(q)
    sums, widths = [], []
    for _ in range(samples):
        some = box[rng.integers(0, len(box), n)]
        sums.append(np.concatenate([(some.T @ some)[rows, columns], some.sum(axis=0)]))
        widths.append(fit(some)[1])
    scale = q * (q + 2) ** 2 / (2 * (q + 1)) / epsilon
    z = np.array(sums) + rng.laplace(0, scale, (samples, len(sums[0])))
    units = Units(np.zeros(q), np.ones(q))
    problem = RegressionProblem(
        tuple(f"x{i + 1}" for i in range(q - 1)), "y", z, np.full(samples, float(n)), False, scale,
        "laplace", default_response(units), default_covariates(units), units,
        tuple(range(samples)), scale_free=True,
    )  # fmt: skip
    return problem, fit(box)[0], np.mean(widths, axis=0)


def together(problems: Sequence[RegressionProblem]) -> RegressionProblem:
    """Return one problem of the groups of many that are alike."""
    z, n = (np.concatenate([getattr(p, name) for p in problems]) for name in ("z", "n"))
    return replace(problems[0], z=z, n=n, keys=tuple(range(len(n))))


PRIORS = ("scale-free", "conjugate")
"""The default of ``exact``, and the one that was the default before."""


def cell(
    questions: Sequence[Question],
    n: int,
    epsilon: float,
    samples: int,
    seed: int,
    priors: Sequence[str] = PRIORS,
) -> list[Row]:
    """Return all regressions with the same number of covariates in one cell, by these defaults."""
    q = questions[0].records.shape[1]
    rng = np.random.default_rng([seed, q, n, int(10 * epsilon)])
    asked = [(question, f) for question in questions for f in FACTORS]
    made = [noisy(rng, question, f, n, epsilon, samples) for question, f in asked]
    joint = together([m[0] for m in made])
    table = []
    for prior in priors:
        post = exact.run(replace(joint, scale_free=prior == "scale-free"), seed, 4, 500)
        unconverged = set(post.unconverged)
        bad = np.array([k in unconverged for k in range(len(joint.n))])
        draws = np.stack([v.reshape(len(v), -1) for v in post.draws.values()])
        low, high = np.quantile(draws, [0.025, 0.975], axis=-1)
        for i, ((question, f), (problem, truth, widths)) in enumerate(
            zip(asked, made, strict=True)
        ):
            at = slice(i * samples, (i + 1) * samples)
            held = (low[:, at] <= truth[:, None]) & (truth[:, None] <= high[:, at])
            variance, error = noisy_variances(problem)
            visible = (variance > VISIBLE_DEVIATIONS * error).mean(axis=0) > 0.5
            table.append(
                Row(
                    question.name,
                    f,
                    n,
                    epsilon,
                    prior,
                    held.mean(axis=1).tolist(),
                    np.median((high - low)[:, at], axis=1).tolist(),
                    widths.tolist(),
                    visible.tolist(),
                    float(1 - bad[at].mean()),
                )
            )
    return table

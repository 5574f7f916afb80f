"""The partition thesis' own experiments, through the library's own functions, on arrays.

Data are simulated with a seed. Assignment and noise are the library's, from the operating system:
they cannot be seeded, and must not be.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from noisewise.artifact import ProbabilitySums, QuantileSum
from noisewise.artifact.partition_answer import Answer
from noisewise.artifact.sensitivity import sensitivity
from noisewise.models.partition.conjugate_regression import (
    CoefficientPosteriors,
    RegressionPrior,
    Zellner,
    fit,
)
from noisewise.models.partition.partition_moments import (
    MomentsAccumulator,
    PartitionMoments,
    assign,
)
from noisewise.privacy.mechanisms import calibrate

COLUMNS = ("x", "y")


def table(rng: np.random.Generator, rows: int, noise_sd: float) -> list[np.ndarray]:
    """y = 1 + 2x + N(0, sd²); x standard normal (the thesis does not say)."""
    x = rng.standard_normal(rows)
    return [x, 1 + 2 * x + noise_sd * rng.standard_normal(rows)]


def split(columns: list[np.ndarray], partitions: int) -> PartitionMoments:
    accumulator = MomentsAccumulator(len(columns), partitions)
    accumulator.add(columns, assign(len(columns[0]), partitions))
    return accumulator.result()


def whole(columns: list[np.ndarray], prior: RegressionPrior | None = None) -> CoefficientPosteriors:
    """The posterior of the slope given the full data set."""
    rows = len(columns[0])
    return fit(split(columns, 1), 0, prior or Zellner(float(rows)), 1.0, 1.0)


def statistic(
    at: tuple[float, ...], partitions: int, method: str, power: float = 1.0
) -> ProbabilitySums:
    floor = 0.001 if method == "fisher" else None
    return ProbabilitySums(COLUMNS, "x", at, partitions, method, floor, power)  # type: ignore[arg-type]


def probability_answers(codes: np.ndarray, spec: ProbabilitySums, epsilon: float) -> list[Answer]:
    """Each cutoff as a release of its own, with the whole budget, as in the thesis."""
    one = dataclasses.replace(spec, at=spec.at[:1])
    noise = calibrate("laplace", sensitivity(one, "replace-one"), epsilon)
    exact = codes.sum(axis=0)
    noisy = np.concatenate([noise.draw(exact[i : i + 1]) for i in range(len(exact))])
    return [Answer(spec, noise.noise, sums, True) for sums in (noisy, exact)]


def quantile_blank(partitions: int, p: float, search: str, cost: float) -> QuantileSum:
    return QuantileSum(COLUMNS, "x", p, partitions, 0.0, 1.0, search, cost)  # type: ignore[arg-type]

"""Made-up tracts of 20 to 450 people: incomes of parents (x) and children (y), as ranks in [0, 1].

Every maker returns coefficients (tract, 2) in the box, where slopes are those of the ranks and the
intercept is twice the rank of children whose parents are in the middle, less 1; and sums without
noise. Noise is that of a release with public sizes, Laplace of scale 16/(3ε) in the box.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.linear_regression import pooled_population, pooled_start
from noisewise.models.linear_regression.pooled_density import PopulationLaw
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    Units,
    default_covariates,
    default_response,
)

MEAN = np.array([0.35, -0.12])
"""Mean of slope and level in the box."""
SD = np.array([0.08, 0.10])
"""Their deviations."""
CORRELATION = -0.3
"""Their correlation."""
LEVEL, LEVEL_SD = np.log(0.06), 0.25
"""Mean and deviation of log σ²."""
X_MEAN, X_SD = -0.2, 0.22
"""Mean and deviation of the tracts' mean of x."""
X_VARIANCE, X_DF = 0.11, 20.0
"""Σ₀ and ν."""
NOISE, PLANE_NOISE = 16 / 3, 75 / 8
"""Scales of the noise at ε = 1, for one covariate and for two."""


def _chained(array: object) -> jax.Array:
    return jnp.asarray(np.asarray(array, float)[..., None, None])


def line_law() -> PopulationLaw:
    """Return the population of ``of_the_model``; the units of the hyperprior have no truth.

    Tracts of all sizes differ alike.
    """
    shear = np.array([[1.0, 0.0], [X_MEAN, 1.0]])
    return PopulationLaw(
        _chained([shear @ MEAN, [0.0, 0.0]]),
        _chained(shear @ np.linalg.cholesky(covariance())), None,
        _chained(LEVEL), _chained(LEVEL_SD), _chained([X_MEAN]), _chained([[X_SD]]),
        _chained([[np.sqrt(X_VARIANCE)]]), _chained(X_DF), _chained(np.zeros(3)),
        _chained(0.0),
    )  # fmt: skip


def plane_law() -> PopulationLaw:
    """Return a population of tracts with two covariates, correlated within tracts."""
    sd = np.array([0.10, 0.08, 0.12])
    correlation = np.array([[1.0, -0.3, -0.2], [-0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]])
    factor = np.linalg.cholesky(correlation * np.outer(sd, sd))
    x_scale = np.linalg.cholesky(np.array([[0.11, 0.03], [0.03, 0.14]]))
    return PopulationLaw(
        _chained([[0.35, -0.20, -0.10], [0.0, 0.0, 0.0]]), _chained(factor), None,
        _chained(LEVEL), _chained(LEVEL_SD),
        _chained([-0.2, 0.1]), _chained(np.diag([0.20, 0.15])), _chained(x_scale), _chained(20.0),
        _chained(np.zeros(4)), _chained(0.0),
    )  # fmt: skip


OFF_CENTRE = (-0.6, -0.5)
"""Where columns lie in bounds that are too wide (``narrowed``)."""
Tracts = tuple[np.ndarray, np.ndarray]
"""Coefficients and sums."""


def sizes(rng: np.random.Generator, groups: int, times: int = 1) -> np.ndarray:
    """Draw the sizes of tracts, so many times as large as those of the case study."""
    return times * rng.integers(20, 451, groups)


def covariance() -> np.ndarray:
    """Return the covariance of coefficients."""
    off = CORRELATION * SD.prod()
    return np.array([[SD[0] ** 2, off], [off, SD[1] ** 2]])


def _sums(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([x @ x, x @ y, y @ y, x.sum(), y.sum()])


def of_the_model(rng: np.random.Generator, n: np.ndarray) -> Tracts:
    """Draw tracts from a population like the one that is inferred."""
    theta = rng.multivariate_normal(MEAN, covariance(), len(n))
    sums = []
    for (slope, level), size in zip(theta, n, strict=True):
        mu = rng.normal(X_MEAN, X_SD)
        x = rng.normal(mu, np.sqrt(X_VARIANCE * X_DF / rng.chisquare(X_DF)), size)
        sd = np.exp(0.5 * rng.normal(LEVEL, LEVEL_SD))
        sums.append(_sums(x, slope * x + level + rng.normal(0, sd, size)))
    return theta, np.array(sums)


def beta_tracts(rng: np.random.Generator, n: np.ndarray, theta: np.ndarray | None = None) -> Tracts:
    """Draw tracts with beta-distributed x, and y clamped to its bounds."""
    if theta is None:
        theta = rng.multivariate_normal(MEAN, covariance(), len(n))
    sums = []
    for (slope, level), size in zip(theta, n, strict=True):
        mean = np.clip(rng.normal(0.4, 0.11), 0.1, 0.9)
        x = 2 * rng.beta(6 * mean, 6 * (1 - mean), size) - 1
        sd = np.exp(0.5 * rng.normal(LEVEL, LEVEL_SD))
        sums.append(_sums(x, np.clip(slope * x + level + rng.normal(0, sd, size), -1, 1)))
    return theta, np.array(sums)


def two_populations(rng: np.random.Generator, n: np.ndarray) -> Tracts:
    """Draw tracts of two kinds, three deviations apart in slope."""
    theta = rng.multivariate_normal(MEAN, 0.25 * covariance(), len(n))
    theta[:, 0] += 1.5 * SD[0] * rng.choice([-1, 1], len(n))
    return beta_tracts(rng, n, theta)


def heavy_tails(rng: np.random.Generator, n: np.ndarray) -> Tracts:
    """Draw tracts whose coefficients have t₃ tails."""
    white = rng.multivariate_normal(np.zeros(2), covariance(), len(n))
    theta = MEAN + white / np.sqrt(rng.chisquare(3, len(n)) / 3)[:, None]
    return beta_tracts(rng, n, theta)


MAKERS: dict[str, Callable[[np.random.Generator, np.ndarray], Tracts]] = {
    "calibration": of_the_model,
    "useful": beta_tracts,
    "two": two_populations,
    "tails": heavy_tails,
    "speed": beta_tracts,
}
"""Makers by experiment."""


def narrowed(theta: np.ndarray, sums: np.ndarray, n: np.ndarray, times: float) -> Tracts:
    """Return tracts whose columns use a smaller part of their bounds, off the middle.

    Both columns are divided by ``times`` and lie about the places of ``OFF_CENTRE``, as they do
    where an owner guessed bounds that many times too wide.
    """
    if times == 1:
        return theta, sums
    (cx, cy), slope = OFF_CENTRE, theta[:, 0]
    xx, xy, yy, x, y = sums.T / times
    moved = np.stack(
        [
            xx / times + 2 * cx * x + n * cx**2,
            xy / times + cy * x + cx * y + n * cx * cy,
            yy / times + 2 * cy * y + n * cy**2,
            x + n * cx,
            y + n * cy,
        ],
        axis=1,
    )
    return np.column_stack([slope, theta[:, 1] / times + cy - slope * cx]), moved


def regression(z: np.ndarray, n: np.ndarray, epsilon: float) -> RegressionProblem:
    """Return the problem of these tracts, of one covariate or, where sums are nine, of two."""
    names = ("pir",) if z.shape[1] == 5 else ("pir", "age")
    units = Units(np.zeros(len(names) + 1), np.ones(len(names) + 1))
    scale = (NOISE if len(names) == 1 else PLANE_NOISE) / epsilon
    return RegressionProblem(
        names, "kir", z, n.astype(float), False, scale, "laplace",
        default_response(units), default_covariates(units), units, tuple(range(len(n))),
        scale_free=True,
    )  # fmt: skip


def pooled(problem: RegressionProblem) -> pooled_start.PooledProblem:
    """Return the problem of pooled tracts without features."""
    ones = np.ones((len(problem.n), 1))
    prior = pooled_population.default_prior(len(problem.x) + 1)
    return pooled_start.PooledProblem(problem, ones, None, prior)

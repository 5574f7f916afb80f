"""What every method returns, and least squares without privacy, with two kinds of intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.95
"""Of all intervals."""
NORMAL = float(stats.norm.ppf(0.5 + LEVEL / 2))


@dataclass(frozen=True, eq=False)
class Answer:
    """Slopes and intercept in the box, and their intervals where the method has any."""

    theta: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


def with_errors(theta: np.ndarray, errors: np.ndarray, quantile: float = NORMAL) -> Answer:
    """Return an answer with intervals of so many standard errors to either side."""
    return Answer(theta, theta - quantile * errors, theta + quantile * errors)


def design_of(records: np.ndarray) -> np.ndarray:
    """Return the covariates of records (record, column), response last, with ones last."""
    return np.column_stack([records[:, :-1], np.ones(len(records))])


def classical(records: np.ndarray) -> Answer:
    """Return least squares with intervals that assume one variance of all errors."""
    x, y = design_of(records), records[:, -1]
    n, k = x.shape
    inverse = np.linalg.inv(x.T @ x)
    theta = inverse @ (x.T @ y)
    variance = ((y - x @ theta) ** 2).sum() / (n - k)
    quantile = float(stats.t.ppf(0.5 + LEVEL / 2, n - k))
    return with_errors(theta, np.sqrt(variance * np.diagonal(inverse)), quantile)


def robust(records: np.ndarray) -> Answer:
    """Return least squares with intervals that allow every error a variance of its own.

    HC3 of J. G. MacKinnon and H. White (Journal of Econometrics 29, 1985): residuals over one minus
    their leverage.
    """
    x, y = design_of(records), records[:, -1]
    inverse = np.linalg.inv(x.T @ x)
    theta = inverse @ (x.T @ y)
    leverage = np.einsum("ij,jk,ik->i", x, inverse, x)
    scores = x * ((y - x @ theta) / (1 - leverage))[:, None]
    covariance = inverse @ (scores.T @ scores) @ inverse
    quantile = float(stats.t.ppf(0.5 + LEVEL / 2, len(x) - x.shape[1]))
    return with_errors(theta, np.sqrt(np.diagonal(covariance)), quantile)

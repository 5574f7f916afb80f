"""Three analyses of the very sums that noisewise infers from: plug-in, Wald, parametric bootstrap.

With x the covariates and a one, A = XᵀX and b = Xᵀy are released with independent Laplace noise in
every entry on or above the diagonal but that of the number of records, and so is Σ y².

*Plug-in* (noisy sufficient statistics; D. Vu, A. Slavković 2009): least squares of the noisy sums,
with classical intervals as if there were no noise.

*Wald, corrected* (ours, after G. Evans, G. King, Political Analysis 31, 2023, who correct noise in
the records): let r = e_b - E_A θ be what the noise adds to the normal equations, V = Cov(r), and
B = E[E_A A⁻¹ E_A]. To second order θ̃ is off by A⁻¹ B θ, which is taken off, and the residual sum
of squares is low by tr(A⁻¹ V), which is added; Cov(θ̃) = A⁻¹ (V + σ² A) A⁻¹.

*Bootstrap*, our re-implementation of the version for regressions of C. Ferrando, S. Wang,
D. Sheldon, "Parametric bootstrap for differentially private confidence intervals" (AISTATS 2022):
with θ̃, σ̃² and Q̃ = Ã/n in place of the truth, fits are drawn as
(Q̃ + E/n)⁻¹ (Q̃ θ̃ + Z/√n + e/n), Z ~ N(0, σ̃² Q̃), with fresh noise E and e; intervals are their
percentiles.

A noisy A need not be positive definite. Then, as in the bootstrap's published code, eigenvalues of
Q̃ that are not positive are set to ``FLOOR`` where a covariance is needed, and so is a σ̃² that is
not. The fits themselves solve the noisy equations as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from experiments.field.answers import LEVEL, Answer, with_errors

FLOOR = 0.1
"""In place of eigenvalues and variances that are not positive, as in the code of the bootstrap."""
RESAMPLES = 500
"""Bootstrap fits (chosen; the paper's code has 100)."""


@dataclass(frozen=True, eq=False)
class NoisySums:
    """A, b and Σ y² with Laplace noise of one scale in every entry, and n, which has none."""

    gram: np.ndarray
    response: np.ndarray
    square: float
    n: int
    scale: float

    @property
    def variance(self) -> float:
        """Return the variance of the noise."""
        return 2 * self.scale**2

    @property
    def positive(self) -> np.ndarray:
        """Return A with eigenvalues that are not positive set to n times the floor."""
        values, vectors = np.linalg.eigh(self.gram)
        return (vectors * np.where(values > 0, values, FLOOR * self.n)) @ vectors.T


def unpacked(packed: np.ndarray, q: int, n: int, scale: float) -> NoisySums:
    """Return the sums of q columns, the response last, from the order of a release."""
    gram = np.zeros((q, q))
    rows, columns = np.triu_indices(q)
    gram[rows, columns] = gram[columns, rows] = packed[: len(rows)]
    totals = packed[len(rows) :]
    design = np.empty((q, q))
    design[:-1, :-1] = gram[:-1, :-1]
    design[-1, :-1] = design[:-1, -1] = totals[:-1]
    design[-1, -1] = n
    response = np.append(gram[:-1, -1], totals[-1])
    return NoisySums(design, response, float(gram[-1, -1]), n, scale)


def _fit(sums: NoisySums) -> tuple[np.ndarray, float]:
    """Return the least squares of the noisy sums and their residual sum of squares."""
    theta = np.linalg.solve(sums.gram, sums.response)
    return theta, float(sums.square - theta @ sums.response)


def plug_in(sums: NoisySums) -> Answer:
    """Return least squares of the noisy sums with intervals that ignore the noise."""
    theta, rss = _fit(sums)
    variance = _variance(rss, sums)
    errors = np.sqrt(variance * np.diagonal(np.linalg.inv(sums.positive)))
    return with_errors(theta, errors, float(stats.t.ppf(0.5 + LEVEL / 2, sums.n - len(theta))))


def _variance(rss: float, sums: NoisySums) -> float:
    value = rss / (sums.n - len(sums.response))
    return value if value > 0 else FLOOR


def equation_noise(theta: np.ndarray, variance: float) -> np.ndarray:
    """Return V, the covariance of e_b - E_A θ, where noise has this variance."""
    noisy = _noisy_entries(len(theta))
    v = np.outer(theta, theta) * noisy
    np.fill_diagonal(v, 1 + noisy @ theta**2)
    return variance * v


def squared_noise(inverse: np.ndarray, variance: float) -> np.ndarray:
    """Return E[E_A M E_A] for a symmetric M."""
    noisy = _noisy_entries(len(inverse))
    b = inverse * noisy
    np.fill_diagonal(b, noisy @ np.diagonal(inverse))
    return variance * b


def _noisy_entries(k: int) -> np.ndarray:
    """Return 1 where XᵀX has noise, and 0 at the number of records."""
    noisy = np.ones((k, k))
    noisy[-1, -1] = 0
    return noisy


def corrected_wald(sums: NoisySums) -> Answer:
    """Return the corrected fit with intervals of its asymptotic standard errors."""
    theta, rss = _fit(sums)
    inverse = np.linalg.inv(sums.positive)
    theta = theta - inverse @ squared_noise(inverse, sums.variance) @ theta
    noise = equation_noise(theta, sums.variance)
    variance = _variance(rss + float(np.trace(inverse @ noise)), sums)
    covariance = inverse @ noise @ inverse + variance * inverse
    return with_errors(theta, np.sqrt(np.diagonal(covariance)))


def bootstrap(rng: np.random.Generator, sums: NoisySums, resamples: int = RESAMPLES) -> Answer:
    """Return the plug-in fit with percentiles of bootstrap fits."""
    theta, rss = _fit(sums)
    k, n = len(theta), sums.n
    q = sums.positive / n
    noise = rng.laplace(0, sums.scale, (resamples, k, k))
    upper = np.triu(noise)
    upper[:, -1, -1] = 0
    symmetric = upper + np.swapaxes(np.triu(noise, 1), 1, 2)
    root = np.linalg.cholesky(_variance(rss, sums) * q)
    sampled = rng.standard_normal((resamples, k)) @ root.T / np.sqrt(n)
    response = q @ theta + sampled + rng.laplace(0, sums.scale, (resamples, k)) / n
    fits = np.linalg.solve(q + symmetric / n, response[..., None])[..., 0]
    low, high = np.quantile(fits, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return Answer(theta, low, high)

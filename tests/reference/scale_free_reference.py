"""The scale-free prior of a regression, dense and with every constant: plain, slow and obvious.

With flat means only the scatter S of n records matters, and it is Wishart(n - 1, Σ). With
τ² ~ IW(diag(a²), d), θ ~ N(0, σ² Λ⁻¹) and σ² ~ IG(1, b²), both integrals are textbook ones, that of
the response given the covariates' records, on which Λ depends.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, multigammaln
from scipy.stats import invwishart

from tests.reference.regression_reference import unpacked

ERROR_SHAPE = 1.0


def log_beta_prime(square: np.ndarray, low: float, high: float, unit: float = 1.0) -> np.ndarray:
    """log density of log(square) for square/unit ~ BetaPrime(low, high)."""
    constant = gammaln(low + high) - gammaln(low) - gammaln(high)
    ratio = square / unit
    return np.asarray(constant + low * np.log(ratio) - (low + high) * np.log1p(ratio))


def log_scales_density(a: np.ndarray, b: float, g: float) -> float:
    """log density of (log a², log b², log g)."""
    return float(
        log_beta_prime(a**2, 0.15, 0.5).sum()
        + log_beta_prime(np.asarray(b**2), 0.5, 0.5)
        + log_beta_prime(np.asarray(g), 0.5, 0.5, 3.0)
    )


def slopes_precision(covariance: np.ndarray, a: np.ndarray, g: float, n: float) -> np.ndarray:
    """Λ: every slope has variance g / a², correlated as least squares' are.

    Independent where the covariates' records have no regular covariance.
    """
    if n - 1 < len(a):
        return np.diag(a**2 / g)
    inverse = np.linalg.inv(covariance)
    size = np.sqrt(np.diagonal(inverse))
    correlation = inverse / np.outer(size, size)
    return np.linalg.inv(g * correlation / np.outer(a, a))


def log_density(s: np.ndarray, n: float, a: np.ndarray, b: float, g: float) -> float:
    """log p(s | a, b, g) with respect to ds; the means' density is 1."""
    _, scatter = unpacked(s, n)
    q = len(scatter)
    d, df = q - 1, n - 1
    xx, xy, yy = scatter[:d, :d], scatter[:d, d], scatter[d, d]
    value = (n - q - 2) / 2 * np.linalg.slogdet(scatter)[1]
    value -= df * q / 2 * np.log(2) + multigammaln(df / 2, q)
    # Covariates: IW(diag(a²), d) before, IW(diag(a²) + S_xx, d + n - 1) after.
    value += d / 2 * np.log(a**2).sum() - d * d / 2 * np.log(2) - multigammaln(d / 2, d)
    value -= (d + df) / 2 * np.linalg.slogdet(np.diag(a**2) + xx)[1]
    value += (d + df) * d / 2 * np.log(2) + multigammaln((d + df) / 2, d)
    # Response.
    before = slopes_precision(xx / n, a, g, n)
    after = before + xx
    rest = yy - xy @ np.linalg.solve(after, xy)
    shape = ERROR_SHAPE + df / 2
    value += 0.5 * (np.linalg.slogdet(before)[1] - np.linalg.slogdet(after)[1])
    value += ERROR_SHAPE * np.log(b**2) - gammaln(ERROR_SHAPE)
    value += gammaln(shape) - shape * np.log(b**2 + rest / 2)
    return float(value - q * np.log(n))


def brute_density(
    rng: np.random.Generator, s: np.ndarray, n: float, a: np.ndarray, b: float, g: float, size: int
) -> tuple[float, float]:
    """log p(s | a, b, g), averaged over draws from the prior, and its standard error."""
    _, scatter = unpacked(s, n)
    q = len(scatter)
    d = q - 1
    xx, xy = scatter[:d, :d], scatter[:d, d]
    tau2 = np.atleast_3d(invwishart(d, np.diag(a**2)).rvs(size, rng)).reshape(-1, d, d)
    sigma2 = b**2 / rng.standard_gamma(ERROR_SHAPE, size)
    root = np.linalg.inv(np.linalg.cholesky(slopes_precision(xx / n, a, g, n)))
    theta = np.sqrt(sigma2)[:, None] * (rng.standard_normal((size, d)) @ root)
    trace = np.einsum("tij,ij->t", np.linalg.inv(tau2), xx)
    rest = scatter[d, d] - 2 * theta @ xy + np.einsum("ti,ij,tj->t", theta, xx, theta)
    size_of_law = np.linalg.slogdet(tau2)[1] + np.log(sigma2)
    log = (n - q - 2) / 2 * np.linalg.slogdet(scatter)[1] - (trace + rest / sigma2) / 2
    log = log - (n - 1) / 2 * (q * np.log(2) + size_of_law) - multigammaln((n - 1) / 2, q)
    weight = np.exp(log - log.max())
    mean = float(np.log(weight.mean()) + log.max() - q * np.log(n))
    return mean, float(weight.std() / weight.mean() / np.sqrt(size))

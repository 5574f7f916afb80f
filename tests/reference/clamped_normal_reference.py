"""Moments of clamped normal variables by plain quadrature, for the formulas of ``censoring.py``."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad


def density(z: float) -> float:
    """Return the density of a standard normal variable."""
    return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


def clamp(value: float, lower: float, upper: float) -> float:
    """Return the value, moved to the nearer bound where it lies outside."""
    return min(max(value, lower), upper)


def margin(mean: float, deviation: float, lower: float, upper: float) -> tuple[float, float]:
    """Return mean and variance of a clamped normal variable; bounds may be infinite."""

    def expected(power: int) -> float:
        def integrand(z: float) -> float:
            return float(clamp(mean + deviation * z, lower, upper) ** power * density(z))

        return quad(integrand, -9, 9, points=_kinks(mean, deviation, lower, upper), limit=400)[0]

    return expected(1), expected(2) - expected(1) ** 2


def covariance(
    means: tuple[float, float],
    deviations: tuple[float, float],
    correlation: float,
    bounds: tuple[tuple[float, float], tuple[float, float]],
) -> float:
    """Return the covariance of two clamped variables, the second integrated given the first."""
    (mu, nu), (s, t) = means, deviations
    centre = [margin(m, d, *b)[0] for m, d, b in zip(means, deviations, bounds, strict=True)]
    spread = t * np.sqrt(1 - correlation**2)

    def given(z: float) -> float:
        inner, _ = margin(nu + correlation * t * z, spread, *bounds[1])
        return float((clamp(mu + s * z, *bounds[0]) - centre[0]) * inner * density(z))

    points = _kinks(mu, s, *bounds[0])
    return float(quad(given, -9, 9, points=points, limit=400, epsabs=1e-9)[0])


def _kinks(mean: float, deviation: float, lower: float, upper: float) -> list[float]:
    ends = [(b - mean) / deviation for b in (lower, upper) if np.isfinite(b)]
    return [e for e in ends if -9 < e < 9] or [0.0]

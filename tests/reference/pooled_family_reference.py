"""Beta-binomial and gamma-Poisson populations by brute force: a grid, and sums over every sum.

Nothing here is shared with the library. With θ integrated out, the sum of a group's records is
beta-binomial or negative binomial; the noise is added by summing over all possible sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

Array = np.ndarray

SOME_POPULATIONS = 400
EXPONENTS = np.linspace(0.3 - 2.7 * 0.45, 0.3 + 2.7 * 0.45, 10)
"""Values of γ: a group of size n has the concentration κ (n / n̄)^γ."""


@dataclass(frozen=True)
class GridPosterior:
    """Weights of populations on a grid: rows (β…, ω), γ of each, and their probabilities."""

    rows: Array
    exponents: Array
    weight: Array
    shares: bool
    z: Array
    n: Array
    scale: float
    mechanism: str
    features: Array
    log_size: Array

    def cdf_of_population(self, place: int, at: Array) -> Array:
        """The posterior CDF of one coordinate of (β…, ω)."""
        values, where = np.unique(self.rows[:, place], return_inverse=True)
        total = np.cumsum(np.bincount(where, self.weight))
        # A grid point stands for the cell about it.
        return np.interp(at, values + np.diff(values).mean() / 2, total)

    def cdf_of_group(self, group: int, at: Array, sums: int) -> Array:
        """The posterior CDF of θ in one group: a mixture of conjugate posteriors."""
        s = np.arange(sums)
        total = np.zeros(len(at))
        # Populations at even steps of the cumulative weight stand for all of them.
        even = (np.arange(SOME_POPULATIONS) + 0.5) / SOME_POPULATIONS
        some = np.searchsorted(np.cumsum(self.weight), even)
        for place in some:
            row, times = self.rows[place], np.exp(self.exponents[place] * self.log_size[group])
            a, b = conjugate(self.shares, row[:-1] @ self.features[group], row[-1], times)
            share = sum_probability(self.shares, s, self.n[group], a, b)
            share = share * noise(self.z[group] - s, self.scale, self.mechanism)
            share /= share.sum()
            heavy = share > 1e-6
            n, x = self.n[group], at[:, None]
            if self.shares:
                after = special.betainc(a + s[heavy], b + n - s[heavy], x)
            else:
                after = special.gammainc(a + s[heavy], (b + n) * x)
            total += after @ share[heavy] / len(some)
        return total


def noise(d: Array, scale: float, mechanism: str) -> Array:
    """The noise's density, up to a constant."""
    return np.exp(-np.abs(d) / scale if mechanism == "laplace" else -((d / scale) ** 2) / 2)


def conjugate(shares: bool, linear: Array, spread: Array, times: Array) -> tuple[Array, Array]:
    """Beta's α and β, or gamma's shape and rate, of a group's parameter.

    ``times``: how many times as concentrated groups of its size are.
    """
    if shares:
        k = (1 / spread**2 - 1) * times
        return k * special.expit(linear), k * special.expit(-linear)
    k = times / spread**2
    return k, k * np.exp(-linear)


def sum_probability(shares: bool, s: Array, n: int, a: Array, b: Array) -> Array:
    """The probability of a sum of n records, θ integrated out."""
    with np.errstate(invalid="ignore", divide="ignore"):
        if shares:
            left = np.maximum(n - s, 0)
            choose = special.gammaln(n + 1) - special.gammaln(s + 1) - special.gammaln(left + 1)
            log = choose + special.betaln(s + a, left + b) - special.betaln(a, b)
            return np.where(s <= n, np.exp(log), 0.0)
        log = special.gammaln(s + a) - special.gammaln(a) - special.gammaln(s + 1)
        return np.exp(log + a * np.log(b / (b + n)) + s * np.log(n / (b + n)))


def grid_posterior(
    axes: list[Array], z: Array, n: Array, scale: float, mechanism: str, *, shares: bool,
    middle: float, coefficient_sd: float, spread_scale: float, sums: int,
    features: Array | None = None, n_mean: float | None = None,
) -> GridPosterior:  # fmt: skip
    """The posterior of (β…, ω, γ) on the product of the axes, evenly spaced in β and in ω."""
    u = np.ones((len(z), 1)) if features is None else features
    log_size = np.log(n) - (np.log(n).mean() if n_mean is None else np.log(n_mean))
    mesh = np.meshgrid(*axes, EXPONENTS, indexing="ij")
    *columns, exponents = [m.ravel() for m in mesh]
    rows = np.stack(columns, axis=1)
    beta, spread = rows[:, :-1], rows[:, -1]
    centre = np.append(middle, np.zeros(beta.shape[1] - 1))
    log = -(((beta - centre) / coefficient_sd) ** 2).sum(axis=1) / 2
    log = log - ((exponents - 0.3) / 0.45) ** 2 / 2
    log = log + np.log(spread) - 2 * np.log1p((spread / spread_scale) ** 2)
    s = np.arange(sums)
    for g in range(len(z)):
        a, b = conjugate(shares, beta @ u[g], spread, np.exp(exponents * log_size[g]))
        given = sum_probability(shares, s, n[g], np.reshape(a, (-1, 1)), np.reshape(b, (-1, 1)))
        log = log + np.log(given @ noise(z[g] - s, scale, mechanism) + 1e-300)
    weight = np.exp(log - log.max())
    weight = weight / weight.sum()
    return GridPosterior(rows, exponents, weight, shares, z, n, scale, mechanism, u, log_size)

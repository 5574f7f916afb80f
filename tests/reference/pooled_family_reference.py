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


@dataclass(frozen=True)
class GridPosterior:
    """Weights of populations on a grid: rows (β…, ω) and their probabilities."""

    rows: Array
    weight: Array
    shares: bool
    z: Array
    n: Array
    scale: float
    mechanism: str
    features: Array

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
        some = self.rows[np.searchsorted(np.cumsum(self.weight), even)]
        for row in some:
            a, b = conjugate(self.shares, row[:-1] @ self.features[group], row[-1])
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


def conjugate(shares: bool, linear: Array, spread: Array) -> tuple[Array, Array]:
    """Beta's α and β, or gamma's shape and rate, of a group's parameter."""
    if shares:
        k = 1 / spread**2 - 1
        return k * special.expit(linear), k * special.expit(-linear)
    k = 1 / spread**2
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
    features: Array | None = None,
) -> GridPosterior:  # fmt: skip
    """The posterior of (β…, ω) on the product of the axes, evenly spaced in β and in ω."""
    u = np.ones((len(z), 1)) if features is None else features
    mesh = np.meshgrid(*axes, indexing="ij")
    rows = np.stack([m.ravel() for m in mesh], axis=1)
    beta, spread = rows[:, :-1], rows[:, -1]
    centre = np.append(middle, np.zeros(beta.shape[1] - 1))
    log = -(((beta - centre) / coefficient_sd) ** 2).sum(axis=1) / 2
    log = log + np.log(spread) - 2 * np.log1p((spread / spread_scale) ** 2)
    s = np.arange(sums)
    for g in range(len(z)):
        a, b = conjugate(shares, beta @ u[g], spread)
        given = sum_probability(shares, s, n[g], np.reshape(a, (-1, 1)), np.reshape(b, (-1, 1)))
        log = log + np.log(given @ noise(z[g] - s, scale, mechanism) + 1e-300)
    weight = np.exp(log - log.max())
    return GridPosterior(rows, weight / weight.sum(), shares, z, n, scale, mechanism, u)

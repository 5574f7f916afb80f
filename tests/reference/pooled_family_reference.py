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
EXPONENTS = np.linspace(0.3 - 2.5 * 0.45, 0.3 + 2.5 * 0.45, 7)
"""Values of γ: a group of size n has the concentration κ (n / n̄)^γ."""
EFFECTS = np.linspace(-2.5, 2.5, 7)
"""Values of ζ: a group's link is shifted by 0.4 ζ h deviations between groups, h its standardised
log size."""
ROWS_AT_ONCE = 20_000


@dataclass(frozen=True)
class GridPosterior:
    """Weights of populations on a grid: rows (β…, ω), γ and ζ of each, and their probabilities."""

    rows: Array
    exponents: Array
    effects: Array
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
            some_rows = self.rows[place : place + 1]
            linear = links(self.shares, some_rows, self.effects[place], self.features[group],
                           standard(self.log_size)[group])[0]  # fmt: skip
            times = np.exp(self.exponents[place] * self.log_size[group])
            a, b = conjugate(self.shares, linear, some_rows[0, -1], times)
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


def standard(log_size: Array) -> Array:
    """Logs of sizes with deviation 1."""
    return log_size / log_size.std() if log_size.std() > 1e-6 else 0 * log_size


def links(shares: bool, rows: Array, effects: Array, features: Array, size: float) -> Array:
    """The link of a group's mean for every population (β…, ω)."""
    beta, spread = rows[:, :-1], rows[:, -1]
    m = special.expit(beta[:, 0])
    unit = spread / np.sqrt(m * (1 - m)) if shares else spread
    return np.asarray(beta @ features + 0.4 * unit * effects * size)


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
    features: Array | None = None, all_sizes: Array | None = None,
) -> GridPosterior:  # fmt: skip
    """The posterior of (β…, ω, γ, ζ) on the product of the axes, evenly spaced in β and in ω."""
    u = np.ones((len(z), 1)) if features is None else features
    sizes = np.asarray(n if all_sizes is None else all_sizes)
    logs = np.log(np.maximum(sizes, 1))
    log_size = np.where(sizes > 0, logs - logs[sizes > 0].mean(), 0.0)
    mesh = np.meshgrid(*axes, EXPONENTS, EFFECTS, indexing="ij")
    *columns, exponents, effects = [m.ravel() for m in mesh]
    rows = np.stack(columns, axis=1)
    beta, spread = rows[:, :-1], rows[:, -1]
    centre = np.append(middle, np.zeros(beta.shape[1] - 1))
    log = -(((beta - centre) / coefficient_sd) ** 2).sum(axis=1) / 2
    log = log - ((exponents - 0.3) / 0.45) ** 2 / 2 - effects**2 / 2
    log = log + np.log(spread) - 2 * np.log1p((spread / spread_scale) ** 2)
    s = np.arange(sums)
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        some = slice(begin, begin + ROWS_AT_ONCE)
        for g in range(len(z)):
            size = standard(log_size)[g]
            linear = links(shares, rows[some], effects[some], u[g], size)
            times = np.exp(exponents[some] * log_size[g])
            a, b = conjugate(shares, linear, spread[some], times)
            given = sum_probability(shares, s, n[g], np.reshape(a, (-1, 1)), np.reshape(b, (-1, 1)))
            log[some] += np.log(given @ noise(z[g] - s, scale, mechanism) + 1e-300)
    weight = np.exp(log - log.max())
    weight = weight / weight.sum()
    return GridPosterior(
        rows, exponents, effects, weight, shares, z, n, scale, mechanism, u, log_size
    )

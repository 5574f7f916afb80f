"""The likelihood of two noisy sums, Σt̂ and Σt̂² of normal records, by inversion in two dimensions.

With Laplace or Gaussian noise on either sum, p(z | θ) ∝ E[K(s₁-z₁) K(s₂-z₂)], a double Fourier
series in φ(t₁, t₂)ⁿ (errata E19, ``fourier_likelihood.py``). It is practical because of exponential
tilting, one sum at a time: where s_j surely lies on one side of z_j, Laplace noise is an
exponential that tilts the law of one record, and no series in t_j is needed. What is left has a few
dozen frequencies in each direction.

The law of one record is a Gauss-Legendre rule of its own for every θ, over the part of the interval
within 8.5 deviations of the mean, and one or two atoms for what was clamped or dropped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from noisewise.models.exponential_family.fourier_likelihood import (
    GAUSSIAN_FREQUENCIES,
    MAX_TILTED_RANGE,
    FourierSeries,
    bennett_reach,
    noise_series,
    powers,
)

GAUSS_LEGENDRE_NODES = 48
"""Nodes of the rule for one record (chosen): right to rounding for 17 deviations of a normal."""
RECORD_REACH = 8.5
"""Deviations from the mean beyond which a record has probability below 1e-16."""
PARAMETERS_PER_SERIES = 8
"""Parameters, sorted by variance, that share frequencies (chosen)."""
LAPLACE_FREQUENCIES = 300.0
"""Highest frequency in units of 1/b: beyond, coefficients add up to 1/(300π) at the kink."""

NO_FREQUENCIES = FourierSeries(np.zeros(1), np.ones(1))
"""No frequencies: for a sum whose noise is in the tilt already."""


class NormalContributions(NamedTuple):
    """One record's t̂ (θ, value), the square beside it, and log probabilities."""

    first: np.ndarray
    second: np.ndarray
    log_p: np.ndarray

    def of(self, rows: np.ndarray) -> NormalContributions:
        """Return the law at some parameters only."""
        return NormalContributions(*(a[rows] for a in self))


class NoisySums(NamedTuple):
    """One release: both sums, the number of records and the noise, in the box of the release.

    ``depth``: probabilities below e^-depth are left out.
    """

    z: np.ndarray
    n: float
    scale: float
    mechanism: str
    interval: BoxInterval
    depth: float


class BoxInterval(NamedTuple):
    """The public interval, in the box of the release."""

    low: float
    high: float
    clamp: bool

    @property
    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the least and the greatest contribution to either sum."""
        a, b = (self.low, self.high) if self.clamp else (min(self.low, 0.0), max(self.high, 0.0))
        squares = a * a, b * b
        least = 0.0 if a <= 0 <= b else min(squares)
        return (a, b), (least, max(squares))


def contributions(
    mean: np.ndarray, variance: np.ndarray, interval: BoxInterval
) -> NormalContributions:
    """Return the law of one record's contribution for each (mean, variance)."""
    sd = np.sqrt(variance)[:, None]
    m = mean[:, None]
    low = np.clip(m - RECORD_REACH * sd, interval.low, interval.high)
    high = np.clip(m + RECORD_REACH * sd, interval.low, interval.high)
    x, w = np.polynomial.legendre.leggauss(GAUSS_LEGENDRE_NODES)
    width = (high - low) / 2
    u = low + width * (x + 1)
    with np.errstate(divide="ignore"):
        log_p = -0.5 * ((u - m) / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi)) + np.log(w * width)
        # The rule gives the shape; the distribution function gives the mass, exactly.
        # From the nearer tail: both ends may be far on one side.
        ends = (interval.low - m) / sd, (interval.high - m) / sd
        flip = np.where(ends[0] > 0, -1.0, 1.0)
        inside = np.abs(ndtr(flip * ends[1]) - ndtr(flip * ends[0]))
        total = np.exp(log_p).sum(axis=1, keepdims=True)
        log_p = log_p + np.log(inside) - np.log(np.where(total > 0, total, 1.0))
    below = log_ndtr((interval.low - m) / sd)
    above = log_ndtr((m - interval.high) / sd)
    one = np.ones_like(m)
    atoms = (interval.low, interval.high) if interval.clamp else (0.0, 0.0)
    u = np.concatenate([u, atoms[0] * one, atoms[1] * one], axis=1)
    return NormalContributions(u, u * u, np.concatenate([log_p, below, above], axis=1))


def contribution_moments(law: NormalContributions) -> tuple[np.ndarray, np.ndarray]:
    """Return mean (θ, 2) and covariance (θ, 3): of t̂, of its square, and between them."""
    p = np.exp(law.log_p)
    mean = np.stack([(p * law.first).sum(axis=1), (p * law.second).sum(axis=1)], axis=1)
    a, b = law.first - mean[:, :1], law.second - mean[:, 1:]
    spread = [(p * v).sum(axis=1) for v in (a * a, b * b, a * b)]
    return mean, np.stack(spread, axis=1)


def support(given: NoisySums, law: NormalContributions) -> tuple[np.ndarray, np.ndarray]:
    """Return least and greatest contribution (θ, sum), without values rarer than e^-depth/n.

    By a further e^-MAX_TILTED_RANGE rarer, so that a law may be tilted first.
    """
    rare = (law.log_p < -given.depth - np.log(given.n) - MAX_TILTED_RANGE)[..., None]
    values = np.stack([law.first, law.second], axis=-1)
    low, high = (np.where(rare, end, values) for end in (np.inf, -np.inf))
    return low.min(axis=1), high.max(axis=1)


def sides(given: NoisySums, law: NormalContributions) -> np.ndarray:
    """Return (θ, sum): 1 where all of s_j lies below z_j, -1 where above, 0 where near."""
    mean, spread = contribution_moments(law)
    widths = sum(high - low for low, high in given.interval.ends)
    if given.mechanism == "gaussian" or widths > MAX_TILTED_RANGE * given.scale:
        return np.zeros(mean.shape, int)
    low, high = support(given, law)
    n, g = given.n, np.exp(widths / given.scale)
    own = spread[:, :2]
    shift = n * g * (own + np.sqrt(own.prod(axis=1, keepdims=True))) / given.scale
    reach = shift + bennett_reach(n * g * own, high - low, given.depth)
    above = np.minimum(n * mean + reach, n * high)
    below = np.maximum(n * mean - reach, n * low)
    return np.asarray((given.z >= above).astype(int) - (given.z <= below))


def log_likelihood(given: NoisySums, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the log-likelihood (θ,) up to a constant; -inf where it is next to nothing."""
    law = contributions(mean, variance, given.interval)
    side = sides(given, law)
    values = np.empty(len(mean))
    order = np.lexsort((variance, side[:, 1], side[:, 0]))
    changes = np.flatnonzero(np.any(np.diff(side[order], axis=0) != 0, axis=1)) + 1
    for alike in np.split(order, changes):
        for first in range(0, len(alike), PARAMETERS_PER_SERIES):
            rows = alike[first : first + PARAMETERS_PER_SERIES]
            values[rows] = _same_side_log_likelihood(given, law.of(rows), side[rows[0]])
    return values


def _same_side_log_likelihood(
    given: NoisySums, law: NormalContributions, side: np.ndarray
) -> np.ndarray:
    """Return the log-likelihood of parameters whose sums lie on the same sides of z."""
    tilt = side / given.scale
    log_p = law.log_p + tilt[0] * law.first + tilt[1] * law.second
    top = log_p.max(axis=1, keepdims=True)
    log_m = top + np.log(np.exp(log_p - top).sum(axis=1, keepdims=True))
    closed = given.n * log_m[:, 0] - tilt @ given.z
    if side.all():
        return np.asarray(closed)
    tilted = NormalContributions(law.first, law.second, log_p - log_m)
    one, two = (_series(given, j, tilted) if side[j] == 0 else NO_FREQUENCIES for j in range(2))
    total = _double_series(tilted, one, two, given.z, given.n)
    with np.errstate(divide="ignore"):
        return np.asarray(closed + np.log(np.where(total > np.exp(-given.depth), total, 0.0)))


def _series(given: NoisySums, j: int, law: NormalContributions) -> FourierSeries:
    """Return the noise's series for the j-th sum, near its z."""
    mean, variance = (a[:, j] for a in contribution_moments(law))
    low, high = (end[:, j] for end in support(given, law))
    n, z = given.n, given.z[j]
    strays = bennett_reach(n * variance, high - low, given.depth)
    highest = np.minimum(n * mean + strays, n * high)
    lowest = np.maximum(n * mean - strays, n * low)
    reach = max((z - lowest).max(), (highest - z).max(), 1e-6 * given.scale)
    # φⁿ has died like a normal's for many records, like a power for few.
    decay = max(np.sqrt(2 * given.depth / n), min(np.exp(given.depth / n), 100.0))
    sd = np.sqrt(np.maximum(variance, 1e-6 * (high - low) ** 2).min())
    most = LAPLACE_FREQUENCIES if given.mechanism == "laplace" else GAUSSIAN_FREQUENCIES
    highest_frequency = min(decay / sd, most / given.scale)
    return noise_series(reach, given.scale, given.mechanism, False, highest_frequency)


def _double_series(
    law: NormalContributions, one: FourierSeries, two: FourierSeries, z: np.ndarray, n: float
) -> np.ndarray:
    """Return Σ c₁ c₂ Re φⁿ e^{-itz}: t₁ ≥ 0 (coefficients doubled), t₂ of either sign."""
    h1, h2 = (s.frequency[1] if len(s.frequency) > 1 else 0.0 for s in (one, two))
    k1 = np.arange(len(one.frequency))
    k2 = np.arange(1 - len(two.frequency), len(two.frequency))
    c2 = two.coefficient[np.abs(k2)] / np.where(k2 == 0, 1.0, 2.0)
    turn1 = one.coefficient * np.exp(-1j * h1 * k1 * z[0])
    turn2 = c2 * np.exp(-1j * h2 * k2 * z[1])
    values = np.empty(len(law.first))
    for row, (a, b, log_p) in enumerate(zip(*law, strict=True)):
        left = np.exp(1j * h1 * np.outer(k1, a)) * np.exp(log_p)
        right = np.exp(1j * h2 * np.outer(b, k2[k2 >= 0]))
        right = np.concatenate([right[:, :0:-1].conj(), right], axis=1)
        values[row] = (turn1 @ (powers(left @ right, round(n)) @ turn2)).real
    return values

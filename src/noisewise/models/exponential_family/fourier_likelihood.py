"""The likelihood of noisy sums on a grid of parameters, by Fourier series (errata E19).

**The noise.** p(z | s) ∝ K(s - z), K(d) = exp(-|d|/b) or exp(-d²/2b²): so on the lattice of a
release as in the continuum, since z and s are both lattice points. With |s - z| ≤ W, any periodic
function that agrees with K on [-W, W] will do, and its coefficients c_k give

    E[K(s - z)] = c_0 + 2 Σ_k c_k Re[ φ_s(kh) e^{-ikhz} ],   h = 2π/L,

errata E19 without its quadrature error: only the series is cut off. For Laplace noise K itself,
repeated with period L = 2W, has c_k = (2/Lb)(1 - (-1)^k e^{-L/2b}) / (1/b² + k²h²). On whole
numbers the series is finite: a discrete Fourier transform of odd length L.

**One record.** φ_s = φⁿ, φ the characteristic function of one record's contribution, whose law is
put on finitely many values. Whole numbers have such a law already. A continuous family is put on
the nodes of a Gauss-Legendre rule whose variable is bent, x = lower + width · (3u² - 2u³), so that
a density that is steep, or infinite, at an end is still integrated well; its CDF is all that is
needed, the density being its derivative. What lies outside the interval sits in atoms: at 0 where
records were dropped, at the ends where they were clamped.

All releases that share n, the noise and the interval share the matrix φⁿ(t; θ)·c(t): the rest is
one product of matrices. Powers are taken in NumPy, by squaring, block by block in the cache: five
times faster than by logarithms, and nothing to compile for yet another shape.

**A secret n** with a noisy count m̂ and a flat prior over 0, 1, 2, … is summed out under the
transform: for Laplace noise of scale b' with a = e^{-1/b'}, m = ⌊m̂⌋, f = m̂ - m a geometric series
on either side of m̂,

    Σ_n φⁿ a^{|m̂-n|} = a^f (φ^{m+1} - a^{m+1})/(φ - a) + a^{1-f} φ^{m+1}/(1 - φa).

**Exponential tilting.** Where no sum comes near z, Laplace noise is a plain exponential and needs
no transform. If s < z surely, E exp(-|z-s|/b) = e^{-z/b} M(1/b)ⁿ with M the moment generating
function of one record's contribution x; likewise e^{z/b} M(-1/b)ⁿ if s > z. "Surely" is under the
tilted law, of density e^{x/b}/M(1/b), because the error is P_tilted(s > z). With v the variance of
x, w its range and g = e^{w/b}, tilting moves the mean by at most vg/b and multiplies the variance
by at most g; Bennett's inequality then bounds the sum: farther from its mean than 8 deviations and
12 ranges it has probability below e^-32. The series is left with the parameters whose sums come
near z; its period shrinks from all possible sums to those few deviations, and with it the number
of terms, tenfold or more.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.models.exponential_family.family import TINY, Family
from noisewise.models.exponential_family.parameter_grid import CHUNK_POINTS, chunks
from noisewise.models.exponential_family.truncation import Interval

NEGLIGIBLE_DEPTH = 32.0
"""Densities and probabilities below e^-32, about 1e-14, are rounding beside 1 in float64."""
MAX_WHOLE_VALUES = 2**14
"""Whole numbers in the interval up to which the law of one record is tabulated (chosen)."""
CACHED_NUMBERS = 2**14
"""Complex numbers that stay in a core's cache while they are squared (chosen)."""
GAUSSIAN_FREQUENCIES = 8.5
"""In units of 1/b: beyond, the Gaussian kernel's transform is below e^-36."""
MAX_TILTED_RANGE = 2.0
"""One record's range in noise scales up to which tilting is used (chosen): beyond, the bound
says little; a sum is near unless the noise has no density there."""


# -- the noise -------------------------------------------------------------------------------------


class FourierSeries(NamedTuple):
    """Frequencies kh and coefficients, doubled for k > 0."""

    frequency: np.ndarray
    coefficient: np.ndarray


def noise_series(
    reach: float, scale: float, mechanism: str, whole: bool, highest: float
) -> FourierSeries:
    """Return the series of the noise, right for distances up to ``reach``.

    Args:
        reach: the largest |s - z| that occurs.
        scale: the noise's b.
        mechanism: ``"laplace"`` or ``"gaussian"``.
        whole: distances are whole numbers.
        highest: frequencies above it are left out, because φⁿ is nothing there.
    """
    quiet = NEGLIGIBLE_DEPTH if mechanism == "laplace" else math.sqrt(2 * NEGLIGIBLE_DEPTH)
    period = reach + quiet * scale
    if mechanism == "laplace" or whole:
        period = min(2 * reach, period)
    if whole:
        return _finite_series(2 * math.ceil(period / 2) + 1, scale, mechanism, highest)
    h = 2 * np.pi / period
    k = np.arange(1 + max(1, math.ceil(highest / h)))
    if mechanism == "laplace":
        sign = 1 - np.where(k % 2, -1.0, 1.0) * np.exp(-period / (2 * scale))
        c = 2 / (period * scale) * sign / (1 / scale**2 + (k * h) ** 2)
    else:
        c = math.sqrt(2 * np.pi) * scale / period * np.exp(-((scale * k * h) ** 2) / 2)
    return FourierSeries(k * h, np.where(k > 0, 2.0, 1.0) * c)


def _finite_series(period: int, scale: float, mechanism: str, highest: float) -> FourierSeries:
    """Return the series over distances on a circle of ``period`` whole steps."""
    d = np.minimum(np.arange(period), period - np.arange(period)) / scale
    kernel = np.exp(-d if mechanism == "laplace" else -(d**2) / 2)
    c = np.fft.rfft(kernel).real / period
    h = 2 * np.pi / period
    kept = min(len(c), 1 + max(1, math.ceil(highest / h)))
    k = np.arange(kept)
    return FourierSeries(k * h, np.where(k > 0, 2.0, 1.0) * c[:kept])


# -- one record ------------------------------------------------------------------------------------


class ContributionLaw(NamedTuple):
    """What one record adds: its values (value), and their probabilities (parameter, value)."""

    added: np.ndarray
    probability: np.ndarray

    def of(self, parameters: np.ndarray) -> ContributionLaw:
        """Return the law at some parameters only."""
        return ContributionLaw(self.added, self.probability[parameters])


def contribution_ends(family: Family, interval: Interval) -> tuple[float, float]:
    """Return the least and the greatest contribution of one record."""
    low = float(interval.below(family.whole)) + family.whole
    high = float(interval.above(family.whole))
    if interval.outside == "drop":
        return min(low, 0.0), max(high, 0.0)
    return low, high


def contribution_law(
    family: Family, interval: Interval, eta: np.ndarray, nodes: int
) -> ContributionLaw:
    """Return the law of one record's contribution at every η; few shapes are compiled."""
    values, weights = (_padded(a, 8) for a in _nodes(family, interval, nodes))
    parts = [
        _all_probabilities(
            family, interval, values, weights, jnp.asarray(eta[i : i + CHUNK_POINTS])
        )
        for i in chunks(len(eta))
    ]
    atoms = (0.0, 0.0) if interval.outside == "drop" else (interval.lower, interval.upper)
    return ContributionLaw(np.concatenate([np.asarray(values), atoms]), np.concatenate(parts))


@lru_cache(maxsize=256)
def _nodes(family: Family, interval: Interval, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return values inside the interval and their weights; ``size`` of them where continuous."""
    if family.whole:
        low, high = float(interval.below(True)) + 1, float(interval.above(True))
        if high - low + 1 > MAX_WHOLE_VALUES:
            raise ArgumentError(
                f"method: exact handles up to {MAX_WHOLE_VALUES} whole numbers in the interval, "
                f"not {high - low + 1:.0f}; use method='gibbs'"
            )
        values = np.arange(low, high + 1)
        return values, np.ones(len(values))
    u, weights = np.polynomial.legendre.leggauss(size)
    u, weights = (u + 1) / 2, weights / 2
    width = interval.upper - interval.lower
    return interval.lower + width * (3 - 2 * u) * u**2, weights * width * 6 * u * (1 - u)


@partial(jax.jit, static_argnums=0)
def _all_probabilities(
    family: Family, interval: Interval, values: jax.Array, weights: jax.Array, eta: jax.Array
) -> jax.Array:
    return jax.vmap(lambda e: _probabilities(family, interval, values, weights, e))(eta)


def _probabilities(
    family: Family, interval: Interval, values: jax.Array, weights: jax.Array, eta: jax.Array
) -> jax.Array:
    """Return (value…, below, above): of the nodes, then of what lies outside the interval."""

    def cdf(x: jax.Array) -> jax.Array:
        return family.cdf(x, eta)

    if family.whole:
        up_to = jax.vmap(cdf)(values)
        before = jnp.concatenate([cdf(values[0] - 1)[None], up_to[:-1]])
        inner = weights * (up_to - before)
    else:
        inner = weights * jax.vmap(jax.grad(cdf))(values)
    below = cdf(jnp.asarray(interval.below(family.whole)))
    above = 1 - cdf(jnp.asarray(interval.above(family.whole)))
    mass = 1 - below - above
    total = inner.sum()
    inner = inner * jnp.where(total > 0, mass / jnp.where(total > 0, total, 1.0), 0.0)
    return jnp.concatenate([jnp.maximum(inner, 0.0), jnp.stack([below, above])])


def _padded(values: np.ndarray, least: int = 64) -> jax.Array:
    """Append zeros up to a power of two, so that few shapes are compiled."""
    size = max(least, 1 << (len(values) - 1).bit_length())
    return jnp.asarray(np.pad(values, (0, size - len(values))))


# -- the likelihood by the series ------------------------------------------------------------------


def powers(phi: np.ndarray, n: int) -> np.ndarray:
    """Return φⁿ, by squaring."""
    power, square = np.ones_like(phi), phi
    while n:
        if n & 1:
            power = power * square
        n >>= 1
        square = square * square if n else square
    return power


def series_likelihood(
    law: ContributionLaw, series: FourierSeries, z: np.ndarray, n: float
) -> np.ndarray:
    """Return the likelihood (release, parameter) up to a factor, where n is public."""
    angle = law.added[:, None] * series.frequency
    cosine, sine = np.cos(angle), np.sin(angle)
    turned = z[:, None] * series.frequency
    left, right = np.cos(turned), np.sin(turned)
    values = np.empty((len(z), len(law.probability)))
    rows = max(1, CACHED_NUMBERS // len(series.frequency))
    for first in range(0, values.shape[1], rows):
        part = slice(first, first + rows)
        one = law.probability[part]
        many = powers(one @ cosine + 1j * (one @ sine), round(n)) * series.coefficient
        values[:, part] = left @ many.real.T + right @ many.imag.T
    return values


def unknown_n_likelihood(
    law: ContributionLaw, series: FourierSeries, z: np.ndarray, counted: float, mechanism: str,
    count_scale: float,
) -> np.ndarray:  # fmt: skip
    """Return the likelihood (release, parameter) where n is known by a noisy count alone."""
    frequency, coefficient = map(_padded, series)
    many = np.asarray(
        _summed_over_n(*map(jnp.asarray, law), frequency, coefficient, jnp.asarray(counted),
                       mechanism, jnp.asarray(count_scale))
    )  # fmt: skip
    turned = z[:, None] * np.asarray(frequency)
    return np.asarray(np.cos(turned) @ many.real.T + np.sin(turned) @ many.imag.T)


@partial(jax.jit, static_argnums=5)
def _summed_over_n(
    added: jax.Array, one: jax.Array, frequency: jax.Array, coefficient: jax.Array, n: jax.Array,
    mechanism: str, count_scale: jax.Array,
) -> jax.Array:  # fmt: skip
    """Return φⁿ summed over n, times the noise's coefficients (parameter, frequency)."""
    angle = added[:, None] * frequency
    phi = jax.lax.complex(one @ jnp.cos(angle), one @ jnp.sin(angle))
    # In real arithmetic: XLA's complex logarithm takes twice as long on a CPU.
    size = 0.5 * jnp.log(jnp.maximum(phi.real**2 + phi.imag**2, TINY))
    log_phi = jax.lax.complex(size, jnp.arctan2(phi.imag, phi.real))
    summed = _gaussian_sum if mechanism == "gaussian" else _geometric_sum
    return summed(phi, log_phi, n, count_scale) * coefficient


def _gaussian_sum(
    phi: jax.Array, log_phi: jax.Array, n: jax.Array, count_scale: jax.Array
) -> jax.Array:
    """Sum φⁿ under a normal weight of n."""
    # A normal weight is smooth: the trapezoidal rule on 97 points of ±9.5 scales is exact to
    # rounding, unless whole numbers are coarser; then it runs over the whole numbers.
    step = jnp.maximum(9.5 * count_scale / 48, 1.0)
    where = jnp.maximum(jnp.round(n), 0.0) + step * jnp.arange(-48, 49)
    weight = jnp.where(where >= 0, jnp.exp(-(((where - n) / count_scale) ** 2) / 2), 0.0)
    total = jnp.zeros_like(phi)
    for j in range(97):
        total = total + weight[j] * jnp.exp(jnp.maximum(where[j], 0.0) * log_phi)
    return total


def _geometric_sum(
    phi: jax.Array, log_phi: jax.Array, n: jax.Array, count_scale: jax.Array
) -> jax.Array:
    """Sum φⁿ under a Laplace weight of n: a geometric series on either side of the count."""
    a = jnp.exp(-1 / count_scale)
    m = jnp.floor(jnp.maximum(n, 0.0))
    rest = jnp.maximum(n, 0.0) - m
    power = jnp.exp((m + 1) * log_phi)
    left = a**rest * (power - jnp.exp(-(m + 1) / count_scale)) / (phi - a)
    return left + a ** (1 - rest) * power / (1 - phi * a)


# -- exponential tilting ---------------------------------------------------------------------------


def bennett_reach(
    variance: np.ndarray, width: float | np.ndarray, depth: float = NEGLIGIBLE_DEPTH
) -> np.ndarray:
    """Return how far a sum of this variance strays from its mean, except below e^-depth."""
    return np.asarray(np.sqrt(2 * depth * variance) + (0.35 * depth + 0.8) * width)


def sums_come_near(
    z: np.ndarray, n: float, ends: tuple[float, float], mean: np.ndarray, variance: np.ndarray,
    scale: float, mechanism: str,
) -> np.ndarray:  # fmt: skip
    """Tell (release, parameter) whether sums may be as near z as to need the transform."""
    low, high = ends
    width = high - low
    quiet = width > MAX_TILTED_RANGE * scale
    if mechanism == "gaussian" or quiet:
        # Beyond eight scales Gaussian noise has density below e^-32.
        tail = 8 if mechanism == "gaussian" else NEGLIGIBLE_DEPTH
        reach = bennett_reach(n * variance, width) + tail * scale
        return np.asarray(np.abs(z[:, None] - n * mean) < reach)
    g = np.exp(width / scale)
    reach = n * variance * g / scale + bennett_reach(n * variance * g, width)
    above = np.minimum(n * mean + reach, n * high)
    below = np.maximum(n * mean - reach, n * low)
    return np.asarray((z[:, None] < above) & (z[:, None] > below))


def tilted_likelihood(
    law: ContributionLaw, mean: np.ndarray, z: np.ndarray, n: float, scale: float, mechanism: str
) -> np.ndarray:
    """Return the likelihood (release, parameter) where z is not near, in the series' units."""
    if mechanism == "gaussian":
        return np.zeros((len(z), len(mean)))
    up, down = (n * np.log(law.probability @ np.exp(t * law.added / scale)) for t in (1, -1))
    at = z[:, None]
    # Near the mean neither formula holds, and an exponent may be anything.
    exponent = np.where(at > n * mean, up - at / scale, down + at / scale)
    return np.asarray(np.exp(np.minimum(exponent, 0.0)))

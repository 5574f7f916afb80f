"""Plain, slow versions of thesis chapter 4: the oracles of the exponential families.

Nothing here is shared with the library; formulas are written from the thesis and the errata.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import integrate, special, stats

Array = np.ndarray


def noise_density(d: Array, scale: float, mechanism: str) -> Array:
    """Up to a constant."""
    return np.exp(-np.abs(d) / scale if mechanism == "laplace" else -((d / scale) ** 2) / 2)


def bernoulli_cdf(
    p: Array, z: float, n: int, scale: float, alpha: float, beta: float, mechanism: str = "laplace"
) -> Array:
    """Errata E15: a mixture of n + 1 betas with weights BetaBinomial(s) p(z | s)."""
    s = np.arange(n + 1)
    weight = stats.betabinom.pmf(s, n, alpha, beta) * noise_density(z - s, scale, mechanism)
    weight /= weight.sum()
    return np.array([weight @ stats.beta.cdf(v, alpha + s, beta + n - s) for v in p])


def bernoulli_moments(
    z: float, n: int, scale: float, alpha: float, beta: float, mechanism: str = "laplace"
) -> tuple[float, float]:
    """Mean and sd of the same mixture."""
    s = np.arange(n + 1)
    weight = stats.betabinom.pmf(s, n, alpha, beta) * noise_density(z - s, scale, mechanism)
    weight /= weight.sum()
    a, b = alpha + s, beta + n - s
    mean = weight @ (a / (a + b))
    second = weight @ (a * (a + 1) / ((a + b) * (a + b + 1)))
    return float(mean), float(np.sqrt(second - mean**2))


def truncated_moments(law: object, low: float, high: float) -> tuple[float, float]:
    """Mean and variance of x given low ≤ x ≤ high, by SciPy's own expectation."""
    if hasattr(law, "pmf"):
        x = np.arange(np.ceil(low), np.floor(high) + 1)
        weight = law.pmf(x)
        mean = weight @ x / weight.sum()
        return float(mean), float(weight @ (x - mean) ** 2 / weight.sum())
    mass = integrate.quad(law.pdf, low, high)[0]  # type: ignore[attr-defined]
    moments = [
        integrate.quad(lambda x, k=k: x**k * law.pdf(x), low, high)[0] / mass  # type: ignore
        for k in (1, 2)
    ]
    return moments[0], moments[1] - moments[0] ** 2


def exponential_characteristic(
    t: Array, rate: float, low: float, high: float, outside: str
) -> Array:
    """E exp(it·t̂) in closed form for exponential records."""
    inside = (
        rate / (rate - 1j * t) * (np.exp((1j * t - rate) * low) - np.exp((1j * t - rate) * high))
    )
    below, above = 1 - np.exp(-rate * low), np.exp(-rate * high)
    if outside == "drop":
        return inside + below + above
    return inside + below * np.exp(1j * t * low) + above * np.exp(1j * t * high)


def exponential_density(
    rates: Array, z: float, n: int, scale: float, interval: tuple[float, float], outside: str,
    shape: float, rate: float, mechanism: str = "laplace",
) -> Array:  # fmt: skip
    """Errata E19 by brute force: p(z | θ) = (1/π) ∫ Re[φ₁ⁿ e^{-itz}] φ_noise dt on a fine grid."""
    t = np.linspace(0, 400 / (interval[1] - interval[0]), 200_001)
    noise = (
        1 / (1 + (scale * t) ** 2) if mechanism == "laplace" else np.exp(-((scale * t) ** 2) / 2)
    )
    found = []
    for r in rates:
        phi = exponential_characteristic(t, r, *interval, outside)
        found.append(np.trapezoid((phi**n * np.exp(-1j * t * z)).real * noise, t) / np.pi)
    return np.array(found) * stats.gamma.pdf(rates, shape, scale=1 / rate)


def share_above(
    split: float, moments: Callable[[Array], tuple[Array, Array]], z: float, n: int, scale: float,
    log_prior: Callable[[Array], Array], ends: tuple[float, float],
) -> float:  # fmt: skip
    """The posterior's share of θ above ``split``, by plain quadrature on 400,000 points.

    The sum is normal, which thousands of records justify; the noise is Laplace.
    """
    theta = np.exp(np.linspace(np.log(ends[0]), np.log(ends[1]), 400_001))
    mean, variance = moments(theta)
    s, x = np.sqrt(n * variance), z - n * mean
    left = -x / scale + special.log_ndtr(x / s - s / scale)
    right = x / scale + special.log_ndtr(-x / s - s / scale)
    log = log_prior(theta) + s**2 / (2 * scale**2) + np.logaddexp(left, right) + np.log(theta)
    weight = np.exp(log - log.max())
    return float(weight[theta > split].sum() / weight.sum())


def dropped_exponential_moments(rate: Array, upper: float) -> tuple[Array, Array]:
    """Mean and variance of what an exponential record adds, if dropped above ``upper``."""
    k = rate * upper
    first = special.gammainc(2, k) / rate
    return first, 2 * special.gammainc(3, k) / rate**2 - first**2


def dropped_poisson_moments(rate: Array, upper: int) -> tuple[Array, Array]:
    """Mean and variance of what a Poisson record adds, if dropped above ``upper``."""
    x = np.arange(upper + 1)
    first, second = np.zeros_like(rate), np.zeros_like(rate)
    for value in x[1:]:
        chance = np.exp(value * np.log(rate) - rate - special.gammaln(value + 1))
        first, second = first + value * chance, second + value**2 * chance
    return first, second - first**2


def normal_likelihood(
    rng: np.random.Generator, mean: float, variance: float, interval: tuple[float, float],
    clamp: bool, z: Array, n: int, scale: float, mechanism: str, size: int,
) -> tuple[float, float]:  # fmt: skip
    """Two noisy sums of n normal records, by simulating the sums: the mean of K and its error."""
    x = rng.normal(mean, np.sqrt(variance), (size, n))
    kept = np.clip(x, *interval) if clamp else x * ((x >= interval[0]) & (x <= interval[1]))
    sums = np.stack([kept.sum(axis=1), (kept**2).sum(axis=1)], axis=1)
    weight = noise_density(z - sums, scale, mechanism).prod(axis=1)
    return float(weight.mean()), float(weight.std() / np.sqrt(size))


def dirichlet_moments(
    z: Sequence[float], n: int, scale: float, alpha: Sequence[float]
) -> tuple[Array, Array]:
    """Three categories: every possible table of counts, one by one."""
    a = np.array(alpha)
    total = a.sum() + n
    weights, first, second = 0.0, np.zeros(3), np.zeros(3)
    for i in range(n + 1):
        for j in range(n + 1 - i):
            s = np.array([i, j, n - i - j])
            log = (special.gammaln(s + a) - special.gammaln(s + 1)).sum()
            weight = np.exp(log - np.abs(np.array(z) - s).sum() / scale)
            p = s + a
            weights += weight
            first += weight * p / total
            second += weight * p * (p + 1) / (total * (total + 1))
    mean = first / weights
    return mean, np.sqrt(second / weights - mean**2)


# -- the thesis' samplers, one chain at a time -----------------------------------------------------


def mixture_variance(rng: np.random.Generator, residual: float, scale: float) -> float:
    """Line 6 of Algorithm 3: 1/σ² ~ InverseGaussian(1/(b|y-s|), 1/b²)."""
    return 1 / rng.wald(1 / (scale * max(abs(residual), 1e-12)), 1 / scale**2)


def algorithm_3_bernoulli(
    rng: np.random.Generator, y: float, n: int, scale: float, alpha: float, beta: float, sweeps: int
) -> Array:
    """Bounded statistics, as printed; s is redrawn until it is a possible count."""
    theta, variance = rng.beta(alpha, beta), 2 * scale**2
    kept = np.empty(sweeps)
    for i in range(sweeps):
        mean, spread = n * theta, n * theta * (1 - theta)
        precision = 1 / spread + 1 / variance
        s = -1.0
        while not 0 <= s <= n:
            s = rng.normal((mean / spread + y / variance) / precision, precision**-0.5)
        theta = rng.beta(alpha + s, beta + n - s)
        variance = mixture_variance(rng, y - s, scale)
        kept[i] = theta
    return kept


def exponential_regions(rate: float, a: float, b: float) -> list[tuple[float, float, float]]:
    """(q, μ̂, Σ̂) of the records below a, in [a, b], and above b."""
    found = []
    for v, w in ((0.0, a), (a, b), (b, np.inf)):
        q = np.exp(-rate * v) - np.exp(-rate * w)
        if q < 1e-300:
            found.append((0.0, 0.0, 0.0))
            continue
        # ∫ (x - v) and ∫ (x - v)² of the density on [v, w], written from v on.
        c = w - v
        tail = np.exp(-rate * c) if np.isfinite(c) else 0.0
        far = c * tail if np.isfinite(c) else 0.0
        far2 = c * c * tail if np.isfinite(c) else 0.0
        first = (1 - tail) / rate - far
        second = 2 * first / rate - far2
        first, second = first / (1 - tail), second / (1 - tail)
        found.append((q, v + first, second - first**2))
    return found


def algorithm_2_exponential(
    rng: np.random.Generator, y: float, n: int, scale: float, interval: tuple[float, float],
    shape: float, rate: float, sweeps: int, joint: bool = True,
) -> Array:  # fmt: skip
    """Truncated statistics, corrected (errata E14); ``joint=False`` keeps regions independent."""
    theta, variance = rng.gamma(shape, 1 / rate), 2 * scale**2
    kept = np.empty(sweeps)
    for i in range(sweeps):
        regions = exponential_regions(theta, *interval)
        mean = n * np.array([q * m for q, m, _ in regions])
        own = n * np.array([q * v + q * (1 - q) * m * m for q, m, v in regions])
        cross = -n * np.outer([q * m for q, m, _ in regions], [q * m for q, m, _ in regions])
        covariance = np.where(np.eye(3) > 0, np.diag(own), cross if joint else 0.0)
        pull = covariance[:, 1] / (covariance[1, 1] + variance)
        centre = mean + pull * (y - mean[1])
        spread = covariance - np.outer(pull, covariance[1])
        values, vectors = np.linalg.eigh(spread)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        s = -1.0
        while s <= 0:
            drawn = centre + root @ rng.standard_normal(3)
            s = drawn.sum()
        theta = rng.gamma(shape + n, 1 / (rate + s))
        variance = mixture_variance(rng, y - drawn[1], scale)
        kept[i] = theta
    return kept


Sampler = Callable[..., Array]

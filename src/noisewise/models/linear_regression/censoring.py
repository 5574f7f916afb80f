"""Columns whose bounds cut values off: from the moments of clamped records to the law behind them.

A record w* ~ N(μ, Σ) is clamped to w before it is summed, so the released sums are of w. The
sampler of ``exact.py`` takes w for normal, which is wrong about what its moments mean, and every
draw of mean m and covariance C of the clamped records is turned into the (μ, Σ) that has those
clamped moments. Clamped records also scatter less than normal ones: intervals are up to a fifth too
wide where a fifth of the records is cut, and twice where half of them is.

*Each column* (J. Tobin, "Estimation of relationships for limited dependent variables", Econometrica
26, 1958). In the box, with α = (-1 - μ)/σ, β = (1 - μ)/σ and P = Φ(β) - Φ(α) the share inside,

    E w  = μ P + σ (φ(α) - φ(β)) - Φ(α) + 1 - Φ(β)
    E w² = (μ² + σ²) P + σ ((μ - 1) φ(α) - (μ + 1) φ(β)) + Φ(α) + 1 - Φ(β)

solved for (μ, log σ) by damped Newton steps. At an end that does not cut, Φ and φ are left out.

*Each pair.* With orthonormal Hermite polynomials ψ_k, F. G. Mehler's formula (1866) gives

    Cov(clamp u, clamp v) = Σ_k ρ^k A_k B_k,   A_k = E[clamp(u) ψ_k],
    A_1 = σ P,   A_k = σ (ψ_(k-2)(α) φ(α) - ψ_(k-2)(β) φ(β)) / √(k (k - 1)),

and R. Price's theorem (1958) that it increases with ρ. A column that is not cut has A_1 = σ alone,
so beside it the covariance is divided by the share inside: C. Stein's lemma.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

KNOWING_CUTS = ("exact", "naive")
"""Methods whose results are of values before clamping, where bounds cut them off."""
TERMS = 48
"""Terms of Mehler's series (chosen: the rest is below 1e-4 of σ_u σ_v even where |ρ| is one)."""
NEWTON_STEPS = 60
"""Newton steps for a column (chosen: a dozen suffice unless nearly all records are cut)."""
BISECTIONS = 40
"""Halvings of the interval of a correlation (chosen: to twelve digits)."""
TOLERANCE = 1e-10
"""Error of the clamped moments at which a column is solved (chosen)."""
LEAST_RATIO = 0.004
"""Least square of a column's mean distance from its one cut, relative to its variance (chosen): of
less, fewer than a hundredth of the records lie inside, and what is beyond cannot be told."""
LARGEST_RATIO = 0.97
"""Largest variance of a column cut at both ends, relative to one of records at the ends alone
(chosen, likewise)."""
LEAST_EIGENVALUE = 1e-9
"""Floor of the eigenvalues of a correlation matrix that was put together pair by pair (chosen)."""
MAX_DRAWS_AT_ONCE = 2**16
"""Draws that are turned at once (chosen: some 100 MB for four columns)."""


class Cuts(NamedTuple):
    """Which ends of the box cut values off: (column,) arrays, the response last."""

    lower: np.ndarray
    upper: np.ndarray


class _Margin(NamedTuple):
    """Clamped moments of a column, and their slopes by μ and by log σ."""

    mean: np.ndarray
    variance: np.ndarray
    mean_slopes: tuple[np.ndarray, np.ndarray]
    variance_slopes: tuple[np.ndarray, np.ndarray]


def _end(
    bound: float, mu: np.ndarray, sigma: np.ndarray, cuts: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the standardised end, its φ, and the share beyond it; none where it does not cut."""
    if not cuts:
        zero = np.zeros_like(mu)
        return zero, zero, zero
    at = (bound - mu) / sigma
    return at, np.exp(-0.5 * at**2) / np.sqrt(2 * np.pi), ndtr(bound * -at)


def clamped_margin(mu: np.ndarray, sigma: np.ndarray, lower: bool, upper: bool) -> _Margin:
    """Return mean and variance of a clamped normal column, with their slopes."""
    alpha, phi_a, below = _end(-1.0, mu, sigma, lower)
    beta, phi_b, above = _end(1.0, mu, sigma, upper)
    inside, tilt = 1 - below - above, phi_a - phi_b
    curve = inside + alpha * phi_a - beta * phi_b
    mean = mu * inside + sigma * tilt - below + above
    # About the mean, so that a small variance far from zero keeps its digits.
    off = mu - mean
    variance = (
        (off**2 + sigma**2) * inside
        + sigma * ((off - 1 - mean) * phi_a - (off + 1 - mean) * phi_b)
        + (1 + mean) ** 2 * below
        + (1 - mean) ** 2 * above
    )
    return _Margin(
        mean,
        variance,
        (inside, sigma * tilt),
        (2 * (off * inside + sigma * tilt), 2 * sigma * (off * tilt + sigma * curve)),
    )


def unclamped_margin(
    mean: np.ndarray, variance: np.ndarray, lower: bool, upper: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return μ and σ of the normal column whose clamped mean and variance are given."""
    if not (lower or upper):
        return mean, np.sqrt(variance)
    mean, variance = _possible(mean, variance, lower, upper)
    mu, sigma = mean.copy(), np.sqrt(variance)
    size = np.sqrt(variance)

    def misfit(at: _Margin) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        first, second = (at.mean - mean) / size, at.variance / variance - 1
        return first, second, np.maximum(np.abs(first), np.abs(second))

    step = np.ones_like(mean)
    at = clamped_margin(mu, sigma, lower, upper)
    first, second, error = misfit(at)
    for _ in range(NEWTON_STEPS):
        if (error < TOLERANCE).all():
            break
        (a, b), (c, d) = at.mean_slopes, at.variance_slopes
        a, b, c, d = a / size, b / size, c / variance, d / variance
        determinant = a * d - b * c
        determinant = np.where(np.abs(determinant) < 1e-300, 1e-300, determinant)
        move_mu = (b * second - d * first) / determinant
        move_log = (c * first - a * second) / determinant
        # No further than a deviation's multiple at once: far out the moments are flat.
        short = step / np.maximum(1.0, np.maximum(np.abs(move_mu) / (2 * sigma), np.abs(move_log)))
        next_mu, next_sigma = mu + short * move_mu, sigma * np.exp(short * move_log)
        there = clamped_margin(next_mu, next_sigma, lower, upper)
        *_, new_error = misfit(there)
        better = new_error < error
        mu, sigma = np.where(better, next_mu, mu), np.where(better, next_sigma, sigma)
        step = np.where(better, np.minimum(1.0, 2 * step), step / 4)
        at = clamped_margin(mu, sigma, lower, upper)
        first, second, error = misfit(at)
    return mu, sigma


def _possible(
    mean: np.ndarray, variance: np.ndarray, lower: bool, upper: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest mean and variance that a clamped normal column can have."""
    edge = 1 - 1e-6
    mean = np.clip(mean, -edge if lower else -np.inf, edge if upper else np.inf)
    if lower and upper:
        return mean, np.minimum(variance, LARGEST_RATIO * (1 - mean**2))
    # Nearly all records at the one end: their distance from it is mostly zero.
    distance = 1 - mean if upper else 1 + mean
    return mean, np.minimum(variance, distance**2 / LEAST_RATIO)


def hermite_coefficients(mu: np.ndarray, sigma: np.ndarray, lower: bool, upper: bool) -> np.ndarray:
    """Return A_1 … A_TERMS of a clamped column, the term first."""
    alpha, phi_a, below = _end(-1.0, mu, sigma, lower)
    beta, phi_b, above = _end(1.0, mu, sigma, upper)
    terms = [sigma * (1 - below - above)]
    low, high = (np.zeros_like(mu), phi_a), (np.zeros_like(mu), phi_b)
    for k in range(2, TERMS + 1):
        terms.append(sigma * (low[1] - high[1]) / np.sqrt(k * (k - 1)))
        # ψ_(k-1) from ψ_(k-2) and ψ_(k-3), each times the density.
        low, high = (
            (now, (x * now - np.sqrt(k - 2) * before) / np.sqrt(k - 1))
            for x, (before, now) in ((alpha, low), (beta, high))
        )
    return np.stack(terms)


def unclamped_correlation(covariance: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return ρ with Σ_k ρ^k products_k = covariance; ±1 where none is large enough."""
    if not products[1:].any():
        return np.asarray(np.clip(covariance / products[0], -1, 1))
    low, high = -np.ones_like(covariance), np.ones_like(covariance)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        value = products[-1]
        for term in products[-2::-1]:
            value = term + middle * value
        below = middle * value < covariance
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def unclamped_law(
    mean: np.ndarray, covariance: np.ndarray, cuts: Cuts
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of the records before they were clamped.

    Args:
        mean: of clamped records in the box (…, column).
        covariance: of clamped records (…, column, column).
        cuts: which ends cut.
    """
    q = mean.shape[-1]
    ends = list(zip(cuts.lower.tolist(), cuts.upper.tolist(), strict=True))
    margins = [unclamped_margin(mean[..., j], covariance[..., j, j], *ends[j]) for j in range(q)]
    mu, sigma = (np.stack(side, axis=-1) for side in zip(*margins, strict=True))
    terms = [hermite_coefficients(*margins[j], *ends[j]) for j in range(q)]
    correlation = np.zeros_like(covariance)
    correlation[..., range(q), range(q)] = 1.0
    for i in range(q):
        for j in range(i):
            rho = unclamped_correlation(covariance[..., i, j], terms[i] * terms[j])
            correlation[..., i, j] = correlation[..., j, i] = rho
    correlation = _positive_definite(correlation)
    return mu, correlation * sigma[..., :, None] * sigma[..., None, :]


def _positive_definite(correlation: np.ndarray) -> np.ndarray:
    """Return the matrix, mended where its pairs contradict each other."""
    values, vectors = np.linalg.eigh(correlation)
    bad = values[..., 0] < LEAST_EIGENVALUE
    if not bad.any():
        return correlation
    values, vectors = np.maximum(values[bad], LEAST_EIGENVALUE), vectors[bad]
    mended = (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    size = np.sqrt(np.diagonal(mended, axis1=-2, axis2=-1))
    correlation = correlation.copy()
    correlation[bad] = mended / size[..., :, None] / size[..., None, :]
    return correlation


def unclamped_parameters(
    parameters: np.ndarray, x_mean: np.ndarray, x_covariance: np.ndarray, cuts: Cuts
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (θ, σ²), mean and covariance of x before clamping, all in the box.

    Args:
        parameters: slopes, intercept and σ² of clamped records (…, parameter).
        x_mean: of clamped covariates (…, covariate).
        x_covariance: of clamped covariates (…, covariate, covariate).
        cuts: which ends cut.
    """
    d, batch = x_mean.shape[-1], x_mean.shape[:-1]
    parameters, x_mean = parameters.reshape(-1, d + 2), x_mean.reshape(-1, d)
    x_covariance = x_covariance.reshape(-1, d, d)
    slabs = [slice(i, i + MAX_DRAWS_AT_ONCE) for i in range(0, len(x_mean), MAX_DRAWS_AT_ONCE)]
    parts = [_unclamped(parameters[s], x_mean[s], x_covariance[s], cuts) for s in slabs]
    drawn, mean, law = (np.concatenate(side) for side in zip(*parts, strict=True))
    return drawn.reshape(*batch, d + 2), mean.reshape(*batch, d), law.reshape(*batch, d, d)


def _unclamped(
    parameters: np.ndarray, x_mean: np.ndarray, x_covariance: np.ndarray, cuts: Cuts
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same of draws (draw, …) that fit memory."""
    d = x_mean.shape[-1]
    slopes, intercept, variance = parameters[..., :d], parameters[..., d], parameters[..., d + 1]
    both = np.einsum("...ij,...j->...i", x_covariance, slopes)
    whole = np.empty((*x_mean.shape[:-1], d + 1, d + 1))
    whole[..., :d, :d] = x_covariance
    whole[..., :d, d] = whole[..., d, :d] = both
    whole[..., d, d] = variance + np.sum(slopes * both, axis=-1)
    level = intercept + np.sum(slopes * x_mean, axis=-1)
    mean = np.concatenate([x_mean, level[..., None]], axis=-1)
    mu, law = unclamped_law(mean, whole, cuts)
    slopes = np.linalg.solve(law[..., :d, :d], law[..., :d, d, None])[..., 0]
    intercept = mu[..., d] - np.sum(slopes * mu[..., :d], axis=-1)
    variance = law[..., d, d] - np.sum(slopes * law[..., :d, d], axis=-1)
    drawn = np.concatenate([slopes, intercept[..., None], variance[..., None]], axis=-1)
    return drawn, mu[..., :d], law[..., :d, :d]

"""Conjugate Bayesian regression in every partition at once.

In coordinates centred at the partition's mean (slopes β, level γ = α + x̄ᵀβ) the design's Gram
matrix is D = diag(C_xx, n). With the prior's share sΛ in these coordinates and likelihood power w

    Λ_n = wD + sΛ,   m = Λ_n⁻¹ (w (C_xy, n ȳ) + sΛμ),   a_n = w n/2 + s a,
    b_n = s b + ½ [ w ‖y - Xm‖² + (m - μ)ᵀ sΛ (m - μ) ],

and a coefficient cᵀ(β, γ) is Student's t with 2a_n degrees of freedom, location cᵀm and squared
scale (b_n/a_n) cᵀΛ_n⁻¹c. A partition that cannot be fitted (rank-deficient, or not finite) is
marked; its answer is a fixed point of the lattice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from noisewise.models.partition.moments import Moments
from noisewise.models.partition.prior import Prior, Zellner

_SINGULAR = 1e-11
"""Least eigenvalue, relative to a unit diagonal, that float64 sums can tell from zero."""


@dataclass(frozen=True)
class Marginals:
    """One coefficient's posterior in each partition: location, scale, degrees of freedom."""

    location: np.ndarray
    scale: np.ndarray
    freedom: np.ndarray
    usable: np.ndarray

    def probabilities(self, at: tuple[float, ...]) -> np.ndarray:
        """Pr(coefficient ≤ b), shape (partitions, cutoffs); NaN where there is no posterior."""
        with np.errstate(all="ignore"):
            z = (np.array(at) - self.location[:, None]) / self.scale[:, None]
            found = special.stdtr(self.freedom[:, None], z)
        return np.where(self.usable[:, None], found, np.nan)

    def quantiles(self, p: float) -> np.ndarray:
        """The b with Pr(coefficient ≤ b) = p; NaN where there is no posterior."""
        with np.errstate(all="ignore"):
            found = self.location + self.scale * special.stdtrit(self.freedom, p)
        return np.where(self.usable & np.isfinite(found), found, np.nan)


def fit(moments: Moments, coefficient: int, prior: Prior, power: float, share: float) -> Marginals:
    """The coefficient's posterior in every partition; the intercept is the last coefficient."""
    with np.errstate(all="ignore"):
        return _fit(moments, coefficient, prior, power, share)


def _fit(moments: Moments, coefficient: int, prior: Prior, power: float, share: float) -> Marginals:
    n, d = moments.sizes.astype(float), moments.means.shape[1] - 1
    x_mean, y_mean = moments.means[:, :d], moments.means[:, d]
    gram = _gram(moments.products[:, :d, :d], n)
    right = np.concatenate([moments.products[:, :d, d], (n * y_mean)[:, None]], axis=1)
    mean, extra, shape, rate = _prior(prior, share, gram, x_mean)
    covariance, usable = _inverse(power * gram + extra)
    m = _times(covariance, power * right + _times(extra, mean))
    a = power * n / 2 + shape
    b = rate + (power * _squares(moments, m, d) + _form(extra, m - mean)) / 2
    c = _functional(coefficient, x_mean)
    scale = np.sqrt(b / a * _form(covariance, c))
    location = np.sum(c * m, axis=1)
    usable = usable & (a > 0) & np.isfinite(location) & np.isfinite(scale)
    return Marginals(location, scale, 2 * a, usable)


def _gram(slopes: np.ndarray, n: np.ndarray) -> np.ndarray:
    """diag(C_xx, n)."""
    d = slopes.shape[1]
    gram = np.zeros((len(n), d + 1, d + 1))
    gram[:, :d, :d] = slopes
    gram[:, d, d] = n
    return gram


def _prior(
    prior: Prior, share: float, gram: np.ndarray, x_mean: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """The partition's share of the prior: mean and precision in centred coordinates, a, b."""
    count, size = gram.shape[:2]
    if isinstance(prior, Zellner):
        # M copies of the partition's Gram matrix stand for the table's.
        g = float("nan") if prior.g is None else prior.g
        precision = share * count / g * gram
        precision[:, -1, -1] = 0.0
        # γ is flat, so integrating it out leaves σ² half a degree of freedom less.
        return np.zeros((count, size)), precision, -0.5, 0.0
    # γ = α + x̄ᵀβ: precision T⁻ᵀ Λ T⁻¹ with T⁻¹ = [[I, 0], [-x̄ᵀ, 1]].
    back = np.tile(np.eye(size), (count, 1, 1))
    back[:, -1, :-1] = -x_mean
    mean = np.tile(prior.mean, (count, 1))
    mean[:, -1] += x_mean @ prior.mean[:-1]
    precision = share * np.swapaxes(back, 1, 2) @ prior.precision @ back
    return mean, precision, share * prior.shape, share * prior.rate


def _inverse(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Batched inverse at unit diagonal, and where there is one; elsewhere the identity."""
    root = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    outer = root[:, :, None] * root[:, None, :]
    scaled = matrices / outer
    usable = np.isfinite(scaled).all(axis=(1, 2))
    identity = np.eye(matrices.shape[1])
    scaled = np.where(usable[:, None, None], scaled, identity)
    usable = usable & (np.linalg.eigvalsh(scaled)[:, 0] > _SINGULAR)
    inverse = np.linalg.inv(np.where(usable[:, None, None], scaled, identity))
    return np.where(usable[:, None, None], inverse / outer, identity), usable


def _squares(moments: Moments, m: np.ndarray, d: int) -> np.ndarray:
    """‖y - Xm‖², never below zero."""
    slopes, products = m[:, :d], moments.products
    fitted = _form(products[:, :d, :d], slopes) - 2 * np.sum(slopes * products[:, :d, d], axis=1)
    level = moments.sizes * (moments.means[:, d] - m[:, d]) ** 2
    return np.asarray(np.maximum(products[:, d, d] + fitted, 0) + level)


def _functional(coefficient: int, x_mean: np.ndarray) -> np.ndarray:
    """A slope, or the intercept α = γ - x̄ᵀβ."""
    count, d = x_mean.shape
    if coefficient == d:
        return np.concatenate([-x_mean, np.ones((count, 1))], axis=1)
    return np.tile(np.eye(d + 1)[coefficient], (count, 1))


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def _form(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(vectors * _times(matrices, vectors), axis=1))

"""Conjugate Bayesian regression in every partition at once, and the priors it takes.

A prior counts as pseudo-observations. With M partitions and likelihood power w, partition j has

    precision  w X_jᵀX_j + s Λ,   shape  w n_j/2 + s a,   rate  … + s b,

s the share. s = w/M: the prior's weight against the likelihood is that of one M-th, so that all
partitions together carry the prior once (errata E16); for quantiles w = M, so s = 1. s = w is the
thesis' way with probabilities, and carries the prior M times.

Zellner's g-prior, slopes ~ N(0, g σ² C⁻¹), C the cross-products of the centred covariates, is flat
in the intercept, so that nothing depends on where the columns' zeros are. In partition j, M C_j
stands for C: with w = 1 and s = 1/M its precision is C_j/g, which sums to C/g.

In coordinates centred at the partition's mean (slopes β, level γ = α + x̄ᵀβ) the design's Gram
matrix is D = diag(C_xx, n). With the prior's share sΛ in these coordinates and likelihood power w

    Λ_n = wD + sΛ,   m = Λ_n⁻¹ (w (C_xy, n ȳ) + sΛμ),   a_n = w n/2 + s a,
    b_n = s b + ½ [ w ‖y - Xm‖² + (m - μ)ᵀ sΛ (m - μ) ],

and a coefficient cᵀ(β, γ) is Student's t with 2a_n degrees of freedom, location cᵀm and squared
scale (b_n/a_n) cᵀΛ_n⁻¹c. A partition that cannot be fitted (rank-deficient, or not finite) is
marked; its answer is a fixed point of the lattice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from noisewise.artifact import ArgumentError
from noisewise.models.partition.partition_moments import PartitionMoments
from noisewise.privacy.arguments import positive, shown

ACCEPTED_PRIORS = (
    "prior: must be nw.priors.NormalInverseGamma(mean, precision, shape, rate) or "
    "nw.release.Zellner(g)"
)
"""Begins the refusal of anything else."""
LEAST_SCALED_EIGENVALUE = 1e-11
"""Relative to a unit diagonal: less, float64 sums cannot tell from zero."""


@dataclass(frozen=True)
class Zellner:
    """Slopes ~ N(0, g σ² C⁻¹), C the centred covariates' cross-products; p(α, σ²) ∝ 1/σ².

    Without a ``g``, it is the public number of records.

    Example:
        >>> import noisewise as nw
        >>> nw.release.Zellner().settled(500)
        Zellner(g=500.0)
    """

    g: float | None = None

    def __post_init__(self) -> None:
        if self.g is not None:
            object.__setattr__(self, "g", positive(self.g, "prior: g"))

    def settled(self, rows: int) -> Zellner:
        """Return the prior with its g: the public number of records unless it was given."""
        return Zellner(float(rows)) if self.g is None else self

    def model_entries(self) -> dict[str, Any]:
        """Return the prior as entries of the release file."""
        return {"prior": "zellner", **({} if self.g is None else {"prior_g": self.g})}


@dataclass(frozen=True, eq=False)
class NormalInverseGammaPrior:
    """θ | σ² ~ N(mean, σ² precision⁻¹), σ² ~ InverseGamma(shape, rate); intercept last."""

    mean: np.ndarray
    precision: np.ndarray
    shape: float
    rate: float

    def settled(self, rows: int) -> NormalInverseGammaPrior:
        """Return the prior itself, which does not depend on the number of records."""
        return self

    def model_entries(self) -> dict[str, Any]:
        """Return the prior as entries of the release file; texts that read back exactly."""
        return {
            "prior": "normal-inverse-gamma",
            "prior_mean": tuple(_row([m]) for m in self.mean),
            "prior_precision": tuple(_row(row) for row in self.precision),
            "prior_shape": self.shape,
            "prior_rate": self.rate,
        }


RegressionPrior = Zellner | NormalInverseGammaPrior
"""What a partition can be fitted with."""


def _row(values: Iterable[float]) -> str:
    return " ".join(repr(float(v)) for v in values)


def prior_of(value: object, coefficients: int) -> RegressionPrior:
    """Check the owner's prior: Zellner's, or anything with a normal-inverse-gamma's four fields."""
    if value is None:
        return Zellner()
    if isinstance(value, Zellner):
        return value
    fields = ("mean", "precision", "shape", "rate")
    if not all(hasattr(value, name) for name in fields):
        raise ArgumentError(f"{ACCEPTED_PRIORS}, not {shown(value)}")
    mean = _finite(getattr(value, "mean"), "mean", (coefficients,))  # noqa: B009
    precision = _finite(getattr(value, "precision"), "precision", (coefficients,) * 2)  # noqa: B009
    if not np.allclose(precision, precision.T) or np.linalg.eigvalsh(precision)[0] <= 0:
        raise ArgumentError("prior: precision must be symmetric and positive definite")
    shape, rate = (positive(getattr(value, name), f"prior: {name}") for name in fields[2:])
    return NormalInverseGammaPrior(mean, precision, shape, rate)


def _finite(value: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return finite numbers of that shape, or refuse them by the argument's name."""
    try:
        array = np.array(value, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"prior: {name} must be numbers") from None
    if array.shape != shape or not all(map(math.isfinite, array.ravel())):
        wanted = " × ".join(map(str, shape))
        raise ArgumentError(
            f"prior: {name} must be {wanted} finite numbers: the slopes in the order of x, "
            "then the intercept"
        )
    return array


@dataclass(frozen=True)
class CoefficientPosteriors:
    """One coefficient's posterior in each partition: location, scale, degrees of freedom."""

    location: np.ndarray
    scale: np.ndarray
    freedom: np.ndarray
    usable: np.ndarray

    def probabilities(self, at: tuple[float, ...]) -> np.ndarray:
        """Return Pr(coefficient ≤ b) (partition, cutoff); NaN where there is no posterior."""
        with np.errstate(all="ignore"):
            z = (np.array(at) - self.location[:, None]) / self.scale[:, None]
            values = special.stdtr(self.freedom[:, None], z)
        return np.where(self.usable[:, None], values, np.nan)

    def quantiles(self, p: float) -> np.ndarray:
        """Return the b with Pr(coefficient ≤ b) = p; NaN where there is no posterior."""
        with np.errstate(all="ignore"):
            values = self.location + self.scale * special.stdtrit(self.freedom, p)
        return np.where(self.usable & np.isfinite(values), values, np.nan)


def fit(
    moments: PartitionMoments, coefficient: int, prior: RegressionPrior, power: float, share: float
) -> CoefficientPosteriors:
    """Return a coefficient's posterior in every partition.

    Args:
        moments: of the covariates and the response, by partition.
        coefficient: its position; the intercept is the last.
        prior: of all coefficients and the error variance, its g settled.
        power: w, to which the partitions' likelihoods are raised.
        share: s, the share of the prior that each partition carries.
    """
    with np.errstate(all="ignore"):
        return _fit(moments, coefficient, prior, power, share)


def _fit(
    moments: PartitionMoments, coefficient: int, prior: RegressionPrior, power: float, share: float
) -> CoefficientPosteriors:
    n, d = moments.sizes.astype(float), moments.means.shape[1] - 1
    x_mean, y_mean = moments.means[:, :d], moments.means[:, d]
    gram = _gram(moments.products[:, :d, :d], n)
    right = np.concatenate([moments.products[:, :d, d], (n * y_mean)[:, None]], axis=1)
    mean, extra, shape, rate = _prior_share(prior, share, gram, x_mean)
    covariance, usable = _inverse(power * gram + extra)
    m = _times(covariance, power * right + _times(extra, mean))
    a = power * n / 2 + shape
    b = rate + (power * _squares(moments, m, d) + _form(extra, m - mean)) / 2
    c = _functional(coefficient, x_mean)
    scale = np.sqrt(b / a * _form(covariance, c))
    location = np.sum(c * m, axis=1)
    usable = usable & (a > 0) & np.isfinite(location) & np.isfinite(scale)
    return CoefficientPosteriors(location, scale, 2 * a, usable)


def _gram(slopes: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return diag(C_xx, n)."""
    d = slopes.shape[1]
    gram = np.zeros((len(n), d + 1, d + 1))
    gram[:, :d, :d] = slopes
    gram[:, d, d] = n
    return gram


def _prior_share(
    prior: RegressionPrior, share: float, gram: np.ndarray, x_mean: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Return the partitions' share of the prior: mean, precision (both centred), a and b."""
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
    """Return inverses, taken at unit diagonal, and where they exist; elsewhere the identity."""
    root = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    outer = root[:, :, None] * root[:, None, :]
    scaled = matrices / outer
    usable = np.isfinite(scaled).all(axis=(1, 2))
    identity = np.eye(matrices.shape[1])
    scaled = np.where(usable[:, None, None], scaled, identity)
    usable = usable & (np.linalg.eigvalsh(scaled)[:, 0] > LEAST_SCALED_EIGENVALUE)
    inverse = np.linalg.inv(np.where(usable[:, None, None], scaled, identity))
    return np.where(usable[:, None, None], inverse / outer, identity), usable


def _squares(moments: PartitionMoments, m: np.ndarray, d: int) -> np.ndarray:
    """Return ‖y - Xm‖², never below zero."""
    slopes, products = m[:, :d], moments.products
    fitted = _form(products[:, :d, :d], slopes) - 2 * np.sum(slopes * products[:, :d, d], axis=1)
    level = moments.sizes * (moments.means[:, d] - m[:, d]) ** 2
    return np.asarray(np.maximum(products[:, d, d] + fitted, 0) + level)


def _functional(coefficient: int, x_mean: np.ndarray) -> np.ndarray:
    """Return c of a slope, or of the intercept α = γ - x̄ᵀβ."""
    count, d = x_mean.shape
    if coefficient == d:
        return np.concatenate([-x_mean, np.ones((count, 1))], axis=1)
    return np.tile(np.eye(d + 1)[coefficient], (count, 1))


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def _form(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(vectors * _times(matrices, vectors), axis=1))

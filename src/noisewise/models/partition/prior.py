"""Conjugate priors, and the share of them that each partition carries.

A prior counts as pseudo-observations. With M partitions and likelihood power w, partition j has

    precision  w X_jᵀX_j + s Λ,   shape  w n_j/2 + s a,   rate  … + s b,

s the share. s = w/M: the prior's weight against the likelihood is that of one M-th, so that all
partitions together carry the prior once (errata E16); for quantiles w = M, so s = 1. s = w is the
thesis' way with probabilities, and carries the prior M times.

Zellner's g-prior, slopes ~ N(0, g σ² C⁻¹), C the cross-products of the centred covariates, is flat
in the intercept, so that nothing depends on where the columns' zeros are. In partition j, M C_j
stands for C: with w = 1 and s = 1/M its precision is C_j/g, which sums to C/g.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.privacy.values import positive, shown

ACCEPTED = (
    "prior: must be nw.priors.NormalInverseGamma(mean, precision, shape, rate) or "
    "nw.release.Zellner(g)"
)


@dataclass(frozen=True)
class Zellner:
    """Slopes ~ N(0, g σ² C⁻¹), C the centred covariates' cross-products; p(α, σ²) ∝ 1/σ².

    Without a ``g``, it is the public number of records.
    """

    g: float | None = None

    def __post_init__(self) -> None:
        if self.g is not None:
            object.__setattr__(self, "g", positive(self.g, "prior: g"))

    def settled(self, rows: int) -> Zellner:
        """With its g."""
        return Zellner(float(rows)) if self.g is None else self

    def words(self) -> dict[str, Any]:
        """For the release file."""
        return {"prior": "zellner", **({} if self.g is None else {"prior_g": self.g})}


@dataclass(frozen=True, eq=False)
class Conjugate:
    """θ | σ² ~ N(mean, σ² precision⁻¹), σ² ~ InverseGamma(shape, rate); intercept last."""

    mean: np.ndarray
    precision: np.ndarray
    shape: float
    rate: float

    def settled(self, rows: int) -> Conjugate:
        """It does not depend on the number of records."""
        return self

    def words(self) -> dict[str, Any]:
        """For the release file: numbers as texts that read back exactly, a row each."""
        return {
            "prior": "normal-inverse-gamma",
            "prior_mean": tuple(_row([m]) for m in self.mean),
            "prior_precision": tuple(_row(row) for row in self.precision),
            "prior_shape": self.shape,
            "prior_rate": self.rate,
        }


Prior = Zellner | Conjugate


def _row(values: Iterable[float]) -> str:
    return " ".join(repr(float(v)) for v in values)


def prior_of(value: object, coefficients: int) -> Prior:
    """The owner's prior: anything with the four fields of a normal-inverse-gamma, or Zellner's."""
    if value is None:
        return Zellner()
    if isinstance(value, Zellner):
        return value
    fields = ("mean", "precision", "shape", "rate")
    if not all(hasattr(value, name) for name in fields):
        raise ArgumentError(f"{ACCEPTED}, not {shown(value)}")
    mean = _finite(getattr(value, "mean"), "mean", (coefficients,))  # noqa: B009
    precision = _finite(getattr(value, "precision"), "precision", (coefficients,) * 2)  # noqa: B009
    if not np.allclose(precision, precision.T) or np.linalg.eigvalsh(precision)[0] <= 0:
        raise ArgumentError("prior: precision must be symmetric and positive definite")
    shape, rate = (positive(getattr(value, name), f"prior: {name}") for name in fields[2:])
    return Conjugate(mean, precision, shape, rate)


def _finite(value: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
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

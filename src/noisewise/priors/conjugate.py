"""Priors of linear regression and of the one-column exponential families; numpy only.

Regression, in anyone's units:

    Response:    σ² ~ InverseGamma(shape, rate),  θ | σ² ~ N(mean, σ² precision⁻¹)   (errata E13).
    Covariates:  τ² ~ InverseWishart(scale, df),  μ | τ² ~ N(mean, τ²/kappa).

Both are conjugate, and closed under affine changes of units: so priors in the user's units reach
the box. ``CovariateMoments`` is a prior over the covariates that is known through its moments
alone, as method ``gibbs-prior`` needs.

One column: Beta(alpha, beta) for probabilities, Dirichlet(alpha) for the probabilities of
categories, Gamma(shape, rate) for rates: density ∝ θ^(shape-1) exp(-rate θ), so the mean is
shape/rate. A normal column takes ``NormalInverseGamma`` with one coefficient, its mean.

Pooled groups: ``Population``, the prior of what the groups share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def _finite(value: object, name: str, ndim: int) -> np.ndarray:
    """Return finite numbers as a read-only array of so many axes, or say which argument is not."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: must be numbers, not {value!r}") from None
    if array.ndim == 0 and ndim > 0:
        array = array.reshape((1,) * ndim)
    if array.ndim != ndim or not np.isfinite(array).all():
        kind = ("a finite number", "a finite vector", "a finite square matrix")[ndim]
        raise ArgumentError(f"{name}: must be {kind}")
    array.flags.writeable = False
    return array


def _positive(value: object, name: str) -> float:
    """Return a finite number above zero, or say which argument is not."""
    number = float(_finite(value, name, 0))
    if number <= 0:
        raise ArgumentError(f"{name}: must be above zero, not {number!r}")
    return number


def _definite(value: object, name: str, size: int) -> np.ndarray:
    """Return a symmetric positive definite matrix of that size, or say which argument is not."""
    matrix = _finite(value, name, 2)
    if matrix.shape != (size, size):
        raise ArgumentError(f"{name}: must be {size} × {size}, to fit the mean of length {size}")
    if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() <= 0:
        raise ArgumentError(f"{name}: must be symmetric and positive definite")
    return matrix


@dataclass(frozen=True, eq=False)
class NormalInverseGamma:
    """Prior of coefficients (slopes in the order of x, intercept last) and error variance.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> prior = nw.priors.NormalInverseGamma(
        ...     mean=np.zeros(2), precision=np.eye(2), shape=2.0, rate=1.0
        ... )
        >>> prior.mapped(2 * np.eye(2), np.ones(2), 0.5).mean.tolist()
        [1.0, 1.0]
    """

    mean: np.ndarray
    precision: np.ndarray
    shape: float
    rate: float

    if TYPE_CHECKING:  # lists are as welcome as arrays; they become arrays below

        def __init__(
            self, mean: ArrayLike, precision: ArrayLike, shape: float, rate: float
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _finite(self.mean, "mean", 1))
        precision = _definite(self.precision, "precision", len(self.mean))
        object.__setattr__(self, "precision", precision)
        object.__setattr__(self, "shape", _positive(self.shape, "shape"))
        object.__setattr__(self, "rate", _positive(self.rate, "rate"))

    def mapped(self, matrix: np.ndarray, offset: np.ndarray, unit: float) -> NormalInverseGamma:
        """Return the prior of ``θ' = matrix θ + offset`` and ``σ'² = σ²/unit²``."""
        inverse = np.linalg.inv(matrix)
        precision = inverse.T @ self.precision @ inverse / unit**2
        return NormalInverseGamma(
            matrix @ self.mean + offset,
            (precision + precision.T) / 2,
            self.shape,
            self.rate / unit**2,
        )


@dataclass(frozen=True, eq=False)
class NormalInverseWishart:
    """Prior of the covariates' mean and covariance.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> prior = nw.priors.NormalInverseWishart(
        ...     mean=np.array([40.0]), kappa=1.0, scale=np.array([[100.0]]), df=3.0
        ... )
        >>> prior.df
        3.0
    """

    mean: np.ndarray
    kappa: float
    scale: np.ndarray
    df: float

    if TYPE_CHECKING:

        def __init__(self, mean: ArrayLike, kappa: float, scale: ArrayLike, df: float) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _finite(self.mean, "mean", 1))
        object.__setattr__(self, "scale", _definite(self.scale, "scale", len(self.mean)))
        object.__setattr__(self, "kappa", _positive(self.kappa, "kappa"))
        object.__setattr__(self, "df", _positive(self.df, "df"))
        if self.df <= len(self.mean) - 1:
            raise ArgumentError(
                f"df: must be above {len(self.mean) - 1} for {len(self.mean)} covariates"
            )

    def mapped(self, centre: np.ndarray, unit: np.ndarray) -> NormalInverseWishart:
        """Return the prior of ``(x - centre)/unit``."""
        return NormalInverseWishart(
            (self.mean - centre) / unit, self.kappa, self.scale / np.outer(unit, unit), self.df
        )


@dataclass(frozen=True)
class Beta:
    """Prior of a probability: α - 1 successes and β - 1 failures more than a uniform prior.

    Example:
        >>> import noisewise as nw
        >>> nw.priors.Beta(2, 3)
        Beta(alpha=2.0, beta=3.0)
    """

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _positive(self.alpha, "alpha"))
        object.__setattr__(self, "beta", _positive(self.beta, "beta"))


@dataclass(frozen=True)
class Gamma:
    """Prior of a rate: mean shape/rate, variance shape/rate².

    Example:
        >>> import noisewise as nw
        >>> nw.priors.Gamma(shape=1, rate=0.5)
        Gamma(shape=1.0, rate=0.5)
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _positive(self.shape, "shape"))
        object.__setattr__(self, "rate", _positive(self.rate, "rate"))


@dataclass(frozen=True, eq=False)
class Dirichlet:
    """Prior of the probabilities of categories, in the order of the public levels.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> nw.priors.Dirichlet(np.array([1, 1, 2])).alpha.tolist()
        [1.0, 1.0, 2.0]
    """

    alpha: np.ndarray

    if TYPE_CHECKING:

        def __init__(self, alpha: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        alpha = _finite(self.alpha, "alpha", 1)
        if (alpha <= 0).any():
            raise ArgumentError("alpha: must be above zero in every category")
        object.__setattr__(self, "alpha", alpha)


@dataclass(frozen=True)
class Population:
    """Prior of the population that pooled groups are drawn from; what is left out is weak.

    ``spread`` is the scale of the prior of the standard deviation between groups, about its median:
    one number, or one by name of a parameter. ``coefficients`` is the deviation of normal laws,
    about zero for the coefficients of the public features, which are standardised, and about the
    middle that the public bounds give for the population's mean. All laws are proper: nothing else
    says how much a few groups differ. ``by_size``: small groups may differ more than large ones;
    the variance between groups falls as a power of their size, which is learnt, and whose prior is
    that of real tables. ``False``: groups of all sizes differ alike.

    Linear regression: spreads in the units of the coefficients, where "intercept" stands for the
    line's level at the covariates' mean over all groups, not at zero. Families of one column: the
    spread of a share is relative to its largest possible, √(mean (1 - mean)), that of a rate
    relative to the mean; coefficients are of log odds, or of the log rate.

    Example:
        >>> import noisewise as nw
        >>> nw.priors.Population(spread=0.1)
        Population(spread=0.1, coefficients=None, by_size=True)
    """

    spread: float | Mapping[str, float] | None = None
    coefficients: float | None = None
    by_size: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.by_size, bool):
            raise ArgumentError(f"prior: by_size must be True or False, not {self.by_size!r}")
        if isinstance(self.spread, Mapping):
            if not self.spread:
                raise ArgumentError("spread: must name at least one parameter")
            by_name = {n: _positive(v, f"spread of {n!r}") for n, v in self.spread.items()}
            object.__setattr__(self, "spread", MappingProxyType(by_name))
        elif self.spread is not None:
            object.__setattr__(self, "spread", _positive(self.spread, "spread"))
        if self.coefficients is not None:
            object.__setattr__(self, "coefficients", _positive(self.coefficients, "coefficients"))

    def spread_of(self, parameter: str, default: float) -> float:
        """Return the scale of one parameter's deviation; the default where none was given."""
        if isinstance(self.spread, Mapping):
            return self.spread.get(parameter, default)
        return default if self.spread is None else self.spread


MOMENT_TOLERANCE = 1e-9
"""Rounding allowed in symmetry, positivity and E[1] = 1 (chosen)."""


@dataclass(frozen=True, eq=False)
class CovariateMoments:
    """``fourth[i, j, k, l] = E[x̃_i x̃_j x̃_k x̃_l]`` with x̃ = (x, 1), in the user's units.

    The constant comes last, so that means and second moments are part of it:
    ``fourth[i, j, -1, -1] = E[x_i x_j]``. From a formula, or from draws of any distribution.

    Example:
        >>> import noisewise as nw, numpy as np
        >>> moments = nw.priors.CovariateMoments.from_draws(np.array([[0.0], [1.0]]))
        >>> moments.columns, float(moments.fourth[0, 0, -1, -1])
        (1, 0.5)
    """

    fourth: np.ndarray

    if TYPE_CHECKING:  # lists are as welcome as arrays; they become arrays below

        def __init__(self, fourth: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        fourth = np.array(self.fourth, dtype=np.float64)
        if fourth.ndim != 4 or len(set(fourth.shape)) != 1 or len(fourth) < 2:
            raise ArgumentError(
                "fourth: must have four axes of d + 1, one more than the covariates, "
                f"not shape {fourth.shape}"
            )
        if not np.isfinite(fourth).all():
            raise ArgumentError("fourth: must be finite")
        size = np.abs(fourth).max()
        for axes in ((1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)):
            if np.abs(fourth - fourth.transpose(axes)).max() > MOMENT_TOLERANCE * size:
                raise ArgumentError("fourth: must not change when two indices are exchanged")
        matrix = fourth.reshape(len(fourth) ** 2, -1)
        if (
            abs(fourth[-1, -1, -1, -1] - 1) > MOMENT_TOLERANCE
            or np.linalg.eigvalsh(matrix)[0] < -MOMENT_TOLERANCE * size
        ):
            raise ArgumentError("fourth: must hold moments of some distribution, E[1] = 1 last")
        fourth.flags.writeable = False
        object.__setattr__(self, "fourth", fourth)

    @property
    def columns(self) -> int:
        """Return the number of covariates."""
        return len(self.fourth) - 1

    @classmethod
    def from_draws(cls, draws: ArrayLike) -> CovariateMoments:
        """Return the moments of draws (draw, covariate) from any distribution over x."""
        given = np.asarray(draws, dtype=np.float64)
        if given.ndim != 2 or not len(given):
            raise ArgumentError(f"draws: must have axes (draw, covariate), not shape {given.shape}")
        full = np.hstack([given, np.ones((len(given), 1))])
        products = (full[:, :, None] * full[:, None, :]).reshape(len(full), -1)
        fourth = products.T @ products / len(full)
        return cls(fourth.reshape((full.shape[1],) * 4))

    def mapped(self, centre: np.ndarray, unit: np.ndarray) -> CovariateMoments:
        """Return the moments of ``(x - centre)/unit``."""
        matrix = np.diag(np.append(1 / unit, 1.0))
        matrix[:-1, -1] = -centre / unit
        fourth = self.fourth
        for _ in range(4):
            fourth = np.moveaxis(np.tensordot(fourth, matrix, axes=(0, 1)), -1, 3)
        return CovariateMoments(fourth)

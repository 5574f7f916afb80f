"""Conjugate priors of the one-column exponential families; numpy only.

Beta(alpha, beta) for probabilities, Dirichlet(alpha) for the probabilities of categories,
Gamma(shape, rate) for rates: density ∝ θ^(shape-1) exp(-rate θ), so the mean is shape/rate.
A normal column takes ``NormalInverseGamma`` with one coefficient, its mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from noisewise.priors.families import _finite, _positive


@dataclass(frozen=True)
class Beta:
    """Prior of a probability: α - 1 successes and β - 1 failures more than a uniform prior."""

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _positive(self.alpha, "alpha"))
        object.__setattr__(self, "beta", _positive(self.beta, "beta"))


@dataclass(frozen=True)
class Gamma:
    """Prior of a rate."""

    shape: float
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _positive(self.shape, "shape"))
        object.__setattr__(self, "rate", _positive(self.rate, "rate"))


@dataclass(frozen=True, eq=False)
class Dirichlet:
    """Prior of the probabilities of categories, in the order of the public levels."""

    alpha: np.ndarray

    def __post_init__(self) -> None:
        alpha = _finite(self.alpha, "alpha", 1)
        if (alpha <= 0).any():
            raise ValueError("prior: alpha must be above zero in every category")
        object.__setattr__(self, "alpha", alpha)

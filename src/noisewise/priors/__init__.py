"""Prior distributions and their affine maps; numpy and our errors only."""

from noisewise.priors.conjugate import (
    Beta,
    CovariateMoments,
    Dirichlet,
    Gamma,
    NormalInverseGamma,
    NormalInverseWishart,
    Population,
)
from noisewise.priors.predictor import Predictor

__all__ = [
    "Beta",
    "CovariateMoments",
    "Dirichlet",
    "Gamma",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "Population",
    "Predictor",
]

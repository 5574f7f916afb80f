"""Prior distributions and their affine maps; numpy only."""

from noisewise.priors.conjugate import (
    Beta,
    Dirichlet,
    Gamma,
    NormalInverseGamma,
    NormalInverseWishart,
)
from noisewise.priors.covariate_moments import CovariateMoments

__all__ = [
    "Beta",
    "CovariateMoments",
    "Dirichlet",
    "Gamma",
    "NormalInverseGamma",
    "NormalInverseWishart",
]

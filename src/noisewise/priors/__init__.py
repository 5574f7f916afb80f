"""Prior families and their affine maps; numpy only."""

from noisewise.priors.conjugate import Beta, Dirichlet, Gamma
from noisewise.priors.families import NormalInverseGamma, NormalInverseWishart
from noisewise.priors.moments import CovariateMoments

__all__ = [
    "Beta",
    "CovariateMoments",
    "Dirichlet",
    "Gamma",
    "NormalInverseGamma",
    "NormalInverseWishart",
]

"""Prior families and their affine maps; numpy only."""

from noisewise.priors.families import NormalInverseGamma, NormalInverseWishart
from noisewise.priors.moments import CovariateMoments

__all__ = ["CovariateMoments", "NormalInverseGamma", "NormalInverseWishart"]

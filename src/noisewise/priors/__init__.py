"""Prior families and their affine maps; numpy only."""

from noisewise.priors.families import NormalInverseGamma, NormalInverseWishart

__all__ = ["NormalInverseGamma", "NormalInverseWishart"]

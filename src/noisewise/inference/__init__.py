"""ANALYST: from a release file to a posterior that accounts for its noise.

It needs jax, numpy and scipy, and nothing of the owner's half.
"""

from noisewise.inference.api import METHODS, infer
from noisewise.inference.file import load_posterior
from noisewise.inference.posterior import Posterior
from noisewise.inference.prediction import Prediction
from noisewise.models.exponential_family.families import FAMILIES, register_family
from noisewise.models.exponential_family.family import Conjugate, Family
from noisewise.models.graphical_model.model import GraphicalModel
from noisewise.models.graphical_model.posterior import GraphicalPosterior

__all__ = [
    "FAMILIES",
    "METHODS",
    "Conjugate",
    "Family",
    "GraphicalModel",
    "GraphicalPosterior",
    "Posterior",
    "Prediction",
    "infer",
    "load_posterior",
    "register_family",
]

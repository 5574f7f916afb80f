"""ANALYST: from a release file to a posterior that accounts for its noise.

It needs jax, numpy and scipy, and nothing of the owner's half.
"""

from noisewise.inference.api import infer, load, methods
from noisewise.inference.posterior_files import load_posterior
from noisewise.inference.results import CategoryPrediction, Posterior, Prediction, Result
from noisewise.inference.summaries import PosteriorSummary

__all__ = [
    "CategoryPrediction",
    "Posterior",
    "PosteriorSummary",
    "Prediction",
    "Result",
    "infer",
    "load",
    "load_posterior",
    "methods",
]

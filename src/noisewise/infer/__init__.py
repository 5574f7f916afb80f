"""ANALYST: from a release file to a posterior that accounts for its noise.

The module is callable: ``noisewise.infer(release)``. It needs jax, numpy and scipy, nothing of the
owner's half.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from noisewise.infer.api import METHODS, infer
from noisewise.infer.expfam import FAMILIES, Conjugate, Family, register
from noisewise.infer.file import load_posterior
from noisewise.infer.graphical import GraphicalModel, GraphicalPosterior
from noisewise.infer.posterior import Posterior
from noisewise.infer.prediction import Prediction

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
    "register",
]


class _Callable(ModuleType):
    """So that ``nw.infer`` is both the room and what one does there."""

    def __call__(self, *args: Any, **words: Any) -> Any:
        return infer(*args, **words)


sys.modules[__name__].__class__ = _Callable

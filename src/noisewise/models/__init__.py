"""The statistical models, one folder each; ``base`` holds their contract.

Importing this package registers the models that come with noisewise. A model of one's own is a
folder anywhere: see the guide "Add a model".
"""

from importlib import import_module

from noisewise.models.base import (
    Analyst,
    Method,
    Model,
    Owner,
    Question,
    Simulator,
    Word,
    find,
    find_asked,
    names,
    register,
    unregister,
)

BUILT_IN = (
    "linear_regression",
    "exponential_family",
    "graphical_model",
    "partition",
    "generalized_linear",
)
"""Folders of the models that come with noisewise."""

for _folder in BUILT_IN:
    import_module(f"{__name__}.{_folder}")

__all__ = [
    "BUILT_IN",
    "Analyst",
    "Method",
    "Model",
    "Owner",
    "Question",
    "Simulator",
    "Word",
    "find",
    "find_asked",
    "names",
    "register",
    "unregister",
]

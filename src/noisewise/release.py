"""OWNER: from a sensitive table to one public file.

Names load on first use: looking into a ledger should not wait for OpenDP and Arrow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noisewise.models.exponential_family.release import exponential_family, register_family
    from noisewise.models.generalized_linear.poisson_release import poisson_regression
    from noisewise.models.generalized_linear.release import logistic_regression
    from noisewise.models.graphical_model.release import graphical_model
    from noisewise.models.linear_regression.release import linear_regression
    from noisewise.models.partition.conjugate_regression import Zellner
    from noisewise.models.partition.posterior_probability import posterior_probability
    from noisewise.models.partition.posterior_quantile import posterior_quantile
    from noisewise.privacy.arguments import PrivateBounds
    from noisewise.privacy.options import PrivacyOptions
    from noisewise.privacy.pipeline import Blank

_HOMES = {
    "Blank": "noisewise.privacy.pipeline",
    "PrivacyOptions": "noisewise.privacy.options",
    "PrivateBounds": "noisewise.privacy.arguments",
    "exponential_family": "noisewise.models.exponential_family.release",
    "graphical_model": "noisewise.models.graphical_model.release",
    "linear_regression": "noisewise.models.linear_regression.release",
    "logistic_regression": "noisewise.models.generalized_linear.release",
    "poisson_regression": "noisewise.models.generalized_linear.poisson_release",
    "posterior_probability": "noisewise.models.partition.posterior_probability",
    "posterior_quantile": "noisewise.models.partition.posterior_quantile",
    "register_family": "noisewise.models.exponential_family.release",
    "Zellner": "noisewise.models.partition.conjugate_regression",
}


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take any misspelt name for one of the module.
    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        if name in _HOMES:
            return getattr(importlib.import_module(_HOMES[name]), name)
        raise AttributeError(f"module 'noisewise.release' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOMES)


__all__ = [
    "Blank",
    "PrivacyOptions",
    "PrivateBounds",
    "Zellner",
    "exponential_family",
    "graphical_model",
    "linear_regression",
    "logistic_regression",
    "poisson_regression",
    "posterior_probability",
    "posterior_quantile",
    "register_family",
]

"""Release differentially private statistics, and infer from them with their noise in mind.

The owner's half is ``noisewise.release``, the analyst's begins with ``noisewise.infer``; the file
between them is ``noisewise.Release``. Names are loaded on first use, so that either half works
where the other's libraries are absent.
"""

from __future__ import annotations

import os
import sys

if os.path.basename(getattr(sys, "argv", [""])[0]) == "noisewise":
    # The command itself: an interrupt must be understood while what follows is loaded.
    import noisewise.cli.early_interrupt  # noqa: F401

import importlib
from typing import TYPE_CHECKING

from noisewise import models
from noisewise.artifact.version import VERSION as __version__

if TYPE_CHECKING:
    from noisewise import (
        datasets,
        diagnostics,
        plots,
        priors,
        release,
        report,
        simulate,
        sklearn,
        spark,
    )
    from noisewise.artifact import (
        ArgumentError,
        Bounds,
        BudgetError,
        Censored,
        DataError,
        NoisewiseError,
        Release,
        ReleaseError,
        SearchError,
        SourceError,
    )
    from noisewise.inference import (
        Posterior,
        PosteriorSummary,
        Prediction,
        Result,
        infer,
        load,
        load_posterior,
    )
    from noisewise.models.exponential_family.families import register_family
    from noisewise.models.exponential_family.family import Conjugate, Family
    from noisewise.models.graphical_model.fitted_model import GraphicalModel
    from noisewise.models.graphical_model.grouped_results import GraphicalGroups
    from noisewise.models.graphical_model.posterior import GraphicalPosterior
    from noisewise.simulate.calibration_check import check
    from noisewise.simulate.planning import plan

_PACKAGES = (
    "datasets",
    "diagnostics",
    "plots",
    "priors",
    "release",
    "report",
    "simulate",
    "sklearn",
    "spark",
)
_HOMES = {
    **dict.fromkeys(
        (
            "ArgumentError",
            "Bounds",
            "BudgetError",
            "Censored",
            "DataError",
            "NoisewiseError",
            "Release",
            "ReleaseError",
            "SearchError",
            "SourceError",
        ),
        "noisewise.artifact",
    ),
    **dict.fromkeys(
        (
            "Posterior",
            "PosteriorSummary",
            "Prediction",
            "Result",
            "infer",
            "load",
            "load_posterior",
        ),
        "noisewise.inference",
    ),
    "Conjugate": "noisewise.models.exponential_family.family",
    "Family": "noisewise.models.exponential_family.family",
    "GraphicalGroups": "noisewise.models.graphical_model.grouped_results",
    "GraphicalModel": "noisewise.models.graphical_model.fitted_model",
    "GraphicalPosterior": "noisewise.models.graphical_model.posterior",
    "register_family": "noisewise.models.exponential_family.families",
    **dict.fromkeys(("check", "plan"), "noisewise.simulate"),
}


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take any misspelt name for one of the package.
    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        if name in _PACKAGES:
            return importlib.import_module(f"noisewise.{name}")
        if name in _HOMES:
            return getattr(importlib.import_module(_HOMES[name]), name)
        raise AttributeError(f"module 'noisewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "ArgumentError",
    "Bounds",
    "BudgetError",
    "Censored",
    "Conjugate",
    "DataError",
    "Family",
    "GraphicalGroups",
    "GraphicalModel",
    "GraphicalPosterior",
    "NoisewiseError",
    "Posterior",
    "PosteriorSummary",
    "Prediction",
    "Release",
    "ReleaseError",
    "Result",
    "SearchError",
    "SourceError",
    "__version__",
    "check",
    "datasets",
    "diagnostics",
    "infer",
    "load",
    "load_posterior",
    "models",
    "plan",
    "plots",
    "priors",
    "register_family",
    "release",
    "report",
    "simulate",
    "sklearn",
    "spark",
]

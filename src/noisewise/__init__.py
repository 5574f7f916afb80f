"""noisewise: differentially private releases, and inference that is honest about their noise.

The owner's half is ``noisewise.release``, the analyst's ``noisewise.infer``; the file between them
is ``noisewise.Release``.
Names are loaded on first use, so that either half works where the other's libraries are absent.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from noisewise.artifact.version import VERSION as __version__

if TYPE_CHECKING:
    from noisewise import (
        datasets,
        diagnostics,
        infer,
        plots,
        priors,
        release,
        report,
        simulate,
        sklearn,
    )
    from noisewise.artifact import (
        ArgumentError,
        Bounds,
        BudgetError,
        DataError,
        NoisewiseError,
        Release,
        ReleaseError,
        SearchError,
        SourceError,
    )
    from noisewise.infer import load_posterior


_ROOMS = (
    "release",
    "infer",
    "priors",
    "plots",
    "datasets",
    "diagnostics",
    "sklearn",
    "report",
    "simulate",
)
_ARTIFACT = (
    "ArgumentError",
    "Bounds",
    "BudgetError",
    "DataError",
    "NoisewiseError",
    "Release",
    "ReleaseError",
    "SearchError",
    "SourceError",
)
_ANALYSTS = ("load_posterior",)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"noisewise.{name}")
    if name in _ARTIFACT:
        return getattr(importlib.import_module("noisewise.artifact"), name)
    if name in _ANALYSTS:
        return getattr(importlib.import_module("noisewise.infer"), name)
    raise AttributeError(f"module 'noisewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_ROOMS, *_ARTIFACT, *_ANALYSTS, "__version__"])


__all__ = [
    "ArgumentError",
    "Bounds",
    "BudgetError",
    "DataError",
    "NoisewiseError",
    "Release",
    "ReleaseError",
    "SearchError",
    "SourceError",
    "__version__",
    "datasets",
    "diagnostics",
    "infer",
    "load_posterior",
    "plots",
    "priors",
    "release",
    "report",
    "simulate",
    "sklearn",
]

"""OWNER: from a sensitive table to one public file.

Names load on first use: looking into a ledger should not wait for OpenDP and Arrow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noisewise.release.arguments import PrivateBounds
    from noisewise.release.expfam import exponential_family, register_family
    from noisewise.release.graphical import graphical_model
    from noisewise.release.linear import linear_regression
    from noisewise.release.partition.prior import Zellner
    from noisewise.release.partition.probability import posterior_probability
    from noisewise.release.partition.quantile import posterior_quantile
    from noisewise.release.publish import Blank

_HOMES = {
    "Blank": "publish",
    "PrivateBounds": "arguments",
    "exponential_family": "expfam",
    "graphical_model": "graphical",
    "linear_regression": "linear",
    "posterior_probability": "partition.probability",
    "posterior_quantile": "partition.quantile",
    "register_family": "expfam",
    "Zellner": "partition.prior",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"noisewise.release.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'noisewise.release' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOMES)


__all__ = [
    "Blank",
    "PrivateBounds",
    "Zellner",
    "exponential_family",
    "graphical_model",
    "linear_regression",
    "posterior_probability",
    "posterior_quantile",
    "register_family",
]

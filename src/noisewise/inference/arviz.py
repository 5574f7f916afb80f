"""The one file that knows ArviZ: draws as its InferenceData."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from arviz import InferenceData


def inference_data(
    draws: Mapping[str, np.ndarray], keys: tuple[str | int, ...] | None, of: str = "posterior"
) -> InferenceData:
    """Dims (chain, draw), and group last where there are groups; ``of``: posterior or prior."""
    with warnings.catch_warnings():
        # ArviZ announces its next major version at every import; pyproject.toml stays below it.
        warnings.filterwarnings("ignore", category=FutureWarning, module="arviz")
        import arviz
    if keys is None:
        alone: Any = {of: dict(draws)}
        data: InferenceData = arviz.from_dict(**alone)
        return data
    moved = {name: np.moveaxis(v, 0, -1) for name, v in draws.items()}
    grouped: Any = {of: moved, "dims": {name: ["group"] for name in moved}}
    data = arviz.from_dict(**grouped, coords={"group": list(keys)})
    return data

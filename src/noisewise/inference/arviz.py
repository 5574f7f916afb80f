"""The one file that knows ArviZ: draws as its InferenceData."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from arviz import InferenceData


def inference_data(
    draws: Mapping[str, np.ndarray], keys: tuple[str | int, ...] | None, of: str = "posterior"
) -> InferenceData:
    """Return draws as InferenceData, with dimensions chain, draw, and group last where grouped.

    ``of`` names the group of InferenceData: posterior or prior.
    """
    if keys is None:
        return _from_dict({of: dict(draws)})
    moved = {name: np.moveaxis(v, 0, -1) for name, v in draws.items()}
    dims = {name: ["group"] for name in moved}
    return _from_dict({of: moved, "dims": dims, "coords": {"group": list(keys)}})


def labelled_inference_data(
    variables: Mapping[str, tuple[tuple[str, ...], np.ndarray]],
    coordinates: Mapping[str, Sequence[str | int]],
) -> InferenceData:
    """Return draws with named axes as InferenceData.

    Args:
        variables: for each, the dimensions after chain and draw, and the array of draws.
        coordinates: labels along every dimension.
    """
    return _from_dict(
        {
            "posterior": {name: drawn for name, (_, drawn) in variables.items()},
            "dims": {name: list(dims) for name, (dims, _) in variables.items()},
            "coords": {name: list(labels) for name, labels in coordinates.items()},
        }
    )


def _from_dict(content: dict[str, Any]) -> InferenceData:
    """Return what ``arviz.from_dict`` makes of its arguments."""
    with warnings.catch_warnings():
        # ArviZ announces its next major version at every import; pyproject.toml stays below it.
        warnings.filterwarnings("ignore", category=FutureWarning, module="arviz")
        import arviz
    data: InferenceData = arviz.from_dict(**content)
    return data

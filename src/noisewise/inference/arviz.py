"""The one file that knows ArviZ: draws, predictions and releases as its InferenceData."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise.artifact import ArgumentError

if TYPE_CHECKING:
    import xarray as xr
    from arviz import InferenceData

    from noisewise.artifact import Release
    from noisewise.inference.results import Posterior

PRIOR_DRAWS = 4000
"""Draws of the prior that go beside the posterior (chosen: as many as of it by default)."""


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
    of: str = "posterior",
) -> InferenceData:
    """Return draws with named axes as InferenceData.

    Args:
        variables: for each, the dimensions after chain and draw, and the array of draws.
        coordinates: labels along every dimension.
        of: the group of InferenceData, posterior or prior.
    """
    return _from_dict(
        {
            of: {name: drawn for name, (_, drawn) in variables.items()},
            "dims": {name: list(dims) for name, (dims, _) in variables.items()},
            "coords": {name: list(labels) for name, labels in coordinates.items()},
        }
    )


def add_prediction_and_observed(data: InferenceData, post: Posterior) -> InferenceData:
    """Add what else is known of a posterior: new records, and the sums that were released.

    Args:
        data: with the posterior; it is changed.
        post: the posterior.

    Returns:
        The same data, with group ``posterior_predictive`` where a record needs no covariates, and
        with ``observed_data`` and ``constant_data`` where the posterior knows its releases.
    """
    # ArviZ ships types, but leaves its methods untyped.
    beside: Any = data
    if not post.covariates:
        drawn = _new_records(post)
        if drawn is not None:
            name = str(getattr(post, "y", "record"))
            beside.extend(inference_data({name: drawn}, post.keys, "posterior_predictive"))
    if post.releases:
        observed, noise = _released(post.releases)
        beside.add_groups(observed_data=observed, constant_data=noise)
    return data


def _new_records(post: Posterior) -> np.ndarray | None:
    """Return draws of a new record; None where the model predicts none."""
    try:
        return post.predict().draws
    except ArgumentError:
        return None


def _released(releases: Sequence[Release]) -> tuple[xr.Dataset, xr.Dataset]:
    """Return the noisy sums of every release, and the scale of their noise, in the same units."""
    import xarray as xr

    values: dict[str, Any] = {}
    noise: dict[str, Any] = {}
    coordinates: dict[str, Any] = {}
    for number, release in enumerate(releases, 1):
        end = "" if number == 1 else f"_{number}"
        statistic, blocks = f"statistic{end}", release.blocks
        names = [name for block in blocks for name in block.statistic.names]
        if len(set(names)) < len(names):
            names = [f"{b.statistic.kind}: {name}" for b in blocks for name in b.statistic.names]
        coordinates[statistic] = names
        sums = np.concatenate([block.scaled for block in blocks])
        dims: tuple[str, ...] = (statistic,)
        if release.groups is None:
            sums = sums[:, 0]
        else:
            dims = (statistic, f"group{end}")
            coordinates[f"group{end}"] = list(release.groups.keys)
        values[f"released{end}"] = dims, sums
        scales = np.concatenate([block.noise_scales for block in blocks])
        noise[f"noise_scale{end}"] = (statistic,), scales
    return xr.Dataset(values, coordinates), xr.Dataset(noise, coordinates)


def _from_dict(content: dict[str, Any]) -> InferenceData:
    """Return what ``arviz.from_dict`` makes of its arguments."""
    with warnings.catch_warnings():
        # ArviZ announces its next major version at every import; pyproject.toml stays below it.
        warnings.filterwarnings("ignore", category=FutureWarning, module="arviz")
        import arviz
    data: InferenceData = arviz.from_dict(**content)
    return data

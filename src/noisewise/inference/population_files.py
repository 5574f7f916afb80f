"""The population of pooled groups in a posterior file: a group of arrays, and words about them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise.artifact.validation import levels
from noisewise.inference.population import PopulationPosterior, PublicFeatures

if TYPE_CHECKING:
    import xarray

    from noisewise.inference.netcdf import Group

MAX_PRIOR_DRAWS = 5_000
"""Draws of the prior that a file keeps (chosen): enough to compare quartiles."""


def population_words(population: PopulationPosterior) -> str:
    """Return as JSON the names that belong to the arrays of ``population_arrays``."""
    features = population.features
    return json.dumps(
        {
            "parameters": list(population.draws),
            "deviations": list(population.deviations),
            "varying": list(population.variance),
            "features": None if features is None else list(features.names),
            "parent": None if features is None else features.parent,
        }
    )


def population_arrays(population: PopulationPosterior, groups: int) -> xarray.Dataset:
    """Return the arrays of a population, with the number of groups it is of."""
    import xarray

    names = list(population.draws)
    before = [np.ravel(population.prior_draws[n])[:MAX_PRIOR_DRAWS] for n in names]
    content: dict[str, Any] = {
        "draws": (("name", "chain", "draw"), np.stack([population.draws[n] for n in names])),
        "before": (("name", "before_of"), np.stack(before)),
    }
    if population.variance:
        varying = [np.broadcast_to(v, groups) for v in population.variance.values()]
        content["variance"] = (("varying", "group"), np.stack(varying).astype(float))
    features = population.features
    if features is not None:
        content["features"] = (("group", "column"), features.values)
        if features.names:
            content["centre"] = (("feature",), features.centre)
            content["unit"] = (("feature",), features.unit)
        if features.parent_of is not None:
            content["parent_of"] = (("group",), features.parent_of)
            content["parents"] = (("parent",), [json.dumps(p) for p in features.parents])
    return xarray.Dataset(content)


def read_population(arrays: Group, words: Mapping[str, Any], groups: int) -> PopulationPosterior:
    """Return the population in a file; a ValueError where arrays and names do not fit."""
    kept = arrays.variables
    names, varying = _texts(words["parameters"]), _texts(words["varying"])
    draws = _array(kept["draws"], (len(names), None, None))
    before = _array(kept["before"], (len(names), None))
    variance = _array(kept["variance"], (len(varying), groups)) if varying else np.empty((0, 0))
    return PopulationPosterior(
        dict(zip(names, draws, strict=True)),
        dict(zip(names, before, strict=True)),
        _texts(words["deviations"]),
        dict(zip(varying, variance, strict=True)),
        None if words["features"] is None else _features(kept, words, groups),
    )


def _features(
    kept: Mapping[str, np.ndarray], words: Mapping[str, Any], groups: int
) -> PublicFeatures:
    names = _texts(words["features"])
    values = _array(kept["features"], (groups, 1 + len(names)))
    none = np.zeros(0)
    centre, unit = (_array(kept[k], (len(names),)) if names else none for k in ("centre", "unit"))
    if words["parent"] is None:
        return PublicFeatures(values, names, centre, unit)
    (parent,) = _texts([words["parent"]])
    parents = levels([json.loads(p) for p in kept["parents"].tolist()], "parents")
    places = kept["parent_of"]
    in_list = places.dtype.kind in "iu" and places.shape == (groups,)
    if not in_list or places.min() < 0 or places.max() >= len(parents):
        raise ValueError("population: groups lie in parents that are not there")
    return PublicFeatures(values, names, centre, unit, parent, parents, places)


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise ValueError("population: names must be texts")
    return tuple(values)


def _array(values: np.ndarray, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return finite numbers of that shape; None stands for any length above zero."""
    fits = values.ndim == len(shape) and values.size > 0
    fits &= all(wanted in (None, size) for wanted, size in zip(shape, values.shape, strict=False))
    if not fits or values.dtype.kind != "f" or not np.isfinite(values).all():
        raise ValueError("population: numbers do not fit its names")
    return values

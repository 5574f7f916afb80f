"""A posterior as a file: netCDF as ArviZ writes it, for any tool that reads netCDF or HDF5.

Draws are in group ``posterior``, draws of the prior in ``prior`` where the posterior has them,
R-hat, ESS and what a method tells of each group in ``sample_stats``; words are attributes of
``posterior``. The releases themselves, public as they are, stand in ``observed_data``. What only
inference itself needs (``Posterior.latent``) is left out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise import models
from noisewise.artifact import ArgumentError, Level, Release, ReleaseError
from noisewise.artifact.atomic_file import atomic_write
from noisewise.artifact.release_files import HDF5
from noisewise.artifact.validation import is_printable, levels, shown, text
from noisewise.artifact.version import VERSION as SOFTWARE
from noisewise.inference import summary_files
from noisewise.inference.population import PopulationPosterior
from noisewise.inference.population_files import (
    population_arrays,
    population_words,
    read_population,
)
from noisewise.inference.results import Posterior, Result

if TYPE_CHECKING:
    import xarray

    from noisewise.inference.netcdf import Group

HEAD = 64
"""Bytes by which a model recognises its own format."""
FORMAT = "noisewise-posterior"
"""What a posterior file calls itself."""
POSTERIOR_VERSION = 2
"""The version of that format which is written; 1, by version 0.1, has no digest and is read too."""
GROUPS = ("posterior", "sample_stats", "prior", "observed_data", "population")
"""The groups of a file."""
ATTRIBUTES = (
    "noisewise_format", "noisewise_version", "noisewise_software", "method", "parameters", "model",
    "attributes", "prior", "prior_draws", "status", "guarantees", "releases", "details",
    "population",
)  # fmt: skip
"""What is said of a posterior, and counts for the digest."""
MAX_DEPTH = 32
"""How deep the JSON of an attribute may be nested (chosen); ours is three levels deep."""
PRIOR_DRAWS = 20_000
"""Draws of the prior that a file keeps (chosen): enough for a smooth histogram."""
LONGEST = 30_000
"""Characters of an attribute: HDF5 takes 64 KiB, and a person reads less."""
MOST_GROUPS = 200
"""Up to which the deviations without noise are worked out and kept."""
JUDGED = ("rhat", "ess", "sd_without_noise")
"""Variables of ``sample_stats`` that are not details of the method."""
NOT_DETAILS = (*JUDGED, "parameter", "group", "chain", "draw")
"""Variables of ``sample_stats`` that tell nothing of the method."""
RESERVED = {"chain", "draw", "group", "parameter"}
"""Names of dimensions, which no variable may have."""


def save(post: Posterior, path: Path) -> Path:
    """The file, whole or not at all."""
    import h5py

    from noisewise.inference.arviz import inference_data
    from noisewise.inference.netcdf import read_groups

    variables = variable_names(tuple(post.draws))
    # ArviZ ships types, but leaves its methods untyped.
    data: Any = inference_data(_renamed(post.draws, variables), post.keys)
    data.posterior.attrs.update(_attributes(post))
    data.add_groups(sample_stats=_statistics(post))
    if post.releases:
        data.add_groups(observed_data=_releases(post))
    if post.prior_draws is not None:
        before = _renamed(post.prior_draws(PRIOR_DRAWS), variables)
        data.extend(inference_data({k: v[None] for k, v in before.items()}, None, "prior"))
    if post.population is not None:
        data.add_groups(population=population_arrays(post.population, len(post.keys or ())))
    with atomic_write(
        path, lambda why: ArgumentError(f"path: cannot write {str(path)!r}: {why}")
    ) as temporary:
        data.to_netcdf(str(temporary), engine="h5netcdf")
        # Of what a reader will find, not of what was meant to be written.
        digest = _digest(read_groups(temporary, GROUPS))
        with h5py.File(temporary, "r+") as file:
            file["posterior"].attrs["noisewise_sha256"] = digest
    return path


def load_posterior(path: str | os.PathLike[str]) -> Result:
    """Read what ``save`` of a result wrote.

    Args:
        path: a netCDF file of a posterior, a Parquet file or folder of summaries, or a file of a
            model with a format of its own.

    Returns:
        The result, of the class it was saved from.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> release = nw.release.exponential_family(
        ...     pd.DataFrame({"owns": [0, 1, 1, 1] * 50}), column="owns", family="bernoulli",
        ...     epsilon=1.0,
        ... )
        >>> path = nw.infer(release).save("posterior.nc")
        >>> nw.load_posterior(path).method
        'exact'
    """
    path = Path(path)
    read = reader_of(path)
    return _load_netcdf(path) if read is None else read(path)


def reader_of(path: Path) -> Callable[[Path], Result] | None:
    """Return who reads this file: summaries, or a model whose own format begins like it."""
    if path.is_dir():
        return summary_files.load
    try:
        with path.open("rb") as file:
            start = file.read(HEAD)
    except OSError:
        return None  # What is wrong with it is told by the reader of netCDF.
    if start.startswith(summary_files.PARQUET):
        return summary_files.load
    if start.startswith(HDF5):
        return None
    for name in models.names():
        for begins, read in models.find(name).readers().items():
            if start.startswith(begins):
                return read
    return None


def _load_netcdf(path: Path) -> Posterior:
    """Return the posterior in a netCDF file; an ArgumentError for any other content."""
    from noisewise.inference.netcdf import read_groups

    content = read_groups(path, GROUPS)
    posterior = content.get("posterior")
    said = {} if posterior is None else posterior.attributes
    if posterior is None or said.get("noisewise_format") != FORMAT:
        raise ArgumentError(
            f"path: {str(path)!r} was not written by Posterior.save; open it with ArviZ instead"
        )
    if said.get("noisewise_version") not in (1, POSTERIOR_VERSION):
        raise ArgumentError(
            f"path: {str(path)!r} has posterior format {said.get('noisewise_version')}, this "
            f"noisewise reads {POSTERIOR_VERSION}; use the noisewise that wrote it "
            f"({shown(said.get('noisewise_software'))}), or infer again from the release"
        )
    try:
        # Files of format 1, by version 0.1, have no digest.
        if said["noisewise_version"] != 1 and said.get("noisewise_sha256") != _digest(content):
            raise ValueError("its content does not match its sha256")
        return _posterior(content)
    except ReleaseError as error:
        why = str(error)
    except Exception as error:  # noqa: BLE001  # a forger may have put anything anywhere
        why = str(error) if type(error) in (ValueError, ArgumentError) else repr(error)
    raise ArgumentError(
        f"path: {str(path)!r} lacks part of a posterior ({ascii(why)[1:-1][:300]}); it was changed "
        "or damaged"
    )


def _posterior(content: Mapping[str, Group]) -> Posterior:
    posterior, stats = content["posterior"], content["sample_stats"].variables
    said = posterior.attributes
    names = _texts(_json(said, "parameters"), "parameters")
    variables = dict(zip(names, variable_names(names), strict=True))
    keys = _keys(posterior.variables["group"]) if "group" in posterior.variables else None
    draws = {n: _drawn(posterior.variables[v], keys, n) for n, v in variables.items()}
    if len({d.shape for d in draws.values()}) != 1:
        raise ValueError("parameters have unlike numbers of draws")
    groups = (1 if keys is None else len(keys),)
    per_group = {n: v for n, v in stats.items() if n not in NOT_DETAILS}
    common = {
        "draws": draws,
        "rhat": _by_parameter(stats["rhat"], names, groups, keys),
        "ess": _by_parameter(stats["ess"], names, groups, keys),
        "method": text(said["method"], "method"),
        "keys": keys,
        "prior": _lines(said["prior"], "prior"),
        "details": {**_tuples(_json(said, "details")), **per_group},
        "prior_draws": _stored(content["prior"], variables) if said["prior_draws"] else None,
        "guarantees": _texts(_json(said, "guarantees"), "guarantees"),
        "releases": _released(content["observed_data"]) if said.get("releases") else (),
        "without_noise": _without(stats, names, groups, keys),
        "population": _population(content, said, *groups),
    }
    model, attributes = _model_and_attributes(said)
    return models.find(model).restore(common, attributes)


def _population(
    content: Mapping[str, Group], said: Mapping[str, Any], groups: int
) -> PopulationPosterior | None:
    """Return the population of pooled groups; None where they are not pooled."""
    if "population" not in said:
        return None
    words = _json(said, "population")
    if not isinstance(words, dict):
        raise ValueError("population must be an object")
    return read_population(content["population"], words, groups)


def _digest(content: Mapping[str, Group]) -> str:
    """Return the digest of a file's variables, and of the words that are read from it."""
    from noisewise.inference.netcdf import group_digest

    said = content["posterior"].attributes
    kept = {k: v for k, v in said.items() if k in ATTRIBUTES}
    words = json.dumps(kept, sort_keys=True)
    groups = [group_digest(name, content[name]) for name in GROUPS if name in content]
    return hashlib.sha256("\n".join((words, *groups)).encode()).hexdigest()


def _json(said: Mapping[str, Any], name: str) -> object:
    """Return the JSON of an attribute, in which nothing is deep, unprintable or infinite."""
    try:
        content = json.loads(said[name])
    except RecursionError:
        raise ValueError(f"{name} is nested too deeply") from None
    level = [content]
    for _ in range(MAX_DEPTH):
        below = [v for held in level if isinstance(held, list) for v in held]
        for held in level:
            if isinstance(held, str):
                _lines(held, name)
            if isinstance(held, dict):
                below += [*held, *held.values()]
        level = below
        if not level:
            return content
    raise ValueError(f"{name} is nested too deeply")


def _lines(value: object, where: str) -> str:
    """Return a text that may be empty and may have several lines; each must be printable."""
    if not isinstance(value, str) or not all(map(is_printable, value.split("\n"))):
        raise ValueError(f"{where} must be printable text")
    return value


def _texts(values: object, where: str) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise ValueError(f"{where} must be a list of texts")
    return tuple(values)


def _keys(values: np.ndarray) -> tuple[Level, ...]:
    return levels(values.tolist(), "groups")


def _drawn(values: np.ndarray, keys: tuple[Level, ...] | None, name: str) -> np.ndarray:
    """Return draws as (group, chain, draw), or (chain, draw); a file has the group last."""
    wanted = 2 if keys is None else 3
    if values.dtype.kind != "f" or values.ndim != wanted or not values.size:
        raise ValueError(f"{shown(name)} must be draws by chain{'' if keys is None else ', group'}")
    if keys is not None and values.shape[-1] != len(keys):
        raise ValueError(f"{shown(name)} is of {values.shape[-1]} groups, there are {len(keys)}")
    if not np.isfinite(values).all():
        raise ValueError(f"{shown(name)} holds draws that are not finite")
    return values if keys is None else np.moveaxis(values, -1, 0)


def _by_parameter(
    values: np.ndarray, names: tuple[str, ...], groups: tuple[int], keys: tuple[Level, ...] | None
) -> dict[str, np.ndarray]:
    """Return one number for each parameter, or one per group."""
    if values.dtype.kind != "f" or values.shape != (len(names), *(() if keys is None else groups)):
        raise ValueError("numbers about the parameters are not of their number")
    return dict(zip(names, values, strict=True))


def _model_and_attributes(said: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the model's name and what it kept; files of version 0.1 spell it out themselves."""
    if "model" in said:
        attributes: Any = _json(said, "attributes")  # the model checks what it kept
        return said["model"], attributes
    family = _json(said, "family")
    name = "linear-regression" if family is None else "exponential-family"
    return name, {"x": _json(said, "x"), "y": text(said["y"], "y"), "family": family}


def variable_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names a netCDF variable may have: no slash, none of a dimension, each once."""
    made: list[str] = []
    for name in names:
        safe = name.replace("/", "_")
        while safe in RESERVED or safe in made:
            safe += "_"
        made.append(safe)
    return tuple(made)


def _renamed(values: Mapping[str, np.ndarray], variables: tuple[str, ...]) -> dict[str, np.ndarray]:
    return dict(zip(variables, values.values(), strict=True))


def _attributes(post: Posterior) -> dict[str, str | int]:
    details = {k: v for k, v in post.details.items() if not _is_per_group(v)}
    pooled = {} if post.population is None else {"population": population_words(post.population)}
    return {
        **pooled,
        "noisewise_format": FORMAT,
        "noisewise_version": POSTERIOR_VERSION,
        "noisewise_software": SOFTWARE,
        "method": post.method,
        "parameters": json.dumps(list(post.draws)),
        "model": post.model_name,
        "attributes": json.dumps(post.attributes()),
        "prior": post.prior[:LONGEST],
        "prior_draws": PRIOR_DRAWS if post.prior_draws is not None else 0,
        "status": post.status,
        "guarantees": json.dumps(post.guarantees),
        "releases": len(post.releases),
        "details": json.dumps(details, default=_plain),
    }


def _is_per_group(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1


def _plain(value: object) -> object:
    """Return NumPy's own numbers as Python's; anything else in words."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else str(value)


def _statistics(post: Posterior) -> xarray.Dataset:
    """R-hat and ESS (parameter, group), and the arrays of ``details``, one number per group."""
    import xarray

    dims = ("parameter",) if post.keys is None else ("parameter", "group")
    content: dict[str, Any] = {
        name: (dims, np.stack([np.asarray(v) for v in values.values()]))
        for name, values in (("rhat", post.rhat), ("ess", post.ess))
    }
    if post.without_noise is not None and len(post.keys or ()) <= MOST_GROUPS:
        alone = post.without_noise()
        content["sd_without_noise"] = (dims, np.stack([np.asarray(v) for v in alone.values()]))
    for name, value in post.details.items():
        if _is_per_group(value):
            content[name] = (("group",) if post.keys is not None else (f"{name}_of",), value)
    coords: dict[str, Any] = {"parameter": list(post.draws)}
    if post.keys is not None:
        coords["group"] = list(post.keys)
    return xarray.Dataset(content, coords)


def _releases(post: Posterior) -> xarray.Dataset:
    """What was observed: the files the owner published, word for word."""
    import xarray

    return xarray.Dataset({"release": (("release_of",), [r.to_json() for r in post.releases])})


def _released(observed: Group) -> tuple[Release, ...]:
    return tuple(Release.from_json(file) for file in observed.variables["release"])


def _without(
    stats: Mapping[str, np.ndarray],
    names: tuple[str, ...],
    groups: tuple[int],
    keys: tuple[Level, ...] | None,
) -> Callable[[], dict[str, np.ndarray]] | None:
    if "sd_without_noise" not in stats:
        return None
    alone = _by_parameter(stats["sd_without_noise"], names, groups, keys)
    return lambda: alone


def _stored(prior: Group, variables: Mapping[str, str]) -> Callable[[int], dict[str, np.ndarray]]:
    kept = {name: prior.variables[v] for name, v in variables.items()}
    if any(v.ndim != 2 or v.dtype.kind != "f" or np.isnan(v).any() for v in kept.values()):
        raise ValueError("draws of the prior are not numbers by chain")
    drawn = {name: values[0] for name, values in kept.items()}

    def draws(number: int) -> dict[str, np.ndarray]:
        if number > PRIOR_DRAWS:
            raise ArgumentError(f"number: the file holds {PRIOR_DRAWS} draws of the prior")
        return {name: values[:number] for name, values in drawn.items()}

    return draws


def _tuples(content: Any) -> dict[str, Any]:
    """Return a JSON object whose lists are tuples, as a posterior has them."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}

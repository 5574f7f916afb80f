"""A posterior as a file: netCDF as ArviZ writes it, for any tool that reads netCDF or HDF5.

Draws are in group ``posterior``, draws of the prior in ``prior`` where the posterior has them,
R-hat, ESS and what a method tells of each group in ``sample_stats``; words are attributes of
``posterior``. The releases themselves, public as they are, stand in ``observed_data``. What only
inference itself needs (``Posterior.latent``) is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise import models
from noisewise.artifact import ArgumentError, Release
from noisewise.artifact.atomic_file import atomic_write
from noisewise.artifact.version import VERSION as SOFTWARE
from noisewise.inference.posterior import Posterior
from noisewise.inference.result import Result

if TYPE_CHECKING:
    import xarray

HDF5 = b"\x89HDF"
"""How every netCDF file begins."""
HEAD = 64
"""Bytes by which a model recognises its own format."""
FORMAT = "noisewise-posterior"
"""What a posterior file calls itself."""
VERSION = 1
"""The version of that format which is written and read."""
PRIOR_DRAWS = 20_000
"""Draws of the prior that a file keeps (chosen): enough for a smooth histogram."""
LONGEST = 30_000
"""Characters of an attribute: HDF5 takes 64 KiB, and a person reads less."""
MOST_GROUPS = 200
"""Up to which the deviations without noise are worked out and kept."""
JUDGED = ("rhat", "ess", "sd_without_noise")
"""Variables of ``sample_stats`` that are not details of the method."""
RESERVED = {"chain", "draw", "group", "parameter"}
"""Names of dimensions, which no variable may have."""


def save(post: Posterior, path: Path) -> Path:
    """The file, whole or not at all."""
    from noisewise.inference.arviz import inference_data

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
    with atomic_write(
        path, lambda why: ArgumentError(f"path: cannot write {str(path)!r}: {why}")
    ) as temporary:
        data.to_netcdf(str(temporary), engine="h5netcdf")
    return path


def load_posterior(path: str | os.PathLike[str]) -> Result:
    """Read what ``save`` of a result wrote.

    Args:
        path: a netCDF file of a posterior, or a file of a model with a format of its own.

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
    """Return who reads this file, if a model has a format of its own that begins like it."""
    try:
        with path.open("rb") as file:
            start = file.read(HEAD)
    except OSError:
        return None  # What is wrong with it is told by the reader of netCDF.
    if start.startswith(HDF5):
        return None
    for name in models.names():
        for begins, read in models.find(name).readers().items():
            if start.startswith(begins):
                return read
    return None


def _load_netcdf(path: Path) -> Posterior:
    posterior = _group(path, "posterior")
    said = posterior.attrs
    if said.get("noisewise_format") != FORMAT:
        raise ArgumentError(
            f"path: {str(path)!r} was not written by Posterior.save; open it with ArviZ instead"
        )
    if said.get("noisewise_version") != VERSION:
        raise ArgumentError(
            f"path: {str(path)!r} has posterior format {said.get('noisewise_version')}, this "
            f"noisewise reads {VERSION}; use the noisewise that wrote it "
            f"({said.get('noisewise_software')}), or infer again from the release"
        )
    try:
        return _posterior(path, posterior)
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ArgumentError(
            f"path: {str(path)!r} lacks part of a posterior ({error}); it was changed or damaged"
        ) from error


def _posterior(path: Path, posterior: Any) -> Posterior:
    said = posterior.attrs
    names = json.loads(said["parameters"])
    variables = dict(zip(names, variable_names(tuple(names)), strict=True))
    grouped = "group" in posterior.dims
    order = ("group", "chain", "draw") if grouped else ("chain", "draw")
    draws = {n: posterior[v].transpose(*order).values for n, v in variables.items()}
    stats = _group(path, "sample_stats")
    per_group = {str(n): stats[n].values for n in stats.data_vars if n not in JUDGED}
    common = {
        "draws": draws,
        "rhat": dict(zip(names, stats["rhat"].values, strict=True)),
        "ess": dict(zip(names, stats["ess"].values, strict=True)),
        "method": said["method"],
        "keys": tuple(posterior["group"].values.tolist()) if grouped else None,
        "prior": said["prior"],
        "details": {**_tuples(json.loads(said["details"])), **per_group},
        "prior_draws": _stored(_group(path, "prior"), variables) if said["prior_draws"] else None,
        "guarantees": tuple(json.loads(said["guarantees"])),
        "releases": _released(path) if said.get("releases") else (),
        "without_noise": _without(stats, names),
    }
    model, attributes = _model_and_attributes(said)
    return models.find(model).analyst().restore(common, attributes)


def _model_and_attributes(said: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the model's name and what it kept; files of version 0.1 spell it out themselves."""
    if "model" in said:
        return said["model"], json.loads(said["attributes"])
    family = json.loads(said["family"])
    name = "linear-regression" if family is None else "exponential-family"
    return name, {"x": json.loads(said["x"]), "y": said["y"], "family": family}


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
    return {
        "noisewise_format": FORMAT,
        "noisewise_version": VERSION,
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


def _plain(value: Any) -> Any:
    """NumPy's own numbers; anything else in words."""
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


def _released(path: Path) -> tuple[Release, ...]:
    found = _group(path, "observed_data")["release"].values
    return tuple(Release.from_json(str(text)) for text in found)


def _without(stats: Any, names: list[str]) -> Callable[[], dict[str, np.ndarray]] | None:
    if "sd_without_noise" not in stats:
        return None
    alone = dict(zip(names, stats["sd_without_noise"].values, strict=True))
    return lambda: alone


def _group(path: Path, name: str) -> xarray.Dataset:
    import xarray

    try:
        with xarray.open_dataset(path, group=name, engine="h5netcdf") as found:
            return found.load()
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else "it is not a netCDF file"
    except (KeyError, ValueError):
        why = f"it has no group {name!r}"
    raise ArgumentError(f"path: {str(path)!r} cannot be read as a posterior: {why}")


def _stored(prior: Any, variables: Mapping[str, str]) -> Callable[[int], dict[str, np.ndarray]]:
    drawn = {name: prior[v].values[0] for name, v in variables.items()}

    def draws(number: int) -> dict[str, np.ndarray]:
        if number > PRIOR_DRAWS:
            raise ArgumentError(f"number: the file holds {PRIOR_DRAWS} draws of the prior")
        return {name: values[:number] for name, values in drawn.items()}

    return draws


def _tuples(content: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has lists where we have tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}

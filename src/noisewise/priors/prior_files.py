"""Priors from a small JSON file, with the names and fields of ``noisewise.priors``.

One prior is an object with its family and its fields, ``{"family": "Gamma", "shape": 2, "rate":
1}``. Several are an object of such objects by name, as ``infer`` takes them: ``{"response":
{"family": "NormalInverseGamma", …}, "covariates": {…}}``.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any, TypeAlias, get_args

from noisewise.priors import conjugate
from noisewise.priors.predictor import Predictor

Prior: TypeAlias = (
    conjugate.Beta
    | conjugate.CovariateMoments
    | conjugate.Dirichlet
    | conjugate.Gamma
    | conjugate.NormalInverseGamma
    | conjugate.NormalInverseWishart
    | conjugate.Population
    | Predictor
)
"""Any prior that a file can hold."""

FAMILIES: dict[str, type[Prior]] = {family.__name__: family for family in get_args(Prior)}
"""The priors by the name that a file gives them."""


def read_prior(path: str | os.PathLike[str]) -> Prior | dict[str, Prior]:
    """Read a prior, or several by name, from a JSON file.

    Args:
        path: the file.

    Returns:
        What ``infer``, ``check`` and ``plan`` take as ``prior``.

    Raises:
        ValueError: names the file, the field, and what is accepted there.

    Example:
        >>> from pathlib import Path
        >>> from noisewise.priors.prior_files import read_prior
        >>> _ = Path("prior.json").write_text('{"family": "Gamma", "shape": 2, "rate": 1}')
        >>> read_prior("prior.json")
        Gamma(shape=2.0, rate=1.0)
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueError(f"{str(file)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{str(file)!r} cannot be read as UTF-8 text") from None
    try:
        content = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{str(file)!r} is no JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    except ValueError as error:
        raise ValueError(f"{str(file)!r}: {error}") from None
    return prior_of(content, str(file))


def prior_of(content: object, where: str) -> Prior | dict[str, Prior]:
    """Return the prior that JSON content describes; ``where`` begins the messages."""
    if not isinstance(content, dict) or not content:
        raise ValueError(
            f'{where!r}: must be an object such as {{"family": "Gamma", "shape": 2, "rate": 1}}, '
            "or an object of such objects by name"
        )
    if "family" in content:
        return _one(content, f"{where!r}")
    return {name: _one(held, f"{where!r}: {name}") for name, held in content.items()}


def _one(content: object, where: str) -> Prior:
    """Return one prior; its family's own constructor checks the numbers."""
    if not isinstance(content, dict) or "family" not in content:
        raise ValueError(f'{where}: must be an object with a "family": {", ".join(FAMILIES)}')
    named = content["family"]
    if not isinstance(named, str) or named not in FAMILIES:
        raise ValueError(f"{where}: family: there is no {named!r}; there are {', '.join(FAMILIES)}")
    given = {name: value for name, value in content.items() if name != "family"}
    _check_fields(FAMILIES[named], given, where)
    try:
        return FAMILIES[named](**given)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _check_fields(family: type[Prior], given: dict[str, Any], where: str) -> None:
    """Raise a ValueError unless the fields are the family's, and numbers."""
    fields = dataclasses.fields(family)
    names = [field.name for field in fields]
    for name, value in given.items():
        if name not in names:
            raise ValueError(
                f"{where}: {family.__name__} has no {name!r}; it takes {', '.join(names)}"
            )
        if isinstance(value, bool) and fields[names.index(name)].type == "bool":
            continue
        if not _is_numeric(value):
            raise ValueError(
                f"{where}: {name}: must be a number, or a list of numbers, not {value!r}"
            )
    for field in fields:
        if field.name not in given and field.default is dataclasses.MISSING:
            raise ValueError(
                f"{where}: {family.__name__} needs {field.name!r}; it takes {', '.join(names)}"
            )


def _is_numeric(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_numeric, value))
    if isinstance(value, dict):
        return all(map(_is_numeric, value.values()))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose names are distinct; JSON itself would keep the last."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is given twice")
    return content


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no finite number")

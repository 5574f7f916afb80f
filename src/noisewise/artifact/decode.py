"""Plain dictionaries → Release, strictly: nothing missing, nothing unknown, every type right."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisewise.artifact import check
from noisewise.artifact.bounds import Bounds
from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.guarantee import Guarantee, Noise
from noisewise.artifact.release import Block, Groups, Population, Receipt, Release, Selection
from noisewise.artifact.statistics import (
    Clamped,
    Gram,
    Monomials,
    PowerSums,
    Statistic,
    Tables,
)


class Fields:
    """A JSON object being taken apart; ``done`` complains about what nobody asked for."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise ReleaseError(f"{where}: must be a JSON object")
        self._left = dict(value)
        self.where = where

    def take(self, name: str) -> Any:
        """The field, which must be there."""
        if name not in self._left:
            raise ReleaseError(f"{self.where}: {name!r} is missing")
        return self._left.pop(name)

    def items(self, name: str) -> list[Any]:
        """The field as a list."""
        value = self.take(name)
        if not isinstance(value, list):
            raise ReleaseError(f"{self.where}: {name!r} must be a list")
        return value

    def flag(self, name: str) -> bool:
        """The field as true or false."""
        value = self.take(name)
        if not isinstance(value, bool):
            raise ReleaseError(f"{self.where}: {name!r} must be true or false")
        return value

    def object(self, name: str) -> dict[str, Any]:
        """The field as an object with free keys."""
        value = self.take(name)
        if not isinstance(value, dict):
            raise ReleaseError(f"{self.where}: {name!r} must be a JSON object")
        return value

    def rest(self) -> dict[str, Any]:
        """All fields not yet taken."""
        left, self._left = self._left, {}
        return left

    def done(self) -> None:
        """Nothing unknown may be left."""
        if self._left:
            raise ReleaseError(f"{self.where}: unknown field {min(self._left)!r}")


def release(top: Fields) -> Release:
    """The whole content below the envelope."""
    groups, receipt = top.take("groups"), top.take("receipt")
    model = {k: _words(v, f"model: {k}") for k, v in top.object("model").items()}
    bounds = {c: _pair(b, f"bounds: {c}") for c, b in top.object("bounds").items()}
    blocks = [_block(b, f"blocks[{i}]") for i, b in enumerate(top.items("blocks"))]
    selections = [_selection(s, f"selections[{i}]") for i, s in enumerate(top.items("selections"))]
    created = top.take("created")
    if created != "":
        check.text(created, "created")
    fields = {
        "family": top.take("family"),
        "model": model,
        "guarantee": _guarantee(top.take("guarantee")),
        "population": _population(top.take("population")),
        "blocks": tuple(blocks),
        "bounds": bounds,
        "groups": None if groups is None else _groups(groups),
        "fill": top.object("fill"),
        "selections": tuple(selections),
        "receipt": None if receipt is None else _receipt(receipt),
        "software": top.take("software"),
        "created": created,
    }
    top.done()
    return Release(**fields)


def _words(value: Any, where: str) -> str | int | float | tuple[str, ...]:
    if isinstance(value, list):
        return tuple(check.text(v, where) for v in value)
    if isinstance(value, str):
        return check.text(value, where)
    check.real(value, where)
    return value  # type: ignore[no-any-return]  # an int stays an int, a float a float


def _pair(value: Any, where: str) -> Bounds:
    if not isinstance(value, list) or len(value) != 2:
        raise ReleaseError(f"{where}: must be [lower, upper]")
    return Bounds(*value)


def _guarantee(value: Any) -> Guarantee:
    f = Fields(value, "guarantee")
    made = Guarantee(
        epsilon=f.take("epsilon"),
        neighbours=f.take("neighbours"),
        delta=f.take("delta"),
        rho=f.take("rho"),
        within_groups=f.flag("within_groups"),
    )
    f.done()
    return made


def _population(value: Any) -> Population:
    f = Fields(value, "population")
    made = Population(f.take("policy"), tuple(f.items("sizes")), f.take("total"))
    f.done()
    return made


def _groups(value: Any) -> Groups:
    f = Fields(value, "groups")
    made = Groups(f.take("column"), tuple(f.items("keys")))
    f.done()
    return made


def _receipt(value: Any) -> Receipt:
    f = Fields(value, "receipt")
    made = Receipt(f.take("ledger"), f.take("dataset"), f.take("entry"))
    f.done()
    return made


def _selection(value: Any, where: str) -> Selection:
    f = Fields(value, where)
    quantiles = f.items("quantiles")
    if len(quantiles) != 2:
        raise ReleaseError(f"{where}: 'quantiles' must be [low, high]")
    made = Selection(
        column=f.take("column"),
        within=_pair(f.take("within"), f"{where}: within"),
        half_candidates=f.take("half_candidates"),
        quantiles=(quantiles[0], quantiles[1]),
        cost=f.take("cost"),
    )
    f.done()
    return made


def _block(value: Any, where: str) -> Block:
    f = Fields(value, where)
    spec = statistic(f.take("statistic"), f"{where}: statistic")
    noise = Fields(f.take("noise"), f"{where}: noise")
    made_noise = Noise(*(noise.take(n) for n in ("mechanism", "scale", "sensitivity", "cost")))
    noise.done()
    values = _matrix(f.object("values"), spec.names, where)
    f.done()
    return Block(spec, made_noise, values)


def _matrix(columns: dict[str, Any], names: tuple[str, ...], where: str) -> np.ndarray:
    """Check names and widths before anything is allocated."""
    if len(columns) != len(names) or set(columns) != set(names):
        raise ReleaseError(f"{where}: 'values' must hold exactly the components of the statistic")
    rows = [columns[n] for n in names]
    width = len(rows[0]) if isinstance(rows[0], list) else -1
    for name, row in zip(names, rows, strict=True):
        if not isinstance(row, list) or len(row) != width or width < 1:
            raise ReleaseError(f"{where}: values of {name!r} must be a list, as long as the others")
        if any(type(v) is not int or abs(v) > check.MAX_INT for v in row):
            raise ReleaseError(f"{where}: values of {name!r} must be 64-bit whole numbers")
    return np.array(rows, dtype=np.int64)


def statistic(value: Any, where: str) -> Statistic:
    """The specification, by its kind."""
    f = Fields(value, where)
    kind = f.take("kind")
    made: Statistic
    if kind == Gram.kind:
        made = Gram(tuple(f.items("columns")), f.flag("count"), f.take("bits"))
    elif kind == Monomials.kind:
        made = Monomials(tuple(f.items("columns")), f.take("degree"), f.take("bits"))
    elif kind == Clamped.kind:
        made = Clamped(tuple(f.items("columns")))
    elif kind == Tables.kind:
        made = _tables(f, where)
    elif kind == PowerSums.kind:
        names = ("lower", "upper", "outside", "degree", "origin", "scale", "bits")
        made = PowerSums(
            column=f.take("column"), count=f.flag("count"), **{n: f.take(n) for n in names}
        )
    else:
        raise ReleaseError(f"{where}: 'kind' is not one this version knows")
    f.done()
    return made


def _tables(f: Fields, where: str) -> Tables:
    cliques = f.items("cliques")
    if not all(isinstance(c, list) for c in cliques):
        raise ReleaseError(f"{where}: 'cliques' must be a list of lists")
    levels = Fields(f.take("levels"), f"{where}: levels")
    made: dict[str, Any] = {}
    for column, values in levels.rest().items():
        if not isinstance(values, list):
            raise ReleaseError(f"{where}: levels of {column!r} must be a list")
        made[column] = tuple(values)
    return Tables(tuple(tuple(c) for c in cliques), made)

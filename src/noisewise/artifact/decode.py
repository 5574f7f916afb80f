"""Plain dictionaries → Release, strictly: nothing missing, nothing unknown, every type right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from noisewise.artifact import check
from noisewise.artifact.bounds import Bounds
from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.guarantee import Guarantee, Noise
from noisewise.artifact.partition import ProbabilitySums, QuantileSum
from noisewise.artifact.release import Block, Groups, Population, Receipt, Release, Selection
from noisewise.artifact.statistics import (
    Clamped,
    Gram,
    Monomials,
    PersonTables,
    PowerSums,
    Statistic,
    Tables,
)


class Fields:
    """A JSON object being taken apart; ``done`` complains about what nobody asked for."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise ReleaseError(f"{where}: must be a JSON object, not {check.shown(value)}")
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
            raise ReleaseError(f"{self.where}: {name!r} must be a list, not {check.shown(value)}")
        return value

    def flag(self, name: str) -> bool:
        """The field as true or false."""
        value = self.take(name)
        if not isinstance(value, bool):
            raise ReleaseError(
                f"{self.where}: {name!r} must be true or false, not {check.shown(value)}"
            )
        return value

    def object(self, name: str) -> dict[str, Any]:
        """The field as an object with free keys."""
        value = self.take(name)
        if not isinstance(value, dict):
            raise ReleaseError(
                f"{self.where}: {name!r} must be a JSON object, not {check.shown(value)}"
            )
        return value

    def done(self) -> None:
        """Nothing unknown may be left."""
        if self._left:
            raise ReleaseError(f"{self.where}: unknown field {check.shown(min(self._left))}")


@contextmanager
def _at(where: str) -> Iterator[None]:
    """The types say what is wrong; this adds which of several it is."""
    try:
        yield
    except ReleaseError as error:
        raise ReleaseError(f"{where}: {error}") from None


def release(top: Fields) -> Release:
    """The whole content below the envelope."""
    groups, receipt = top.take("groups"), top.take("receipt")
    model = {k: _words(v, f"model: {check.shown(k)}") for k, v in top.object("model").items()}
    bounds = {c: _pair(b, f"bounds: {check.shown(c)}") for c, b in top.object("bounds").items()}
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
        raise ReleaseError(f"{where}: must be [lower, upper], not {check.shown(value)}")
    with _at(where):
        return Bounds(*value)


def _guarantee(value: Any) -> Guarantee:
    f = Fields(value, "guarantee")
    made = Guarantee(
        epsilon=f.take("epsilon"),
        neighbours=f.take("neighbours"),
        delta=f.take("delta"),
        rho=f.take("rho"),
        within=f.take("within"),
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
    within = _pair(f.take("within"), f"{where}: within")
    rest = {name: f.take(name) for name in ("column", "half_candidates", "cost")}
    f.done()
    with _at(where):
        return Selection(within=within, quantiles=(quantiles[0], quantiles[1]), **rest)


def _block(value: Any, where: str) -> Block:
    f = Fields(value, where)
    spec, noise, values = f.take("statistic"), f.take("noise"), f.object("values")
    f.done()
    with _at(where):
        made = statistic(spec)
        # Counted before a name is built: a small file may announce millions of them.
        if len(values) != len(made.units):
            raise ReleaseError(
                f"'values' holds {len(values)} components, {made.kind} has {len(made.units)}"
            )
        return Block(made, _noise(noise), _matrix(values, made.names))


def _noise(value: Any) -> Noise:
    f = Fields(value, "noise")
    parts = [f.take(name) for name in ("mechanism", "scale", "sensitivity", "cost")]
    f.done()
    return Noise(*parts)


def _matrix(columns: dict[str, Any], names: tuple[str, ...]) -> np.ndarray:
    """Check names and widths before anything is allocated."""
    if odd := set(columns) ^ set(names):
        there = "unknown" if min(odd) in columns else "missing"
        raise ReleaseError(
            "'values' must hold exactly the components of the statistic; "
            f"{check.shown(min(odd))} is {there}"
        )
    rows = [columns[n] for n in names]
    width = len(rows[0]) if isinstance(rows[0], list) else -1
    for name, row in zip(names, rows, strict=True):
        where = f"values of {check.shown(name)}"
        if not isinstance(row, list) or len(row) != width or width < 1:
            raise ReleaseError(f"{where} must be a list, as long as the others")
        for v in row:
            if type(v) is not int or not -check.MAX_INT - 1 <= v <= check.MAX_INT:
                raise ReleaseError(f"{where} must be 64-bit whole numbers, not {check.shown(v)}")
    return np.array(rows, dtype=np.int64)


def statistic(value: Any) -> Statistic:
    """The specification, by its kind."""
    f = Fields(value, "statistic")
    kind = f.take("kind")
    made: Statistic
    if kind == Gram.kind:
        made = Gram(tuple(f.items("columns")), f.flag("count"), f.take("bits"))
    elif kind == Monomials.kind:
        made = Monomials(tuple(f.items("columns")), f.take("degree"), f.take("bits"))
    elif kind == Clamped.kind:
        made = Clamped(tuple(f.items("columns")))
    elif kind == Tables.kind:
        made = _tables(f)
    elif kind == PersonTables.kind:
        plain = _tables(f)
        made = PersonTables(plain.cliques, plain.levels, f.take("unit"), f.take("bits"))
    elif kind == ProbabilitySums.kind:
        made = _probabilities(f)
    elif kind == QuantileSum.kind:
        made = _quantile(f)
    elif kind == PowerSums.kind:
        names = ("lower", "upper", "outside", "degree", "origin", "scale", "bits")
        made = PowerSums(
            column=f.take("column"), count=f.flag("count"), **{n: f.take(n) for n in names}
        )
    else:
        raise ReleaseError(f"statistic: 'kind' {check.shown(kind)} is not known to this version")
    f.done()
    return made


def _probabilities(f: Fields) -> ProbabilitySums:
    columns, at = tuple(f.items("columns")), tuple(f.items("at"))
    names = ("coefficient", "partitions", "method", "floor", "power", "bits")
    return ProbabilitySums(columns=columns, at=at, **{n: f.take(n) for n in names})


def _quantile(f: Fields) -> QuantileSum:
    columns = tuple(f.items("columns"))
    names = ("coefficient", "p", "partitions", "centre", "radius", "search", "search_cost", "bits")
    return QuantileSum(columns, **{n: f.take(n) for n in names})


def _tables(f: Fields) -> Tables:
    cliques, levels = f.items("cliques"), f.object("levels")
    if not all(isinstance(c, list) for c in cliques):
        raise ReleaseError("tables: 'cliques' must be a list of lists")
    for column, values in levels.items():
        if not isinstance(values, list):
            raise ReleaseError(f"tables: levels of {check.shown(column)} must be a list")
    return Tables(tuple(tuple(c) for c in cliques), {c: tuple(v) for c, v in levels.items()})

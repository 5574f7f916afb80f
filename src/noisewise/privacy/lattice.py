"""A record's contribution as whole numbers: the map every engine must reproduce bit for bit.

A column is clamped to its public interval, then put on a lattice (errata E6):

    u = floor((x - base) * factor),   factor = 2**bits / scale,   base = origin - 1/(2 factor),

which is ``floor((x - origin)/scale * 2**bits + 1/2)`` with the half moved into the base: one
subtraction, one product and one floor, all of them IEEE operations that no engine rounds its own
way, and no product of tiny numbers (PostgreSQL refuses an underflow). A final integer clamp to
``[low, high]`` makes the sensitivity hold whatever the rounding did. NULL and NaN mean "missing";
±inf is a value like any other and is clamped.

Of a product of columns every part is clamped to its own interval first, and parts so close to zero
that a product of them could underflow count as zero; parts are multiplied from left to right.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from noisewise.artifact import Bounds, Level
from noisewise.artifact.bounds import lattice_map


@dataclass(frozen=True)
class Scaled:
    """A numeric column on its lattice; ``outside="drop"`` makes records outside contribute 0."""

    column: str
    lower: float
    upper: float
    base: float
    factor: float
    low: int
    high: int
    outside: Literal["clamp", "drop"] = "clamp"
    fill: float | None = None


@dataclass(frozen=True)
class BoundedColumn:
    """A numeric column, its public interval, and what stands in for missing entries."""

    column: str
    lower: float
    upper: float
    fill: float | None = None


class Multiplicand(BoundedColumn):
    """A numeric column that is clamped to its public interval before it is multiplied."""


@dataclass(frozen=True)
class ScaledProduct:
    """A product of clamped columns, in order, which ``lattice`` maps as if it were a column."""

    multiplicands: tuple[Multiplicand, ...]
    lattice: Scaled

    @property
    def vanishing(self) -> float:
        """A number below which a part counts as zero, so that no product underflows."""
        return 2.0 ** -(1022 // len(self.multiplicands))


class Outside(BoundedColumn):
    """1 where the column lies outside its public interval, else 0."""


@dataclass(frozen=True)
class Coded:
    """A categorical column as the index of its level in a public list.

    ``fill`` stands in for what is missing, ``other`` for what is not on the list.
    """

    column: str
    levels: tuple[Level, ...]
    fill: Level | None = None
    other: Level | None = None


@dataclass(frozen=True)
class Outward:
    """A numeric column as the index of the next public candidate away from the anchor.

    ``candidates`` ascend and ``anchor`` is the index of one of them. Values beyond the outermost
    candidates are counted there. Comparing is exact in every engine, where a logarithm is not.
    """

    column: str
    candidates: tuple[float, ...]
    anchor: int
    fill: float | None = None

    @property
    def low(self) -> int:
        """The first index."""
        return 0

    @property
    def high(self) -> int:
        """The last index."""
        return len(self.candidates) - 1


Feature = Scaled | ScaledProduct | Outside | Outward
"""What a record contributes for one numeric column, or for a product of some."""


def inputs(feature: Feature) -> dict[str, float | None]:
    """Return the columns that a feature is made of, and their public fill values."""
    parts = feature.multiplicands if isinstance(feature, ScaledProduct) else (feature,)
    return {part.column: part.fill for part in parts}


def largest_value(feature: Feature) -> int:
    """Return the largest size of a feature, from which follows that sums fit into 64 bits."""
    lattice = feature.lattice if isinstance(feature, ScaledProduct) else feature
    return max(abs(lattice.low), abs(lattice.high)) if isinstance(lattice, Scaled) else 1


def scaled(
    column: str,
    bounds: Bounds,
    *,
    bits: int,
    origin: float,
    scale: float,
    outside: Literal["clamp", "drop"] = "clamp",
    fill: float | None = None,
) -> Scaled:
    """Return the map of a column: its constants are fixed once, so that all engines agree."""
    lattice = lattice_map(bounds, bits, origin, scale)
    return Scaled(column, bounds.lower, bounds.upper, *lattice, outside, fill)


def boxed(column: str, bounds: Bounds, *, bits: int, fill: float | None = None) -> Scaled:
    """Return the affine map from a column's bounds to [-1, 1]: lattice ends exactly ∓2**bits."""
    feature = scaled(
        column, bounds, bits=bits, origin=bounds.centre, scale=bounds.half_width, fill=fill
    )
    return dataclasses.replace(feature, low=-(2**bits), high=2**bits)


def to_lattice(x: np.ndarray, feature: Scaled, out: np.ndarray | None = None) -> np.ndarray:
    """Return whole numbers in float64 (exact far beyond 2**30), for BLAS; none may be missing."""
    with np.errstate(over="ignore", invalid="ignore"):
        u: np.ndarray = np.subtract(x, feature.base, out=out)
        u *= feature.factor
        np.floor(u, out=u)
        np.maximum(u, feature.low, out=u)
        np.minimum(u, feature.high, out=u)
    if feature.outside == "drop":
        u[(x < feature.lower) | (x > feature.upper)] = 0.0
    return u


def evaluate_columns(
    columns: Mapping[str, np.ndarray], feature: Feature, window: slice, out: np.ndarray
) -> np.ndarray:
    """Return a feature of float64 columns without missing values, in a window of their rows."""
    if not isinstance(feature, ScaledProduct):
        return evaluate(columns[feature.column][window], feature, out)
    clamped = {}
    for part in feature.multiplicands:
        if part.column not in clamped:
            x = np.clip(columns[part.column][window], part.lower, part.upper)
            x[np.abs(x) < feature.vanishing] = 0.0
            clamped[part.column] = x
    first, *rest = (clamped[part.column] for part in feature.multiplicands)
    product = first if not rest else first * rest[0]
    for x in rest[1:]:
        product *= x
    return to_lattice(product, feature.lattice, out)


def evaluate(
    x: np.ndarray, feature: Scaled | Outside | Outward, out: np.ndarray | None = None
) -> np.ndarray:
    """Return a feature of a float64 column without missing values."""
    if isinstance(feature, Scaled):
        return to_lattice(x, feature, out)
    result = np.empty_like(x) if out is None else out
    if isinstance(feature, Outward):
        np.copyto(result, _outward(x, feature))
        return result
    np.copyto(result, (x < feature.lower) | (x > feature.upper))
    return result


def _outward(x: np.ndarray, feature: Outward) -> np.ndarray:
    points = np.array(feature.candidates)
    below = np.maximum(np.searchsorted(points, x, side="right") - 1, 0)
    above = np.minimum(np.searchsorted(points, x, side="left"), feature.high)
    return np.where(x < points[feature.anchor], below, above)

"""What the privacy core must know of each kind of statistic: what to sum, and its usual share.

How far one person can move a statistic, the statistic itself says (``artifact/sensitivity.py``), so
that readers of a file check it against the bound that its noise was made for. A statistic is
published only if its kind has a `StatisticPrivacy`: first their contract and the list of them, then
those that come with noisewise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from noisewise.artifact import (
    ArgumentError,
    Bounds,
    Clamped,
    Gram,
    LeftOut,
    Level,
    Monomials,
    PersonTables,
    PowerSums,
    ProbabilitySums,
    QuantileSum,
    ReleaseError,
    Statistic,
    Tables,
)
from noisewise.artifact.statistics import CellSums
from noisewise.artifact.statistics.cell_sums import NumericColumn, numeric_name, product_bounds
from noisewise.privacy.lattice import (
    Coded,
    Multiplicand,
    Outside,
    Scaled,
    ScaledProduct,
    boxed,
    scaled,
)
from noisewise.privacy.sum_plan import CellCounts, CellProducts, Part, ProductSums

S = TypeVar("S", bound=Statistic)
P = TypeVar("P", bound="type[StatisticPrivacy[Any]]")


@dataclass(frozen=True)
class PublicColumns:
    """What is public about the columns before the table is read.

    ``fill`` stands in for missing entries, ``other`` for categories that are not on the list.
    """

    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    fill: Mapping[str, float | Level] = field(default_factory=dict)
    other: Mapping[str, Level] = field(default_factory=dict)

    def number(self, column: str) -> float | None:
        """Return the public number for missing entries of a numeric column, or None."""
        value = self.fill.get(column)
        return value if isinstance(value, int | float) else None

    def level(self, column: str) -> Level | None:
        """Return the public level for missing entries of a categorical column, or None."""
        value = self.fill.get(column)
        return value if isinstance(value, str | int) else None

    def coded(self, levels: Mapping[str, tuple[Level, ...]]) -> tuple[Coded, ...]:
        """Return categorical columns as indices of their public levels."""
        return tuple(Coded(c, v, self.level(c), self.other.get(c)) for c, v in levels.items())


class StatisticPrivacy(ABC, Generic[S]):
    """What the privacy core must know of one kind of statistic."""

    weight: float = 1.0
    """The relative share of the budget where the owner names none."""

    counts_left_out: bool = False
    """Whether the statistic is the number of records of its part that are not complete. Such a part
    is read on its own, since a record counts elsewhere only where all columns are present."""

    @abstractmethod
    def part(self, statistic: S, columns: PublicColumns) -> Part:
        """Return what to sum over the records; the sums become the statistic's integers."""

    def integers(self, statistic: S, sums: np.ndarray) -> np.ndarray:
        """Return the exact sums (components by groups) in the statistic's one integer unit."""
        return sums


PRIVACY_PARTS = ("part", "integers", "weight", "counts_left_out")
"""What the privacy core must know of every statistic."""

_PRIVACY: dict[str, StatisticPrivacy[Any]] = {}


def register_privacy(kind: str) -> Callable[[P], P]:
    """Return a decorator that gives the statistics of one kind their part in the privacy core.

    Args:
        kind: the statistic's ``kind`` on the wire.

    Returns:
        A decorator for a subclass of `StatisticPrivacy`.
    """

    def decorate(privacy: P) -> P:
        if not (isinstance(privacy, type) and issubclass(privacy, StatisticPrivacy)):
            raise ArgumentError("privacy: must be a subclass of StatisticPrivacy")
        missing = sorted(getattr(privacy, "__abstractmethods__", frozenset()))
        if missing:
            raise ArgumentError(
                f"privacy: {privacy.__name__} lacks {', '.join(missing)}; "
                f"the privacy part of a statistic has {', '.join(PRIVACY_PARTS)}"
            )
        if kind in _PRIVACY:
            raise ArgumentError(
                f"privacy: {kind!r} has a privacy part already, as have {', '.join(_PRIVACY)}"
            )
        _PRIVACY[kind] = privacy()
        return privacy

    return decorate


def unregister_privacy(kind: str) -> None:
    """Forget a part that was registered from outside; those that come with noisewise stay."""
    if kind in _PRIVACY and type(_PRIVACY[kind]).__module__.startswith("noisewise."):
        raise ArgumentError(f"privacy: {kind!r} comes with noisewise, and its proved bound stays")
    _PRIVACY.pop(kind, None)


def find_privacy(kind: str) -> StatisticPrivacy[Any]:
    """Return the privacy part of a kind of statistic; an ArgumentError names those there are."""
    if kind not in _PRIVACY:
        raise ArgumentError(
            f"statistic: {kind!r} has no privacy part, so it is not known what to sum; "
            f"there are {', '.join(_PRIVACY)}"
        )
    return _PRIVACY[kind]


def _in_one_unit(statistic: Gram | Monomials | PowerSums, sums: np.ndarray) -> np.ndarray:
    """Bring components of lower degree to the statistic's one integer unit."""
    lift = [2 ** (statistic.bits * (statistic.degree - len(p))) for p in statistic.products]
    return np.asarray(sums * np.array(lift, np.int64)[:, None])


@register_privacy(Monomials.kind)
@register_privacy(Gram.kind)
class BoxProductsPrivacy(StatisticPrivacy[Gram | Monomials]):
    """The Gram matrix of columns in the box, and all monomials up to a degree; equal shares."""

    def part(self, statistic: Gram | Monomials, columns: PublicColumns) -> Part:
        """Return the products of columns that are mapped to the box."""
        features = tuple(
            boxed(c, columns.bounds[c], bits=statistic.bits, fill=columns.number(c))
            for c in statistic.columns
        )
        return ProductSums(features, statistic.products)

    def integers(self, statistic: Gram | Monomials, sums: np.ndarray) -> np.ndarray:
        """Return the sums in one integer unit."""
        return _in_one_unit(statistic, sums)


@register_privacy(PowerSums.kind)
class PowerSumsPrivacy(StatisticPrivacy[PowerSums]):
    """Sums of t and perhaps t² over an interval."""

    def part(self, statistic: PowerSums, columns: PublicColumns) -> Part:
        """Return the powers of the column on its lattice."""
        lattice = power_sums_lattice(statistic, columns.number(statistic.column))
        return ProductSums((lattice,), statistic.products)

    def integers(self, statistic: PowerSums, sums: np.ndarray) -> np.ndarray:
        """Return the sums in one integer unit."""
        return _in_one_unit(statistic, sums)


def power_sums_lattice(statistic: PowerSums, fill: float | None = None) -> Scaled:
    """Return the lattice column that a PowerSums statistic sums."""
    return scaled(
        statistic.column,
        Bounds(statistic.lower, statistic.upper),
        bits=statistic.bits,
        origin=statistic.origin,
        scale=statistic.scale,
        outside=statistic.outside,
        fill=fill,
    )


@register_privacy(Tables.kind)
@register_privacy(PersonTables.kind)
class TablesPrivacy(StatisticPrivacy[Tables]):
    """Contingency tables of records, or of people."""

    def part(self, statistic: Tables, columns: PublicColumns) -> Part:
        """Return the cells to be counted."""
        order = statistic.columns
        cliques = tuple(tuple(order.index(c) for c in clique) for clique in statistic.cliques)
        return CellCounts(columns.coded({c: statistic.levels[c] for c in order}), cliques)


@register_privacy(CellSums.kind)
class CellSumsPrivacy(StatisticPrivacy[CellSums]):
    """Products of numeric columns within cells of factors."""

    def part(self, statistic: CellSums, columns: PublicColumns) -> Part:
        """Return the products of columns that are mapped to the box, and the cells."""
        features = tuple(_boxed_product(c, columns, statistic.bits) for c in statistic.numeric)
        codes = columns.coded({c: statistic.levels[c] for c in statistic.factors})
        return CellProducts(features, codes, statistic.blocks)

    def integers(self, statistic: CellSums, sums: np.ndarray) -> np.ndarray:
        """Return the sums in one integer unit."""
        lift = [2 ** (statistic.bits * (2 - len(b.product))) for b in statistic.blocks]
        cells = [math.prod(statistic.shape(b)) for b in statistic.blocks]
        return np.asarray(sums * np.repeat(np.array(lift, np.int64), cells)[:, None])


def _boxed_product(
    column: NumericColumn, columns: PublicColumns, bits: int
) -> Scaled | ScaledProduct:
    """Return the map from a column, or a product of some, to [-1, 1]."""
    if len(column) == 1:
        return boxed(column[0], columns.bounds[column[0]], bits=bits, fill=columns.number(*column))
    parts = {c: columns.bounds[c] for c in column}
    name = numeric_name(column)
    try:
        bounds = product_bounds(column, parts)
    except ReleaseError:
        raise ArgumentError(
            f"bounds: those of {name} lie beyond ±1e145 or less than 2e-145 apart; use another unit"
        ) from None
    multiplicands = tuple(
        Multiplicand(c, parts[c].lower, parts[c].upper, columns.number(c)) for c in column
    )
    return ScaledProduct(multiplicands, boxed(name, bounds, bits=bits))


@register_privacy(Clamped.kind)
class ClampedPrivacy(StatisticPrivacy[Clamped]):
    """How many records lie outside their bounds."""

    weight = 0.05
    """A hint, not a result: a twentieth of what the sums get (chosen)."""

    def part(self, statistic: Clamped, columns: PublicColumns) -> Part:
        """Return one indicator per column."""
        outside = tuple(
            Outside(c, columns.bounds[c].lower, columns.bounds[c].upper, columns.number(c))
            for c in statistic.columns
        )
        return ProductSums(outside, statistic.products)


@register_privacy(LeftOut.kind)
class LeftOutPrivacy(StatisticPrivacy[LeftOut]):
    """How many records have gaps."""

    weight = ClampedPrivacy.weight
    """A hint, too."""
    counts_left_out = True

    def part(self, statistic: LeftOut, columns: PublicColumns) -> Part:
        """Return a count of all records: whatever is missing in the one column read is filled."""
        return ProductSums((Outside(next(iter(columns.bounds)), 0.0, 1.0, 0.0),), ((),))


@register_privacy(ProbabilitySums.kind)
@register_privacy(QuantileSum.kind)
class PartitionSumsPrivacy(StatisticPrivacy[ProbabilitySums | QuantileSum]):
    """Sums over partitions of the table, which are fitted and not summed over records."""

    def part(self, statistic: ProbabilitySums | QuantileSum, columns: PublicColumns) -> Part:
        """Raise a TypeError: nothing is summed over records."""
        raise TypeError(f"{statistic.kind}: fitted in partitions, not summed over records")

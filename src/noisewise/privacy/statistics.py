"""The statistics that come with noisewise: what to sum, and shares of the budget."""

from __future__ import annotations

import math

import numpy as np

from noisewise.artifact import (
    ArgumentError,
    Bounds,
    Clamped,
    Gram,
    Monomials,
    PersonTables,
    PowerSums,
    ProbabilitySums,
    QuantileSum,
    ReleaseError,
    Tables,
)
from noisewise.artifact.statistics import CellSums
from noisewise.artifact.statistics.cell_sums import NumericColumn, numeric_name, product_bounds
from noisewise.privacy.lattice import (
    Multiplicand,
    Outside,
    Scaled,
    ScaledProduct,
    boxed,
    scaled,
)
from noisewise.privacy.statistic_privacy import (
    PublicColumns,
    StatisticPrivacy,
    register_privacy,
)
from noisewise.privacy.sum_plan import CellCounts, CellProducts, Part, ProductSums


def _in_one_unit(statistic: Gram | Monomials | PowerSums, sums: np.ndarray) -> np.ndarray:
    """Bring components of lower degree to the statistic's one integer unit."""
    lift = [2 ** (statistic.bits * (statistic.degree - len(p))) for p in statistic.products]
    return np.asarray(sums * np.array(lift, np.int64)[:, None])


def _box_products(statistic: Gram | Monomials, columns: PublicColumns) -> ProductSums:
    """Return the products of columns that are mapped to the box."""
    features = tuple(
        boxed(c, columns.bounds[c], bits=statistic.bits, fill=columns.number(c))
        for c in statistic.columns
    )
    return ProductSums(features, statistic.products)


@register_privacy(Gram.kind)
class GramPrivacy(StatisticPrivacy[Gram]):
    """The Gram matrix of columns in the box."""

    def part(self, statistic: Gram, columns: PublicColumns) -> Part:
        """Return the products of columns that are mapped to the box."""
        return _box_products(statistic, columns)

    def integers(self, statistic: Gram, sums: np.ndarray) -> np.ndarray:
        """Return the sums in one integer unit."""
        return _in_one_unit(statistic, sums)


@register_privacy(Monomials.kind)
class MonomialsPrivacy(StatisticPrivacy[Monomials]):
    """All monomials up to a degree; they share the budget evenly with the Gram matrix."""

    def part(self, statistic: Monomials, columns: PublicColumns) -> Part:
        """Return the products of columns that are mapped to the box."""
        return _box_products(statistic, columns)

    def integers(self, statistic: Monomials, sums: np.ndarray) -> np.ndarray:
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


@register_privacy(ProbabilitySums.kind)
@register_privacy(QuantileSum.kind)
class PartitionSumsPrivacy(StatisticPrivacy[ProbabilitySums | QuantileSum]):
    """Sums over partitions of the table, which are fitted and not summed over records."""

    def part(self, statistic: ProbabilitySums | QuantileSum, columns: PublicColumns) -> Part:
        """Raise a TypeError: nothing is summed over records."""
        raise TypeError(f"{statistic.kind}: fitted in partitions, not summed over records")

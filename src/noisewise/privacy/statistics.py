"""The statistics that come with noisewise: proved bounds, what to sum, and shares of the budget.

Every bound is in the statistic's own integer unit and holds for lattice points, which are points
of the box. Proofs: ``docs/proofs/sensitivity.md`` (numbers below are its sections).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from noisewise.artifact import (
    Bounds,
    Clamped,
    Gram,
    Monomials,
    PersonTables,
    PowerSums,
    ProbabilitySums,
    QuantileSum,
    Tables,
)
from noisewise.privacy.lattice import Coded, Outside, Scaled, boxed, scaled
from noisewise.privacy.sensitivity import (
    PublicColumns,
    Sensitivity,
    StatisticPrivacy,
    register_privacy,
)
from noisewise.privacy.sum_plan import CellCounts, Part, ProductSums


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

    def bound(self, statistic: Gram, replace: bool) -> Sensitivity:
        """Return the bound of sections 2 and 3.

        In box units Δ1 = k(k+2)²/(2(k+1)) and Δ2 = 2√⌊(k+1)²/4⌋ (errata E1).
        """
        k = len(statistic.columns)
        unit = 4**statistic.bits
        if replace:
            l1 = Fraction(k * (k + 2) ** 2, 2 * (k + 1))
            return Sensitivity(math.floor(l1 * unit), 4 * ((k + 1) ** 2 // 4) * unit**2)
        components = k * (k + 3) // 2 + statistic.count
        return Sensitivity(components * unit, components * unit**2)

    def part(self, statistic: Gram, columns: PublicColumns) -> Part:
        """Return the products of columns that are mapped to the box."""
        return _box_products(statistic, columns)

    def integers(self, statistic: Gram, sums: np.ndarray) -> np.ndarray:
        """Return the sums in one integer unit."""
        return _in_one_unit(statistic, sums)


@register_privacy(Monomials.kind)
class MonomialsPrivacy(StatisticPrivacy[Monomials]):
    """All monomials up to a degree; they share the budget evenly with the Gram matrix."""

    def bound(self, statistic: Monomials, replace: bool) -> Sensitivity:
        """Return the bound of sections 2 and 4.

        With N monomials, Δ1 = N - min_t Σ_j C(d+j-1, j) t^j, and Δ2² ≤ 2 Δ1.
        """
        unit = 2 ** (statistic.bits * statistic.degree)
        components = len(statistic.products)
        if not replace:
            return Sensitivity(components * unit, components * unit**2)
        l1 = components - _diagonal_minimum(len(statistic.columns), statistic.degree)
        return Sensitivity(math.floor(l1 * unit), math.floor(2 * l1 * unit**2))

    def part(self, statistic: Monomials, columns: PublicColumns) -> Part:
        """Return the products of columns that are mapped to the box."""
        return _box_products(statistic, columns)

    def integers(self, statistic: Monomials, sums: np.ndarray) -> np.ndarray:
        """Return the sums in one integer unit."""
        return _in_one_unit(statistic, sums)


def _diagonal_minimum(columns: int, degree: int) -> Fraction:
    """Return a lower bound on min_t g(t), g(t) = Σ_{j=1}^{degree} C(d+j-1, j) t^j, t in [-1, 1].

    g is convex (section 4), so its tangent at any point bounds it from below: a floating-point
    guess of the minimiser gives a rigorous bound in exact arithmetic.
    """
    coefficients = [math.comb(columns + j - 1, j) for j in range(1, degree + 1)]
    derivative = np.polynomial.Polynomial([j * c for j, c in enumerate(coefficients, 1)])
    roots = [complex(r) for r in derivative.roots()]
    guess = Fraction(min(roots, key=lambda r: abs(r.imag)).real)
    value = sum((c * guess**j for j, c in enumerate(coefficients, 1)), Fraction(0))
    slope = sum((j * c * guess ** (j - 1) for j, c in enumerate(coefficients, 1)), Fraction(0))
    return value - 2 * abs(slope)


@register_privacy(PowerSums.kind)
class PowerSumsPrivacy(StatisticPrivacy[PowerSums]):
    """Sums of t and perhaps t² over an interval."""

    def bound(self, statistic: PowerSums, replace: bool) -> Sensitivity:
        """Return the bound of section 5.

        A dropped record contributes 0, so 0 joins the interval (thesis B.3).
        """
        lattice = power_sums_lattice(statistic)
        low, high = lattice.low, lattice.high
        if statistic.outside == "drop":
            low, high = min(low, 0), max(high, 0)
        reach = max(abs(low), abs(high))
        unit = 2**statistic.bits
        if not replace:
            parts = [reach * unit ** (statistic.degree - 1), reach**2][: statistic.degree]
            parts += [unit**statistic.degree] * statistic.count
            return Sensitivity(sum(parts), sum(p * p for p in parts))
        if statistic.degree == 1:
            return Sensitivity(high - low, (high - low) ** 2)
        return _with_square(low, high, reach, unit)

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


def _with_square(low: int, high: int, reach: int, unit: int) -> Sensitivity:
    """Return the largest (u-w)(F + |u+w|) over low ≤ w ≤ u ≤ high, and its L2 companion."""

    def l1(u: int, w: int) -> int:
        return (u - w) * (unit + abs(u + w))

    # The interior optimum w = -F/2 (or u = F/2) is a lattice point or lies between two.
    halves = (unit // 2, unit // 2 + 1)
    best = max(max(l1(high, _into(-h, low, high)), l1(_into(h, low, high), low)) for h in halves)
    span = high - low
    # The L2 bound needs reach ≤ F; on integer lattices (F = 1) component by component instead.
    if reach <= unit:
        squared = span**2 * (unit**2 + (2 * reach - span) ** 2)
    else:
        squared = span**2 * unit**2 + reach**4
    return Sensitivity(best, squared)


def _into(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


@register_privacy(Tables.kind)
class TablesPrivacy(StatisticPrivacy[Tables]):
    """Contingency tables."""

    def bound(self, statistic: Tables, replace: bool) -> Sensitivity:
        """Return the bound of section 7 (errata E3).

        Per table one cell loses and one gains, or one alone changes.
        """
        cells = (2 if replace else 1) * len(statistic.cliques)
        unit = self.steps(statistic)
        return Sensitivity(cells * unit, cells * unit**2)

    def steps(self, statistic: Tables) -> int:
        """Return the integer that a record, or a person with one record, adds to a cell."""
        return 1

    def part(self, statistic: Tables, columns: PublicColumns) -> Part:
        """Return the cells to be counted."""
        order = statistic.columns
        codes = tuple(
            Coded(c, statistic.levels[c], columns.level(c), columns.other.get(c)) for c in order
        )
        cliques = tuple(tuple(order.index(c) for c in clique) for clique in statistic.cliques)
        return CellCounts(codes, cliques)


@register_privacy(PersonTables.kind)
class PersonTablesPrivacy(TablesPrivacy):
    """Contingency tables in which a person weighs one: the bound is for all of their records."""

    def steps(self, statistic: Tables) -> int:
        """Return the integer that a person with one record adds to a cell."""
        return 2**statistic.bits if isinstance(statistic, PersonTables) else 1


@register_privacy(Clamped.kind)
class ClampedPrivacy(StatisticPrivacy[Clamped]):
    """How many records lie outside their bounds."""

    weight = 0.05
    """A hint, not a result: a twentieth of what the sums get (chosen)."""

    def bound(self, statistic: Clamped, replace: bool) -> Sensitivity:
        """Return the bound of section 7: each indicator changes by at most one, in any case."""
        return Sensitivity(len(statistic.columns), len(statistic.columns))

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

    def bound(self, statistic: ProbabilitySums | QuantileSum, replace: bool) -> Sensitivity:
        """Return the bound of ``docs/proofs/partition.md``, section 2 (errata E4).

        One partition's lattice values move from end to end.
        """
        components = len(statistic.names)
        return Sensitivity(statistic.reach, statistic.reach**2 // components)

    def part(self, statistic: ProbabilitySums | QuantileSum, columns: PublicColumns) -> Part:
        """Raise a TypeError: nothing is summed over records."""
        raise TypeError(f"{statistic.kind}: fitted in partitions, not summed over records")

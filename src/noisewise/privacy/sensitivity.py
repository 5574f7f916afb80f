"""How far one person can move a statistic: one proved bound per statistic.

Every bound is in the statistic's own integer unit and holds for lattice points, which are points
of the box. Proofs: ``docs/proofs/sensitivity.md`` (numbers below are its sections). The relations:

* ``replace-one``: one record is exchanged for any other;
* ``add-remove``: one record appears or disappears; then n is secret and counted with noise;
* ``move``: replace-one where the table is split by a secret group column: the record may leave one
  group and enter another (section 6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

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
    Statistic,
    Tables,
)
from noisewise.privacy.lattice import Scaled, scaled

Relation = Literal["replace-one", "add-remove", "move"]


@dataclass(frozen=True)
class Sensitivity:
    """L1 and L2 sensitivity in integer units; ``l2_squared`` is exact, L2 itself irrational."""

    l1: int
    l2_squared: int

    @property
    def l2(self) -> float:
        """A float64 that is not below the true root."""
        root = math.isqrt(self.l2_squared)
        if root * root == self.l2_squared and float(root) == root:
            return float(root)
        return math.nextafter(math.sqrt(self.l2_squared), math.inf)


def sensitivity(statistic: Statistic, relation: Relation) -> Sensitivity:
    """The bound for any statistic under any relation."""
    if relation == "move":
        return _moved(_bound(statistic, "replace-one"), _bound(statistic, "add-remove"))
    return _bound(statistic, relation)


def _bound(statistic: Statistic, relation: Relation) -> Sensitivity:
    replace = relation == "replace-one"
    if isinstance(statistic, Gram):
        return _gram(statistic, replace)
    if isinstance(statistic, Monomials):
        return _monomials(statistic, replace)
    if isinstance(statistic, PowerSums):
        return _power_sums(statistic, replace)
    if isinstance(statistic, Tables):
        return _tables(statistic, replace)
    if isinstance(statistic, ProbabilitySums | QuantileSum):
        return _partitions(statistic)
    return _clamped(statistic)


def _moved(replace: Sensitivity, single: Sensitivity) -> Sensitivity:
    """Section 6: out of one group, into another; or replaced where it is."""
    return Sensitivity(
        max(replace.l1, 2 * single.l1), max(replace.l2_squared, 2 * single.l2_squared)
    )


def _gram(statistic: Gram, replace: bool) -> Sensitivity:
    """Sections 2 and 3. Δ1 = k(k+2)²/(2(k+1)), Δ2 = 2√⌊(k+1)²/4⌋ in box units (errata E1)."""
    k = len(statistic.columns)
    unit = 4**statistic.bits
    if replace:
        l1 = Fraction(k * (k + 2) ** 2, 2 * (k + 1))
        return Sensitivity(math.floor(l1 * unit), 4 * ((k + 1) ** 2 // 4) * unit**2)
    components = k * (k + 3) // 2 + statistic.count
    return Sensitivity(components * unit, components * unit**2)


def _monomials(statistic: Monomials, replace: bool) -> Sensitivity:
    """Sections 2 and 4. With N monomials, Δ1 = N - min_t Σ_j C(d+j-1, j) t^j, and Δ2² ≤ 2 Δ1."""
    unit = 2 ** (statistic.bits * statistic.degree)
    components = len(statistic.products)
    if not replace:
        return Sensitivity(components * unit, components * unit**2)
    l1 = components - _diagonal_minimum(len(statistic.columns), statistic.degree)
    return Sensitivity(math.floor(l1 * unit), math.floor(2 * l1 * unit**2))


def _diagonal_minimum(columns: int, degree: int) -> Fraction:
    """A lower bound on min_t g(t), g(t) = Σ_{j=1}^{degree} C(d+j-1, j) t^j, t in [-1, 1].

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


def power_sums_lattice(statistic: PowerSums, fill: float | None = None) -> Scaled:
    """The lattice column a PowerSums statistic sums."""
    return scaled(
        statistic.column,
        Bounds(statistic.lower, statistic.upper),
        bits=statistic.bits,
        origin=statistic.origin,
        scale=statistic.scale,
        outside=statistic.outside,
        fill=fill,
    )


def _power_sums(statistic: PowerSums, replace: bool) -> Sensitivity:
    """Section 5. A dropped record contributes 0, so 0 joins the interval (thesis B.3)."""
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


def _with_square(low: int, high: int, reach: int, unit: int) -> Sensitivity:
    """Section 5: max of (u-w)(F + |u+w|) over low ≤ w ≤ u ≤ high, and of its L2 companion."""

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


def _tables(statistic: Tables, replace: bool) -> Sensitivity:
    """Section 7 (errata E3): per table one cell loses and one gains, or one alone changes."""
    cells = (2 if replace else 1) * len(statistic.cliques)
    unit = 2**statistic.bits if isinstance(statistic, PersonTables) else 1
    return Sensitivity(cells * unit, cells * unit**2)


def _partitions(statistic: ProbabilitySums | QuantileSum) -> Sensitivity:
    """``docs/proofs/partition.md``, section 2: one partition's lattice values, end to end (E4)."""
    components = len(statistic.names)
    return Sensitivity(statistic.reach, statistic.reach**2 // components)


def _clamped(statistic: Clamped) -> Sensitivity:
    """Section 7: each indicator changes by at most one, under either relation."""
    return Sensitivity(len(statistic.columns), len(statistic.columns))

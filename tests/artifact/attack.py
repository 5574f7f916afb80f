"""What an attacker finds: pairs of records that move a statistic far, component by component.

A lower bound on every sensitivity, from the definitions alone: noise that is worth less than these
pairs show cannot keep its promise, whatever formula it was made by.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from noisewise.artifact import (
    Bounds,
    Clamped,
    Gram,
    Monomials,
    PersonTables,
    PowerSums,
    ProbabilitySums,
    QuantileSum,
    Release,
    Selection,
    Statistic,
    Tables,
)
from noisewise.artifact.bounds import lattice_map
from noisewise.artifact.statistics import CellSums

Contribution = tuple[int, ...]


def contributions(statistic: Statistic) -> list[Contribution]:
    """What some telling records add to the integers."""
    if isinstance(statistic, Gram | Monomials):
        k, f = len(statistic.columns), 2**statistic.bits
        corners = [(-f,) * m + (f,) * (k - m) for m in range(k + 1)]
        inside = [(t,) * k for t in (-f // (k + 1), -f // 2, -f // 3, 0)]
        return [_products(statistic, r) for r in (*corners, *inside)]
    if isinstance(statistic, PowerSums):
        limits = Bounds(statistic.lower, statistic.upper)
        lattice = lattice_map(limits, statistic.bits, statistic.origin, statistic.scale)
        half = 2**statistic.bits // 2
        points = [min(max(u, lattice.low), lattice.high) for u in (-half, 0, half)]
        points += [lattice.low, lattice.high, *([0] if statistic.outside == "drop" else [])]
        return [_products(statistic, (u,)) for u in set(points)]
    if isinstance(statistic, Tables):
        step = 2**statistic.bits if isinstance(statistic, PersonTables) else 1
        first, last = list[int](), list[int]()
        for cells in statistic.sizes:
            first += [step] + [0] * (cells - 1)
            last += [0] * (cells - 1) + [step]
        return [tuple(first), tuple(last)]
    if isinstance(statistic, CellSums):
        k, f = len(statistic.numeric), 2**statistic.bits
        ends = [(-f,) * m + (f,) * (k - m) for m in range(k + 1)]
        inner = [(0,) * k, (f // 2,) * k]
        return [_cells(statistic, r, level) for r in (*ends, *inner) for level in (0, 1)]
    if isinstance(statistic, Clamped):
        return [(1,) * len(statistic.columns), (0,) * len(statistic.columns)]
    assert isinstance(statistic, ProbabilitySums | QuantileSum)
    low = -(2**statistic.bits) if isinstance(statistic, QuantileSum) else 0
    return [(2**statistic.bits,) * len(statistic.names), (low,) * len(statistic.names)]


def _products(statistic: Gram | Monomials | PowerSums, record: Sequence[int]) -> Contribution:
    f, degree = 2**statistic.bits, statistic.degree
    return tuple(
        math.prod(record[i] for i in p) * f ** (degree - len(p)) for p in statistic.products
    )


def _cells(statistic: CellSums, record: Sequence[int], level: int) -> Contribution:
    """What a record adds that has the first, or the last, level of every factor."""
    amounts: list[int] = []
    for block in statistic.blocks:
        cells = [0] * math.prod(statistic.shape(block))
        lift = 2 ** (statistic.bits * (2 - len(block.product)))
        cells[-level] = math.prod(record[i] for i in block.product) * lift
        amounts += cells
    return tuple(amounts)


def reached(release: Release, statistic: Statistic) -> tuple[int, int]:
    """The largest L1 and squared L2 distance between neighbours that was found."""
    records = contributions(statistic)
    replaced = [
        tuple(a - b for a, b in zip(one, other, strict=True))
        for one, other in itertools.combinations(records, 2)
    ]
    if release.guarantee.neighbours == "add-remove" and not statistic.over_partitions:
        moves = records
    elif release.groups is not None and release.guarantee.within is None:
        moves = [*replaced, *(one + other for one in records for other in records)]
    else:
        moves = replaced
    l1, l2_squared = ([sum(size(c) for c in m) for m in moves] for size in (abs, lambda c: c * c))
    return max(l1, default=0), max(l2_squared, default=0)


def searched_at_least(release: Release, selection: Selection) -> Fraction:
    """What a search for bounds is worth: one record from the first candidate to the last."""
    if selection.search is None:
        return Fraction(selection.cost)
    moved = 1 if release.guarantee.neighbours == "add-remove" else 2
    noise = selection.search.noise
    scale = Fraction(noise.scale)
    return moved / scale if noise.mechanism == "laplace" else moved / (2 * scale**2)


def spent_at_least(release: Release) -> Fraction:
    """The epsilon, or rho, that the noise is worth against this attack."""
    spent = sum((searched_at_least(release, s) for s in release.selections), Fraction(0))
    for block in release.blocks:
        l1, l2_squared = reached(release, block.statistic)
        scale = Fraction(block.noise.scale)
        laplace = block.noise.mechanism == "laplace"
        spent += l1 / scale if laplace else l2_squared / (2 * scale**2)
        spent += Fraction(block.statistic.extra_cost)
    return spent

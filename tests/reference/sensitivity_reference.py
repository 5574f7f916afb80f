"""What one record contributes, straight from the definitions, and the distance two records make."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from noisewise.artifact import Gram, Monomials, PowerSums
from noisewise.artifact.statistics import CellSums


def monomial_contribution(
    statistic: Gram | Monomials, point: Sequence[int], *, count: bool
) -> list[int]:
    """Integers a record at this lattice point adds; point in steps of 2**-bits."""
    unit = 2**statistic.bits
    found = []
    for product in statistic.products:
        if not product and not count:
            continue
        value = 1
        for i in product:
            value *= int(point[i])
        found.append(value * unit ** (statistic.degree - len(product)))
    return found


def power_contribution(statistic: PowerSums, u: int | None, *, count: bool) -> list[int]:
    """u is the lattice value; None a dropped record."""
    unit = 2**statistic.bits
    value = 0 if u is None else int(u)
    found = [value**g * unit ** (statistic.degree - g) for g in range(1, statistic.degree + 1)]
    return found + [unit**statistic.degree] * count


def cell_contribution(
    statistic: CellSums, point: Sequence[int], levels: Sequence[int]
) -> list[int]:
    """Integers a record adds: one cell of every block; levels are indices, one per factor."""
    unit = 2**statistic.bits
    found = []
    for product, within in statistic.blocks:
        value = unit ** (2 - len(product))
        for i in product:
            value *= int(point[i])
        cells = itertools.product(
            *(range(len(statistic.levels[statistic.factors[f]])) for f in within)
        )
        found += [value if cell == tuple(levels[f] for f in within) else 0 for cell in cells]
    return found


def lattice_points(columns: int, bits: int) -> np.ndarray:
    """Every lattice point of the box."""
    line = range(-(2**bits), 2**bits + 1)
    return np.array(list(itertools.product(line, repeat=columns)), dtype=np.int64)


def largest_distances(contributions: np.ndarray) -> tuple[int, int]:
    """Exhaustive L1 and squared L2 over all pairs of rows."""
    l1 = l2 = 0
    for row in contributions:
        difference = np.abs(contributions - row)
        l1 = max(l1, int(difference.sum(axis=1).max()))
        l2 = max(l2, int((difference**2).sum(axis=1).max()))
    return l1, l2

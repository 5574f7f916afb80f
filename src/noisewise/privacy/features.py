"""Statistic → what to sum → integers in the statistic's unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from noisewise.artifact import (
    Bounds,
    Clamped,
    Gram,
    Level,
    Monomials,
    PowerSums,
    ProbabilitySums,
    QuantileSum,
    Statistic,
    Tables,
)
from noisewise.privacy.lattice import Coded, Outside, boxed
from noisewise.privacy.plan import CellCounts, Part, ProductSums
from noisewise.privacy.sensitivity import power_sums_lattice


def part_of(
    statistic: Statistic,
    bounds: Mapping[str, Bounds],
    fill: Mapping[str, float | Level],
    other: Mapping[str, Level] | None = None,
) -> Part:
    """The part of a plan whose sums make up this statistic."""
    known: Mapping[str, Any] = fill
    if isinstance(statistic, Gram | Monomials):
        features = tuple(
            boxed(c, bounds[c], bits=statistic.bits, fill=known.get(c)) for c in statistic.columns
        )
        return ProductSums(features, statistic.products)
    if isinstance(statistic, PowerSums):
        lattice = power_sums_lattice(statistic, known.get(statistic.column))
        return ProductSums((lattice,), statistic.products)
    if isinstance(statistic, Clamped):
        outside = tuple(
            Outside(c, bounds[c].lower, bounds[c].upper, known.get(c)) for c in statistic.columns
        )
        return ProductSums(outside, statistic.products)
    if isinstance(statistic, ProbabilitySums | QuantileSum):
        raise TypeError(f"{statistic.kind}: fitted in partitions, not summed over records")
    return _cells(statistic, known, other or {})


def _cells(statistic: Tables, fill: Mapping[str, Any], other: Mapping[str, Level]) -> CellCounts:
    columns = statistic.columns
    codes = tuple(Coded(c, statistic.levels[c], fill.get(c), other.get(c)) for c in columns)
    cliques = tuple(tuple(columns.index(c) for c in clique) for clique in statistic.cliques)
    return CellCounts(codes, cliques)


def integers(statistic: Statistic, sums: np.ndarray) -> np.ndarray:
    """Bring components of lower degree to the statistic's one integer unit."""
    if isinstance(statistic, Tables | Clamped | ProbabilitySums | QuantileSum):
        return sums
    lift = [2 ** (statistic.bits * (statistic.degree - len(p))) for p in statistic.products]
    return np.asarray(sums * np.array(lift, np.int64)[:, None])

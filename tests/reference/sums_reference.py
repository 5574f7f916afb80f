"""Carrying out a plan the obvious way: one record at a time, in Python's own numbers.

The oracle for the Arrow path and for every engine. Python's floats are IEEE doubles and its
integers have no end, so each step below is the definition itself (errata E6).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from noisewise.release.lattice import Coded, Feature, Outside
from noisewise.release.plan import CellCounts, Part, ProductSums, SumPlan, Sums

Record = dict[str, Any]


def reference_sums(records: list[Record], plan: SumPlan) -> Sums:
    parts = [[[0] * plan.groups for _ in _components(part)] for part in plan.parts]
    sizes = [0] * plan.groups
    missing: set[str] = set()
    unlisted: set[str] = set()
    for record in records:
        numbers = {c: _number(record[c], fill) for c, fill in plan.numeric.items()}
        levels = {code.column: _level(record[code.column], code) for code in plan.codes}
        missing |= {c for c, x in (numbers | levels).items() if x is None}
        foreign = {c.column for c in plan.codes if _unknown(levels[c.column], c)}
        unlisted |= foreign
        if None in numbers.values() or None in levels.values() or foreign:
            continue
        group = 0 if plan.group is None else plan.group.levels.index(levels[plan.group.column])
        sizes[group] += 1
        for part, sums in zip(plan.parts, parts, strict=True):
            for component, amount in _contribution(part, numbers, levels):
                sums[component][group] += amount
    return Sums(
        tuple(np.array(sums, np.int64) for sums in parts),
        np.array(sizes, np.int64),
        tuple(sorted(missing)),
        tuple(sorted(unlisted)),
    )


def _number(value: Any, fill: float | None) -> float | None:
    absent = value is None or math.isnan(value)
    return fill if absent else float(value)


def _level(value: Any, code: Coded) -> Any:
    absent = value is None or (isinstance(value, float) and math.isnan(value))
    return code.fill if absent else value


def _unknown(level: Any, code: Coded) -> bool:
    return level is not None and level not in code.levels


def _components(part: Part) -> list[Any]:
    """What the components of a part are: products, cells, or lattice points."""
    if isinstance(part, ProductSums):
        return list(part.products)
    if isinstance(part, CellCounts):
        return [
            (clique, cell)
            for clique in part.cliques
            for cell in itertools.product(*(range(len(part.codes[i].levels)) for i in clique))
        ]
    return list(range(part.feature.low, part.feature.high + 1))


def _contribution(part: Part, numbers: dict[str, float], levels: Record) -> list[tuple[int, int]]:
    """(component, amount) pairs of one complete record."""
    if isinstance(part, ProductSums):
        values = [_value(numbers[f.column], f) for f in part.features]
        return [
            (i, math.prod(values[j] for j in product)) for i, product in enumerate(part.products)
        ]
    if isinstance(part, CellCounts):
        found, start = [], 0
        for clique in part.cliques:
            cell = 0
            for code in (part.codes[i] for i in clique):
                cell = cell * len(code.levels) + code.levels.index(levels[code.column])
            found.append((start + cell, 1))
            start += math.prod(len(part.codes[i].levels) for i in clique)
        return found
    return [(_value(numbers[part.feature.column], part.feature) - part.feature.low, 1)]


def _value(x: float, feature: Feature) -> int:
    outside = x < feature.lower or x > feature.upper
    if isinstance(feature, Outside):
        return int(outside)
    if outside and feature.outside == "drop":
        return 0
    y = (x - feature.base) * feature.factor
    if y < feature.low:
        return feature.low
    return feature.high if y >= feature.high else math.floor(y)

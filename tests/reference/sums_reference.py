"""Carrying out a plan the obvious way: one record at a time, in Python's own numbers.

The oracle for the Arrow path and for every engine. Python's floats are IEEE doubles and its
integers have no end, so each step below is the definition itself (errata E6).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from datetime import date, datetime
from functools import cache
from typing import Any

import numpy as np

from noisewise.privacy.lattice import Coded, Feature, Outside, Outward, Scaled, ScaledProduct
from noisewise.privacy.selection import Condition
from noisewise.privacy.sum_plan import (
    Capped,
    CellCounts,
    CellProducts,
    Part,
    Person,
    ProductSums,
    SumPlan,
    Sums,
)

Record = dict[str, Any]


def reference_sums(records: list[Record], plan: SumPlan) -> Sums:
    complete: list[tuple[dict[str, Any], Record, Any]] = []
    missing: set[str] = set()
    unlisted: set[str] = set()
    for record in records:
        if not all(_holds(record[condition.column], condition) for condition in plan.where):
            continue
        numbers = {c: _number(record[c], fill) for c, fill in plan.numeric.items()}
        levels = {code.column: _level(record[code.column], code) for code in plan.codes}
        person = None if plan.person is None else _person(record[plan.person.column])
        gaps = {c for c, x in (numbers | levels).items() if x is None}
        if plan.person is not None and person is None:
            gaps.add(plan.person.column)
        foreign = {c.column for c in plan.codes if _unknown(levels[c.column], c)}
        missing |= gaps
        unlisted |= foreign
        if not gaps and not foreign:
            complete.append((numbers, levels, person))
    if isinstance(plan.person, Capped):
        complete = _first_of_each(complete, plan.person.records)
    parts = [[[0] * plan.groups for _ in _components(part)] for part in plan.parts]
    sizes = [0] * plan.groups
    owned = Counter(person for _, _, person in complete)
    for numbers, levels, person in complete:
        group = 0 if plan.group is None else plan.group.levels.index(levels[plan.group.column])
        sizes[group] += 1
        share = plan.person.steps // owned[person] if isinstance(plan.person, Person) else 1
        for part, sums in zip(plan.parts, parts, strict=True):
            for component, amount in _contribution(part, numbers, levels):
                sums[component][group] += amount * share
    return Sums(
        tuple(np.array(sums, np.int64) for sums in parts),
        np.array([len(owned)] if isinstance(plan.person, Person) else sizes, np.int64),
        tuple(sorted(missing)),
        tuple(sorted(unlisted)),
    )


def _first_of_each(complete: list[Any], most: int) -> list[Any]:
    """The first few records of each person: what is kept where priorities grow with the rows."""
    seen: Counter[Any] = Counter()
    kept = []
    for entry in complete:
        seen[entry[2]] += 1
        if seen[entry[2]] <= most:
            kept.append(entry)
    return kept


def _holds(value: Any, condition: Condition) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return False
    if condition.is_numeric:
        value = float(value)
    return {
        "=": lambda: value == condition.constant,
        "!=": lambda: value != condition.constant,
        "<": lambda: value < condition.constant,
        "<=": lambda: value <= condition.constant,
        ">": lambda: value > condition.constant,
        ">=": lambda: value >= condition.constant,
    }[condition.operator]()


def _person(value: Any) -> Any:
    """Python counts 1, 1.0 and True as one key, and 0.0 and -0.0 too."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _number(value: Any, fill: float | None) -> float | None:
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, date):
        value = (value - date(1970, 1, 1)).days
    absent = value is None or math.isnan(value)
    return fill if absent else float(value)


def _level(value: Any, code: Coded) -> Any:
    absent = value is None or (isinstance(value, float) and math.isnan(value))
    if absent:
        return code.fill
    return value if code.other is None or value in code.levels else code.other


def _unknown(level: Any, code: Coded) -> bool:
    return level is not None and level not in code.levels


@cache
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
    if isinstance(part, CellProducts):
        return [
            (product, within, cell)
            for product, within in part.blocks
            for cell in itertools.product(*(part.codes[i].levels for i in within))
        ]
    return list(range(part.feature.low, part.feature.high + 1))


def _contribution(part: Part, numbers: dict[str, Any], levels: Record) -> list[tuple[int, int]]:
    """(component, amount) pairs of one complete record."""
    if isinstance(part, ProductSums):
        values = [_feature(numbers, f) for f in part.features]
        return [
            (i, math.prod(values[j] for j in product)) for i, product in enumerate(part.products)
        ]
    if isinstance(part, CellProducts):
        values = [_feature(numbers, f) for f in part.features]
        return [
            (i, math.prod(values[j] for j in product))
            for i, (product, within, cell) in enumerate(_components(part))
            if cell == tuple(levels[part.codes[j].column] for j in within)
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


def _feature(numbers: dict[str, Any], feature: Feature) -> int:
    if not isinstance(feature, ScaledProduct):
        return _value(numbers[feature.column], feature)
    product = 1.0
    for part in feature.multiplicands:
        x = min(max(numbers[part.column], part.lower), part.upper)
        product *= 0.0 if abs(x) < feature.vanishing else x
    return _value(product, feature.lattice)


def _value(x: float, feature: Scaled | Outside | Outward) -> int:
    if isinstance(feature, Outward):
        return _outward(x, feature)
    outside = x < feature.lower or x > feature.upper
    if isinstance(feature, Outside):
        return int(outside)
    if outside and feature.outside == "drop":
        return 0
    y = (x - feature.base) * feature.factor
    if y < feature.low:
        return feature.low
    return feature.high if y >= feature.high else math.floor(y)


def _outward(x: float, feature: Outward) -> int:
    """The next candidate away from the anchor; beyond all of them, the outermost one."""
    points = list(enumerate(feature.candidates))
    if x < feature.candidates[feature.anchor]:
        return max((i for i, c in points if c <= x), default=0)
    return min((i for i, c in points if c >= x), default=len(points) - 1)

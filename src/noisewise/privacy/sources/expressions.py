"""One record's worth of a plan as Ibis expressions: the same integers from every engine.

Engines agree on IEEE subtraction, product and floor, and on comparing numbers; on little else. So:

- constants travel as text and are cast (DuckDB and Spark read ``0.1`` as a decimal and round it
  their own way);
- NaN becomes NULL before anything is compared (PostgreSQL and Spark sort it above infinity);
- clamping is written as CASE (``greatest`` and ``clip`` treat NULL and NaN differently);
- a value is clamped *before* the arithmetic, because Polars evaluates every branch of a CASE and
  PostgreSQL refuses overflow and underflow: nothing infinite or huge ever reaches a cast.
"""

from __future__ import annotations

import math
from typing import Any

import ibis

from noisewise.artifact import Level
from noisewise.privacy.lattice import Coded, Feature, Scaled

INLINE_LEVELS = 100
"""Longer public lists go to the engine as a (temporary) table: a long IN is read slowly by Ibis,
and compared term by term by Polars and PostgreSQL."""


def constant(x: float) -> Any:
    """The very float64 the local path uses."""
    return ibis.literal(repr(float(x))).cast("float64")


def bit(condition: Any) -> Any:
    """1 where it holds, else 0."""
    return ibis.ifelse(condition, _whole(1), _whole(0))


def _real(column: Any) -> Any:
    """float64 with NULL for NaN."""
    kind = column.type()
    if kind.is_decimal():
        # Through text, which every engine rounds correctly; decimal to double they do not.
        column = column.cast("string")
    elif kind.is_boolean():
        column = column.cast("int32")  # PostgreSQL has no cast from boolean to double
    x = column.cast("float64")
    return ibis.ifelse(x.isnan(), ibis.null("float64"), x)


def number(table: Any, column: str, fill: float | None) -> Any:
    """A numeric column as float64; missing is NULL, or the fill value."""
    x = _real(table[column])
    return x if fill is None else ibis.coalesce(x, constant(fill))


def value(x: Any, feature: Feature) -> Any:
    """What a present number contributes, as `lattice.evaluate`; NULL stays NULL."""
    outside = (x < constant(feature.lower)) | (x > constant(feature.upper))
    if not isinstance(feature, Scaled):
        return bit(outside)
    least, most = reach(feature)
    near = ibis.cases(
        (x < constant(least), constant(least)), (x > constant(most), constant(most)), else_=x
    )
    u = _scaled(near - constant(feature.base), feature.factor).floor().cast("int64")
    low, high = _whole(feature.low), _whole(feature.high)
    u = ibis.cases((u < low, low), (u > high, high), else_=u)
    return ibis.ifelse(outside, _whole(0), u) if feature.outside == "drop" else u


def _whole(value: int) -> Any:
    """A 64-bit integer: products are at most 2**30, so that the sum of 2**32 records fits."""
    return ibis.literal(value, "int64")


def _scaled(distance: Any, factor: float) -> Any:
    """``distance * factor``; where IEEE rounds that to zero, PostgreSQL would raise instead."""
    if factor < 1:
        vanishing = constant(_vanishing(factor))
        vanishes = (distance <= vanishing) & (distance >= -vanishing)
        distance = ibis.ifelse(vanishes, constant(0), distance)
    return distance * constant(factor)


def _vanishing(factor: float) -> float:
    """The largest number whose product with a factor below one is rounded to zero."""
    x = math.ldexp(1 / factor, -1075)
    while x * factor > 0:
        x = math.nextafter(x, 0)
    while math.nextafter(x, math.inf) * factor == 0:
        x = math.nextafter(x, math.inf)
    return x


def reach(feature: Scaled) -> tuple[float, float]:
    """An interval that decides every record: beyond it, the lattice value is ``low`` or ``high``.

    It is the public interval, unless that is so narrow for its place that rounding keeps its own
    ends short of the lattice's; the local path knows no interval, only the integer clamp.
    """

    def step(x: float) -> int:
        return math.floor((x - feature.base) * feature.factor)

    least, most, widen = feature.lower, feature.upper, feature.upper / 2 - feature.lower / 2
    while step(least) > feature.low or step(most) < feature.high:
        least, most, widen = least - widen, most + widen, widen * 2
    return least, most


def key_of(table: Any, code: Coded) -> Any:
    """A category as text, int64 or (a float column) float64; missing is NULL, or the fill value."""
    column = table[code.column]
    kind = column.type()
    if kind.is_floating():
        key = _real(column)
    elif kind.is_string():
        key = column
    else:
        key = (column.cast("int32") if kind.is_boolean() else column).cast("int64")
    key = key if code.fill is None else ibis.coalesce(key, level_of(code.fill, key))
    if code.other is None:
        return key
    strange = key.notnull() & ~is_listed(key, code)
    return ibis.ifelse(strange, level_of(code.other, key), key)


def person_of(table: Any, column: str) -> Any:
    """Whose record it is; missing is NULL. Of a float column, -0.0 and 0.0 are one person."""
    if not table[column].type().is_floating():
        return table[column]
    x = _real(table[column])
    return ibis.ifelse(x == constant(0), constant(0), x)


def level_of(level: Level, key: Any) -> Any:
    """A level of the public list in the key's own type."""
    kind = key.type()
    return constant(float(level)) if kind.is_floating() else ibis.literal(level, kind)


def is_listed(key: Any, code: Coded) -> Any:
    """Is the key on the public list? Never NULL; nor a join, which could count a record twice."""
    if len(code.levels) <= INLINE_LEVELS:
        found = key.isin([level_of(level, key) for level in code.levels])
    else:
        found = key.isin(public_list(code, key)["level"])
    return found.fill_null(False)


def public_list(code: Coded | None, key: Any) -> Any:
    """The public list as a table of the engine."""
    levels = () if code is None else code.levels
    return ibis.memtable({"level": levels}, schema={"level": str(key.type())})

"""Ibis expressions of what one record contributes to a plan: the same integers from every engine.

Engines agree on IEEE subtraction, product and floor, and on comparing numbers; on little else. So:

- constants travel as text and are cast (DuckDB and Spark read ``0.1`` as a decimal and round it
  their own way);
- NaN becomes NULL before anything is compared (PostgreSQL and Spark sort it above infinity);
- clamping is written as CASE (``greatest`` and ``clip`` treat NULL and NaN differently);
- a value is clamped *before* the arithmetic, because Polars evaluates every branch of a CASE and
  PostgreSQL refuses overflow and underflow: nothing infinite or huge ever reaches a cast, and
  nothing tiny is multiplied with what could be tiny too.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING

import ibis

from noisewise.artifact import Level
from noisewise.privacy.lattice import Coded, Outside, Outward, Scaled, ScaledProduct
from noisewise.privacy.sources.arrow_columns import truth_words
from noisewise.privacy.sources.csv_numbers import EXACT_FLOATS

if TYPE_CHECKING:
    import ibis.expr.types as ir

INLINE_LEVELS = 100
"""Longer public lists go to the engine as a (temporary) table (chosen): a long IN is read slowly by
Ibis, and compared term by term by Polars and PostgreSQL."""


def constant(x: float) -> ir.Value:
    """Return a number as the very float64 the local path uses."""
    return ibis.literal(repr(float(x))).cast("float64")


def bit(condition: ir.Value) -> ir.Value:
    """Return 1 where the condition holds, else 0."""
    return ibis.ifelse(condition, _whole(1), _whole(0))


def _real(column: ir.Column) -> ir.Value:
    """Return a column as float64 with NULL for NaN; a date as days since 1970-01-01."""
    kind = column.type()
    if kind.is_decimal():
        # Through text, which every engine rounds correctly; decimal to double they do not.
        column = column.cast("string")
    elif kind.is_boolean():
        column = column.cast("int32")  # PostgreSQL has no cast from boolean to double
    elif kind.is_timestamp():
        column = column.date().epoch_days()
    elif kind.is_date():
        column = column.epoch_days()
    x = column.cast("float64")
    return ibis.ifelse(x.isnan(), ibis.null("float64"), x)


def number(table: ir.Table, column: str, fill: float | None) -> ir.Value:
    """Return a numeric column as float64; missing is NULL, or the fill value."""
    x = _real(table[column])
    return x if fill is None else ibis.coalesce(x, constant(fill))


def multiplied(columns: Mapping[str, ir.Value], feature: ScaledProduct) -> ir.Value:
    """Return the product of clamped columns, as `lattice.evaluate_columns`; NULL stays NULL."""
    tiny, parts = constant(feature.vanishing), []
    for part in feature.multiplicands:
        x = _clamped(columns[part.column], constant(part.lower), constant(part.upper))
        parts.append(ibis.ifelse((x < tiny) & (x > -tiny), constant(0), x))
    return functools.reduce(operator.mul, parts)


def _clamped(x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    return ibis.cases((x < low, low), (x > high, high), else_=x)


def value(x: ir.Value, feature: Scaled | Outside | Outward) -> ir.Value:
    """Return what a present number contributes, as `lattice.evaluate`; NULL stays NULL."""
    if isinstance(feature, Outward):
        return _outward(x, feature)
    outside = (x < constant(feature.lower)) | (x > constant(feature.upper))
    if not isinstance(feature, Scaled):
        return bit(outside)
    least, most = reach(feature)
    near = _clamped(x, constant(least), constant(most))
    u = _scaled(near - constant(feature.base), feature.factor).floor().cast("int64")
    u = _clamped(u, _whole(feature.low), _whole(feature.high))
    return ibis.ifelse(outside, _whole(0), u) if feature.outside == "drop" else u


def _outward(x: ir.Value, feature: Outward) -> ir.Value:
    """Return the index of the next candidate away from the anchor, by comparisons alone."""
    points, anchor = feature.candidates, feature.anchor
    below = [(x < constant(points[i + 1]), _whole(i)) for i in range(anchor)]
    above = [(x <= constant(points[i]), _whole(i)) for i in range(anchor, feature.high)]
    branches = [*below, *above]
    return ibis.cases(*branches, else_=_whole(feature.high))


def _whole(value: int) -> ir.Value:
    """Return a 64-bit integer: products are at most 2**30, so the sum of 2**32 records fits."""
    return ibis.literal(value, "int64")


def _scaled(distance: ir.Value, factor: float) -> ir.Value:
    """Return ``distance * factor``; PostgreSQL would raise where IEEE rounds that to zero."""
    if factor < 1:
        vanishing = constant(_vanishing(factor))
        vanishes = (distance <= vanishing) & (distance >= -vanishing)
        distance = ibis.ifelse(vanishes, constant(0), distance)
    return distance * constant(factor)


def _vanishing(factor: float) -> float:
    """Return the largest number whose product with a factor below one is rounded to zero."""
    x = math.ldexp(1 / factor, -1075)
    while x * factor > 0:
        x = math.nextafter(x, 0)
    while math.nextafter(x, math.inf) * factor == 0:
        x = math.nextafter(x, math.inf)
    return x


def reach(feature: Scaled) -> tuple[float, float]:
    """Return an interval beyond which the lattice value of any record is ``low`` or ``high``.

    It is the public interval, unless that is so narrow for its place that rounding keeps its own
    ends short of the lattice's; the local path knows no interval, only the integer clamp.
    """

    def step(x: float) -> int:
        return math.floor((x - feature.base) * feature.factor)

    least, most, widen = feature.lower, feature.upper, feature.upper / 2 - feature.lower / 2
    while step(least) > feature.low or step(most) < feature.high:
        least, most, widen = least - widen, most + widen, widen * 2
    return least, most


def key_of(table: ir.Table, code: Coded) -> ir.Value:
    """Return a category as text, int64 or (of floats) float64; missing is NULL, or filled."""
    column = table[code.column]
    kind = column.type()
    if not kind.is_string() and isinstance(code.levels[0], str):
        key = _digits(column, code)
    elif kind.is_floating():
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


def _digits(column: ir.Column, code: Coded) -> ir.Value:
    """Return numbers as text, as `arrow._both_text`: whole ones by their digits, others by ""."""
    kind = column.type()
    if kind.is_boolean():
        text = ibis.ifelse(column, *map(ibis.literal, truth_words(code)))
    elif kind.is_floating():
        x = _real(column)
        is_small = (x < constant(EXACT_FLOATS)) & (x > constant(-EXACT_FLOATS))
        # Nothing huge may reach `floor`, which casts to an integer in some engines.
        small = ibis.ifelse(is_small, x, constant(0.5))
        is_whole = small == small.floor().cast("float64")
        whole = ibis.ifelse(is_whole, small, constant(0)).cast("int64").cast("string")
        text, column = ibis.ifelse(is_whole, whole, ibis.literal("")), x
    else:
        text = column.cast("int64").cast("string")
    return ibis.ifelse(column.isnull(), ibis.null("string"), text)


def person_of(table: ir.Table, column: str) -> ir.Value:
    """Return whose record it is; missing is NULL. Of floats, -0.0 and 0.0 are one person."""
    if not table[column].type().is_floating():
        return table[column]
    x = _real(table[column])
    return ibis.ifelse(x == constant(0), constant(0), x)


def level_of(level: Level, key: ir.Value) -> ir.Value:
    """Return a level of the public list in the key's own type."""
    kind = key.type()
    return constant(float(level)) if kind.is_floating() else ibis.literal(level, kind)


def is_listed(key: ir.Value, code: Coded) -> ir.Value:
    """Return whether the key is on the public list, never NULL.

    It is no join, which could count a record twice.
    """
    if len(code.levels) <= INLINE_LEVELS:
        listed = key.isin([level_of(level, key) for level in code.levels])
    else:
        listed = key.isin(public_list(code, key)["level"])
    return listed.fill_null(False)


def public_list(code: Coded | None, key: ir.Value) -> ir.Table:
    """Return the public list as a table of the engine."""
    levels = () if code is None else code.levels
    return ibis.memtable({"level": levels}, schema={"level": str(key.type())})

"""A plan as Ibis expressions: one text for every engine, the same integers from each of them.

Engines agree on IEEE subtraction, product and floor, and on comparing numbers; on little else. So:

- constants travel as text and are cast (DuckDB and Spark read ``0.1`` as a decimal and round it
  their own way);
- NaN becomes NULL before anything is compared (PostgreSQL and Spark sort it above infinity);
- clamping is written as CASE (``greatest`` and ``clip`` treat NULL and NaN differently);
- a value is clamped *before* the arithmetic, because Polars evaluates every branch of a CASE and
  PostgreSQL refuses overflow and underflow: nothing infinite or huge ever reaches a cast.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from dataclasses import dataclass
from typing import Any

import ibis

from noisewise.artifact.statistics import Exponents
from noisewise.release.lattice import Coded, Feature, Scaled
from noisewise.release.plan import CellCounts, Histogram, ProductSums, SumPlan
from noisewise.release.sources.gather import sum_name

INLINE_LEVELS = 100
"""Longer public lists go to the engine as a (temporary) table: a long IN is read slowly by Ibis,
and compared term by term by Polars and PostgreSQL."""


@dataclass(frozen=True)
class Prepared:
    """The plan's columns, ready to be summed, and the names they go by.

    Besides them there are ``complete``, and where the plan has groups ``grouped`` (has a usable
    key) and ``group`` (that key, or some level where there is none: never NULL, because NULLs turn
    integers into floats on their way back from Spark).
    """

    plan: SumPlan
    records: Any
    values: dict[Feature, str]
    keys: dict[str, str]
    missing: dict[str, str]
    unlisted: dict[str, str]
    public: Any = None

    def totals(self) -> Any:
        """All product sums, the number of records and what is wrong with them, in one aggregate."""
        return self._kept(self._totals())

    def with_public_list(self) -> Prepared:
        """From now on only groups on the list, which goes to the engine as a table."""
        return dataclasses.replace(self, public=_public(self.plan.group, self.records["group"]))

    def unlisted_groups(self) -> Any:
        """Number of records and what is wrong with them, over all groups that are not listed."""
        t = self._totals()
        t = t.anti_join(self.public, t["group"] == self.public["level"])
        names = ("n", *self.missing, *self.unlisted)
        return t.aggregate(**{name: t[name].sum().fill_null(0) for name in names})

    def cells(self, part: CellCounts, clique: tuple[int, ...]) -> Any:
        """One contingency table: columns c0, c1, … (and ``group``), and the count n."""
        return self._counts([self.keys[part.codes[i].column] for i in clique])

    def histogram(self, part: Histogram) -> Any:
        """Lattice values as column c0 (and ``group``), and the count n."""
        return self._counts([self.values[part.feature]])

    def _totals(self) -> Any:
        t = self.records
        by = ["complete"] if self.plan.group is None else ["complete", "grouped", "group"]
        return t.group_by(by).aggregate(
            n=t.count(),
            **{name: t[name].sum() for name in (*self.missing, *self.unlisted)},
            **{
                sum_name(p, i): self._product(part, product)
                for p, part in enumerate(self.plan.parts)
                if isinstance(part, ProductSums)
                for i, product in enumerate(part.products)
            },
        )

    def _product(self, part: ProductSums, product: Exponents) -> Any:
        if not product:
            return self.records.count()
        factors = [self.records[self.values[part.features[i]]] for i in product]
        return functools.reduce(operator.mul, factors).sum().fill_null(0)

    def _counts(self, columns: list[str]) -> Any:
        t = self.records.filter(self.records["complete"])
        by = {f"c{i}": t[name] for i, name in enumerate(columns)}
        if self.plan.group is not None:
            by["group"] = t["group"]
        t = t.select(**by)
        return self._kept(t.group_by(list(by)).aggregate(n=t.count()))

    def _kept(self, sums: Any) -> Any:
        """Groups on the list, if that was sent; once summed, no join can count a record twice."""
        if self.public is None:
            return sums
        return sums.semi_join(self.public, sums["group"] == self.public["level"])


def prepare(table: Any, plan: SumPlan) -> Prepared:
    """Everything that happens to a single record, in the engine.

    Groups that are not on the public list stay in: that list may be long, and as a rule everything
    present is on it. Whoever reads the sums drops the others, or has the engine do it (`Prepared.with_public_list`).
    """
    numbers = {c: f"x{j}" for j, c in enumerate(plan.numeric)}
    keys = {code.column: f"k{j}" for j, code in enumerate(plan.codes)}
    t = table.select(
        **{numbers[c]: _number(table, c, fill) for c, fill in plan.numeric.items()},
        **{keys[code.column]: _key(table, code) for code in plan.codes},
    )
    usable = {
        f"l{key}": t[key].notnull() if code == plan.group else _listed(t[key], code)
        for code, key in zip(plan.codes, keys.values(), strict=True)
    }
    t = t.mutate(**usable)
    values = {feature: f"u{j}" for j, feature in enumerate(dict.fromkeys(plan.features))}
    records = t.mutate(
        complete=_complete(t, numbers, keys),
        **{f"m{x}": _bit(t[x].isnull()) for x in (*numbers.values(), *keys.values())},
        **{f"f{key}": _bit(t[key].notnull() & ~t[f"l{key}"]) for key in keys.values()},
        **{u: _value(t[numbers[f.column]], f) for f, u in values.items()},
        **_grouping(t, plan.group, keys),
    )
    return Prepared(
        plan,
        _once(records),
        values,
        keys,
        {f"m{name}": column for column, name in (*numbers.items(), *keys.items())},
        {f"f{key}": column for column, key in keys.items()},
    )


def _once(records: Any) -> Any:
    """Keep PostgreSQL from working a column out again for every sum it appears in (3 times slower).

    It merges nested SELECTs, unless there is a LIMIT; this one is beyond any number of rows.
    """
    return records.limit(2**62) if records.get_backend().name == "postgres" else records


def _complete(t: Any, numbers: dict[str, str], keys: dict[str, str]) -> Any:
    present = [t[x].notnull() for x in numbers.values()] + [t[f"l{key}"] for key in keys.values()]
    return functools.reduce(operator.and_, present)


def _grouping(t: Any, group: Coded | None, keys: dict[str, str]) -> dict[str, Any]:
    if group is None:
        return {}
    key = t[keys[group.column]]
    usable = t[f"l{keys[group.column]}"]
    return {"grouped": usable, "group": ibis.ifelse(usable, key, _level(group.levels[0], key))}


def constant(x: float) -> Any:
    """The very float64 the local path uses."""
    return ibis.literal(repr(float(x))).cast("float64")


def _bit(condition: Any) -> Any:
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


def _number(table: Any, column: str, fill: float | None) -> Any:
    x = _real(table[column])
    return x if fill is None else ibis.coalesce(x, constant(fill))


def _value(x: Any, feature: Feature) -> Any:
    """What a present number contributes, as `lattice.evaluate`; NULL stays NULL."""
    outside = (x < constant(feature.lower)) | (x > constant(feature.upper))
    if not isinstance(feature, Scaled):
        return _bit(outside)
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


def _key(table: Any, code: Coded) -> Any:
    """A category as text, int64 or (a float column) float64; missing is NULL, or the fill value."""
    column = table[code.column]
    kind = column.type()
    if kind.is_floating():
        key = _real(column)
    elif kind.is_string():
        key = column
    else:
        key = (column.cast("int32") if kind.is_boolean() else column).cast("int64")
    return key if code.fill is None else ibis.coalesce(key, _level(code.fill, key))


def _level(level: Any, key: Any) -> Any:
    kind = key.type()
    return constant(level) if kind.is_floating() else ibis.literal(level, kind)


def _listed(key: Any, code: Coded) -> Any:
    """Is the key on the public list? Never NULL; nor a join, which could count a record twice."""
    short = len(code.levels) <= INLINE_LEVELS
    found = key.isin(
        [_level(level, key) for level in code.levels] if short else _public(code, key)["level"]
    )
    return found.fill_null(False)


def _public(code: Coded | None, key: Any) -> Any:
    """The public list as a table of the engine."""
    levels = () if code is None else code.levels
    return ibis.memtable({"level": levels}, schema={"level": str(key.type())})

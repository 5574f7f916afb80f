"""A whole plan as queries: one aggregate for all sums of products, one more per table of counts."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from dataclasses import dataclass
from typing import Any

import ibis
import ibis.expr.operations as ops

from noisewise.privacy.lattice import Coded, Feature
from noisewise.privacy.sources.expressions import (
    bit,
    constant,
    is_listed,
    key_of,
    level_of,
    number,
    person_of,
    public_list,
    value,
)
from noisewise.privacy.sources.query_results import sum_name
from noisewise.privacy.sum_plan import CellCounts, Histogram, ProductSums, SumPlan

MOST_SUMS = 1000
"""Sums per query: PostgreSQL has room for 1664 columns in an answer."""


@dataclass(frozen=True)
class Prepared:
    """The plan's columns, ready to be summed, and the names they go by.

    Besides them there are ``complete``, and where the plan has groups ``grouped`` (has a usable
    key) and ``group`` (that key, or some level where there is none: never NULL, which on its way
    back would make floats of whole numbers).
    """

    plan: SumPlan
    records: Any
    values: dict[Feature, str]
    keys: dict[str, str]
    missing: dict[str, str]
    unlisted: dict[str, str]
    public: Any = None

    def totals(self) -> Any:
        """Product sums, the number of records and what is wrong with them, in one aggregate."""
        return self._kept(self._totals())

    def further_totals(self) -> list[Any]:
        """Product sums that do not fit into one answer."""
        products = self._products()
        return [
            self._kept(self._summed(products[start : start + MOST_SUMS]))
            for start in range(MOST_SUMS, len(products), MOST_SUMS)
        ]

    def with_public_list(self) -> Prepared:
        """From now on only groups on the list, which goes to the engine as a table."""
        return dataclasses.replace(self, public=public_list(self.plan.group, self.records["group"]))

    def unlisted_groups(self) -> Any:
        """Number of records and what is wrong with them, over all groups that are not listed."""
        t = self._totals()
        t = t.anti_join(self.public, t["group"] == self.public["level"])
        names = ("n", *self.missing, *self.unlisted)
        return t.aggregate(**{name: t[name].sum().fill_null(0) for name in names})

    def cells(self, part: CellCounts, clique: tuple[int, ...]) -> Any:
        """One contingency table: columns c0, c1, … (and ``group``), and the count n."""
        columns = [self.keys[part.codes[i].column] for i in clique]
        return self._counts(columns) if self.plan.person is None else self._weights(columns)

    def people(self) -> Any:
        """Number of people with a complete record, as column n."""
        t = self.records.filter(self.records["complete"])
        return t.aggregate(n=t["person"].nunique())

    def _weights(self, columns: list[str]) -> Any:
        """As ``_counts``, each record with its share of its person."""
        steps = 0 if self.plan.person is None else self.plan.person.steps
        t = self.records.filter(self.records["complete"])
        by = {f"c{i}": t[name] for i, name in enumerate(columns)}
        t = _with_number_of_records(t.select(**by, person=t["person"]))
        share = (ibis.literal(steps, "int64") // t["k"]).cast("int64")
        t = t.select(*by, share=share)
        return t.group_by(list(by)).aggregate(n=t["share"].sum())

    def histogram(self, part: Histogram) -> Any:
        """Lattice values as column c0 (and ``group``), and the count n."""
        return self._counts([self.values[part.feature]])

    def _totals(self) -> Any:
        t = self.records
        troubles = {name: t[name].sum() for name in (*self.missing, *self.unlisted)}
        return self._summed(self._products()[:MOST_SUMS], n=t.count(), **troubles)

    def _summed(self, products: list[tuple[str, list[str]]], **more: Any) -> Any:
        t = self.records
        by = ["complete"] if self.plan.group is None else ["complete", "grouped", "group"]
        sums = {
            name: functools.reduce(operator.mul, [t[u] for u in factors]).sum().fill_null(0)
            if factors
            else t.count()
            for name, factors in products
        }
        return t.group_by(by).aggregate(**sums, **more)

    def _products(self) -> list[tuple[str, list[str]]]:
        """The name of every sum and the columns that are multiplied for it."""
        return [
            (sum_name(p, i), [self.values[part.features[j]] for j in product])
            for p, part in enumerate(self.plan.parts)
            if isinstance(part, ProductSums)
            for i, product in enumerate(part.products)
        ]

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
    present is on it. Whoever reads the sums drops the others, or has the engine do it
    (`Prepared.with_public_list`).
    """
    numbers = {c: f"x{j}" for j, c in enumerate(plan.numeric)}
    keys = {code.column: f"k{j}" for j, code in enumerate(plan.codes)}
    t = table.select(
        **{numbers[c]: number(table, c, fill) for c, fill in plan.numeric.items()},
        **{keys[code.column]: key_of(table, code) for code in plan.codes},
        **({} if plan.person is None else {"person": person_of(table, plan.person.column)}),
    )
    usable = {
        f"l{key}": t[key].notnull() if code == plan.group else is_listed(t[key], code)
        for code, key in zip(plan.codes, keys.values(), strict=True)
    }
    t = t.mutate(**usable)
    values = {feature: f"u{j}" for j, feature in enumerate(dict.fromkeys(plan.features))}
    records = t.mutate(
        complete=_complete(t, numbers, keys, plan),
        **({} if plan.person is None else {"mperson": bit(t["person"].isnull())}),
        **{f"m{x}": bit(t[x].isnull()) for x in (*numbers.values(), *keys.values())},
        **{f"f{key}": bit(t[key].notnull() & ~t[f"l{key}"]) for key in keys.values()},
        **{u: value(t[numbers[f.column]], f) for f, u in values.items()},
        **_grouping(t, plan.group, keys),
    )
    return Prepared(
        plan,
        _once(records),
        values,
        keys,
        {f"m{name}": column for column, name in (*numbers.items(), *keys.items())}
        | ({} if plan.person is None else {"mperson": plan.person.column}),
        {f"f{key}": column for column, key in keys.items()},
    )


def merged_ids(table: Any, column: str, most: int) -> Any:
    """The number of finite ids, as column n, that are floats of size ``most`` or more."""
    x = person_of(table, column)
    large = (x >= constant(most)) | (x <= constant(-most))
    finite = (x < constant(math.inf)) & (x > constant(-math.inf))
    return table.filter(large & finite).aggregate(n=ibis._.count())


def numbers(table: Any, plan: SumPlan) -> Any:
    """Return the plan's numeric columns as float64, filled where a fill value is public, in order.

    An engine keeps no order of its own. Sorted by all columns, two rows that are told apart by
    nothing hold the same bits (0.0 for -0.0), so that the order is made of the records alone.
    """
    t = table.select(**{c: number(table, c, fill) for c, fill in plan.numeric.items()})
    t = t.select(**{c: ibis.ifelse(t[c] == constant(0), constant(0), t[c]) for c in plan.numeric})
    return t.order_by(list(plan.numeric))


def _once(records: Any) -> Any:
    """Keep PostgreSQL from working a column out again for every sum it appears in (3 times slower).

    It merges nested SELECTs, unless there is a LIMIT; this one is beyond any number of rows.
    """
    return records.limit(2**62) if records.get_backend().name == "postgres" else records


def _with_number_of_records(t: Any) -> Any:
    """Beside each record, as k, how many its person has."""
    if t.get_backend().has_operation(ops.WindowFunction):
        return t.mutate(k=t.count().over(ibis.window(group_by=t["person"])))
    # Polars, as Ibis speaks it, has no window. A person is in the other table once.
    return t.join(t.group_by("person").aggregate(k=t.count()), "person")


def _complete(t: Any, numbers: dict[str, str], keys: dict[str, str], plan: SumPlan) -> Any:
    present = [t[x].notnull() for x in numbers.values()] + [t[f"l{key}"] for key in keys.values()]
    present += [] if plan.person is None else [t["person"].notnull()]
    return functools.reduce(operator.and_, present)


def _grouping(t: Any, group: Coded | None, keys: dict[str, str]) -> dict[str, Any]:
    if group is None:
        return {}
    key = t[keys[group.column]]
    usable = t[f"l{keys[group.column]}"]
    return {"grouped": usable, "group": ibis.ifelse(usable, key, level_of(group.levels[0], key))}

"""A plan as queries: one aggregate for all sums over all records, one more for each table."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import ibis
import ibis.expr.operations as ops

from noisewise.artifact.statistics import Exponents
from noisewise.privacy.lattice import Coded, Feature, ScaledProduct
from noisewise.privacy.selection import COMPARISONS
from noisewise.privacy.sources.query_results import products_over_all, sum_name
from noisewise.privacy.sources.record_expressions import (
    bit,
    constant,
    is_listed,
    key_of,
    level_of,
    multiplied,
    number,
    person_of,
    public_list,
    value,
)
from noisewise.privacy.sum_plan import (
    CellCounts,
    CellProducts,
    Histogram,
    Person,
    ProductSums,
    SumPlan,
)

if TYPE_CHECKING:
    import ibis.expr.types as ir

MAX_SUMS_PER_QUERY = 1000
"""Sums per query (chosen): PostgreSQL has room for 1664 columns in an answer."""

BEYOND_ANY_TABLE = 2**62
"""A LIMIT that no table reaches (chosen)."""


@dataclass(frozen=True)
class Prepared:
    """The plan's columns, ready to be summed, and the names they go by.

    Besides them there are ``complete``, and where the plan has groups ``grouped`` (has a usable
    key) and ``group`` (that key, or some level where there is none: never NULL, which on its way
    back would make floats of whole numbers).
    """

    plan: SumPlan
    records: ir.Table
    values: dict[Feature, str]
    keys: dict[str, str]
    missing: dict[str, str]
    unlisted: dict[str, str]
    public: ir.Table | None = None

    def totals(self) -> ir.Table:
        """Return product sums, the number of records and what is wrong with them."""
        return self._kept(self._totals())

    def further_totals(self) -> list[ir.Table]:
        """Return the product sums that do not fit into the answer of ``totals``."""
        products = self._products()
        return [
            self._kept(self._summed(products[start : start + MAX_SUMS_PER_QUERY]))
            for start in range(MAX_SUMS_PER_QUERY, len(products), MAX_SUMS_PER_QUERY)
        ]

    def with_public_list(self) -> Prepared:
        """Return the same with groups on the list only, which goes to the engine as a table."""
        return dataclasses.replace(self, public=public_list(self.plan.group, self.records["group"]))

    def unlisted_groups(self) -> ir.Table:
        """Return the number of records and what is wrong with them, over all unlisted groups."""
        if self.public is None:
            raise TypeError("the public list was not sent to the engine")
        t = self._totals()
        t = t.anti_join(self.public, t["group"] == self.public["level"])
        names = ("n", *self.missing, *self.unlisted)
        return t.aggregate(**{name: t[name].sum().fill_null(0) for name in names})

    def cells(self, part: CellCounts, clique: tuple[int, ...]) -> ir.Table:
        """Return one contingency table: columns c0, c1, … (and ``group``), and the count n."""
        columns = [self.keys[part.codes[i].column] for i in clique]
        return self._counts(columns) if self.plan.person is None else self._weights(columns)

    def cell_sums(
        self, part: CellProducts, within: tuple[int, ...], products: tuple[Exponents, ...]
    ) -> ir.Table:
        """Return sums of products s0, s1, … by cells c0, c1, … (and ``group``), and the count n."""
        factors = [[self.values[part.features[j]] for j in product] for product in products]
        keys = [self.keys[part.codes[i].column] for i in within]
        t, by = self._by(keys, {u for product in factors for u in product})
        sums = {f"s{i}": self._total(t, product) for i, product in enumerate(factors)}
        return self._kept(t.group_by(by).aggregate(n=t.count(), **sums))

    def people(self) -> ir.Table:
        """Return the number of people with a complete record, as column n."""
        t = self.records.filter(self.records["complete"])
        return t.aggregate(n=t["person"].nunique())

    def _weights(self, columns: list[str]) -> ir.Table:
        """Return counts as ``_counts`` does, each record with its share of its person."""
        steps = self.plan.person.steps if isinstance(self.plan.person, Person) else 0
        t = self.records.filter(self.records["complete"])
        by = {f"c{i}": t[name] for i, name in enumerate(columns)}
        t = _with_number_of_records(t.select(**by, person=t["person"]))
        share = (ibis.literal(steps, "int64") // t["k"]).cast("int64")
        t = t.select(*by, share=share)
        return t.group_by(list(by)).aggregate(n=t["share"].sum())

    def histogram(self, part: Histogram) -> ir.Table:
        """Return lattice values as column c0 (and ``group``), and the count n."""
        return self._counts([self.values[part.feature]])

    def _totals(self) -> ir.Table:
        t = self.records
        troubles = {name: t[name].sum() for name in (*self.missing, *self.unlisted)}
        return self._summed(self._products()[:MAX_SUMS_PER_QUERY], n=t.count(), **troubles)

    def _summed(self, products: list[tuple[str, list[str]]], **more: ir.Scalar) -> ir.Table:
        t = self.records
        by = ["complete"] if self.plan.group is None else ["complete", "grouped", "group"]
        sums = {name: self._total(t, factors) for name, factors in products}
        return t.group_by(by).aggregate(**sums, **more)

    def _total(self, t: ir.Table, factors: list[str]) -> ir.Scalar:
        """Return the sum of a product of columns; of none, the number of records."""
        if not factors:
            return t.count()
        return functools.reduce(operator.mul, [t[u] for u in factors]).sum().fill_null(0)

    def _products(self) -> list[tuple[str, list[str]]]:
        """Return the name of every sum and the columns that are multiplied for it."""
        return [
            (sum_name(p, i), [self.values[part.features[j]] for j in product])
            for p, part in enumerate(self.plan.parts)
            if isinstance(part, ProductSums | CellProducts)
            for i, product in enumerate(products_over_all(part, self.plan.groups))
        ]

    def _counts(self, columns: list[str]) -> ir.Table:
        t, by = self._by(columns)
        return self._kept(t.group_by(by).aggregate(n=t.count()))

    def _by(self, columns: list[str], others: Collection[str] = ()) -> tuple[ir.Table, list[str]]:
        """Return complete records: columns as c0, c1, … (and ``group``), whose names follow."""
        t = self.records.filter(self.records["complete"])
        by = {f"c{i}": t[name] for i, name in enumerate(columns)}
        if self.plan.group is not None:
            by["group"] = t["group"]
        return t.select(**by, **{name: t[name] for name in others}), [*by]

    def _kept(self, sums: ir.Table) -> ir.Table:
        """Return sums of groups on the list, if that was sent; a join counts none of them twice."""
        if self.public is None:
            return sums
        return sums.semi_join(self.public, sums["group"] == self.public["level"])


def prepare(table: ir.Table, plan: SumPlan) -> Prepared:
    """Return the plan with everything that happens to a single record, in the engine.

    Groups that are not on the public list stay in: that list may be long, and as a rule everything
    present is on it. Whoever reads the sums drops the others, or has the engine do it
    (`Prepared.with_public_list`).
    """
    numbers, keys, t = record_columns(table, plan)
    usable = {
        f"l{key}": t[key].notnull() if code == plan.group else is_listed(t[key], code)
        for code, key in zip(plan.codes, keys.values(), strict=True)
    }
    values = {feature: f"u{j}" for j, feature in enumerate(dict.fromkeys(plan.features))}
    columns = {c: t[x] for c, x in numbers.items()}
    products = {
        f"p{u}": multiplied(columns, f) for f, u in values.items() if isinstance(f, ScaledProduct)
    }
    t = t.mutate(**usable, **products)
    records = t.mutate(
        complete=_complete(t, numbers, keys, plan),
        **({} if plan.person is None else {"mperson": bit(t["person"].isnull())}),
        **{f"m{x}": bit(t[x].isnull()) for x in (*numbers.values(), *keys.values())},
        **{f"f{key}": bit(t[key].notnull() & ~t[f"l{key}"]) for key in keys.values()},
        **{
            u: value(t[f"p{u}"], f.lattice)
            if isinstance(f, ScaledProduct)
            else value(t[numbers[f.column]], f)
            for f, u in values.items()
        },
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


def record_columns(
    table: ir.Table, plan: SumPlan
) -> tuple[dict[str, str], dict[str, str], ir.Table]:
    """Return names of numbers and of keys by column, and the records selected with these.

    There is a column ``person`` besides where the plan has people.
    """
    numbers = {c: f"x{j}" for j, c in enumerate(plan.numeric)}
    keys = {code.column: f"k{j}" for j, code in enumerate(plan.codes)}
    table = selected(table, plan)
    t = table.select(
        **{numbers[c]: number(table, c, fill) for c, fill in plan.numeric.items()},
        **{keys[code.column]: key_of(table, code) for code in plan.codes},
        **({} if plan.person is None else {"person": person_of(table, plan.person.column)}),
    )
    return numbers, keys, t


def selected(table: ir.Table, plan: SumPlan) -> ir.Table:
    """Return the records for which all conditions hold: a filter drops what compares as NULL."""
    holds = []
    for condition in plan.where:
        compare, value_ = COMPARISONS[condition.operator], condition.constant
        if isinstance(value_, str):
            holds.append(compare(table[condition.column], ibis.literal(value_)))
        else:
            holds.append(compare(number(table, condition.column, None), constant(value_)))
    return table.filter(holds) if holds else table


def unfit_ids(table: ir.Table, column: str, most: int) -> ir.Table:
    """Return how many float ids are of size ``most`` or more, and how many are not whole.

    The columns are ``merged`` and ``broken``; an infinite id is counted as not whole.
    """
    x = person_of(table, column)
    is_large = ((x >= constant(most)) | (x <= constant(-most))).fill_null(False)
    is_finite = ((x < constant(math.inf)) & (x > constant(-math.inf))).fill_null(True)
    # Nothing huge may reach `floor`, which casts to an integer in some engines.
    small = ibis.ifelse(is_large, constant(0), x)
    is_broken = (small != small.floor().cast("float64")).fill_null(False)
    t = table.select(merged=bit(is_large & is_finite), broken=bit(is_broken | ~is_finite))
    return t.aggregate(merged=t["merged"].sum().fill_null(0), broken=t["broken"].sum().fill_null(0))


def ordered_numbers(table: ir.Table, plan: SumPlan) -> ir.Table:
    """Return numeric columns as float64, filled where a fill value is public, in order; and people.

    An engine keeps no order of its own. Sorted by all numeric columns, two rows that are told apart
    by nothing hold the same bits (0.0 for -0.0), so that the order is made of the records alone.
    """
    numbers, _, t = record_columns(table, plan)
    t = t.mutate(
        **{x: ibis.ifelse(t[x] == constant(0), constant(0), t[x]) for x in numbers.values()}
    )
    return t.order_by(list(numbers.values()))


def _once(records: ir.Table) -> ir.Table:
    """Keep PostgreSQL from working a column out again for every sum it appears in (3 times slower).

    It merges nested SELECTs, unless there is a LIMIT; this one is beyond any number of rows.
    """
    return records.limit(BEYOND_ANY_TABLE) if records.get_backend().name == "postgres" else records


def _with_number_of_records(t: ir.Table) -> ir.Table:
    """Return the records with one column more, k: how many records the person has."""
    if t.get_backend().has_operation(ops.WindowFunction):
        return t.mutate(k=t.count().over(ibis.window(group_by=t["person"])))
    # Polars, as Ibis speaks it, has no window. A person is in the other table once.
    return t.join(t.group_by("person").aggregate(k=t.count()), "person")


def _complete(
    t: ir.Table, numbers: dict[str, str], keys: dict[str, str], plan: SumPlan
) -> ir.BooleanColumn:
    """Return whether a record lacks nothing that the plan needs."""
    present = [t[x].notnull() for x in numbers.values()] + [t[f"l{key}"] for key in keys.values()]
    present += [] if plan.person is None else [t["person"].notnull()]
    return functools.reduce(operator.and_, present)


def _grouping(t: ir.Table, group: Coded | None, keys: dict[str, str]) -> dict[str, ir.Value]:
    if group is None:
        return {}
    key = t[keys[group.column]]
    usable = t[f"l{keys[group.column]}"]
    return {"grouped": usable, "group": ibis.ifelse(usable, key, level_of(group.levels[0], key))}

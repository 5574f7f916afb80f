"""Tables in an engine, through Ibis: the sums are formed where the data is, only sums come back.

One aggregate query forms all product sums of a plan; every table of counts or sums is one GROUP BY
more (`pushdown`), all of them over one state of the table (`snapshot`). The integers are
those of the local path, bit for bit (`record_expressions`).
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from noisewise.artifact import ArgumentError, DataError, SourceError
from noisewise.artifact.statistics import MAX_ROWS
from noisewise.privacy.lattice import Coded
from noisewise.privacy.selection import KeptRecords
from noisewise.privacy.sources import csv_numbers
from noisewise.privacy.sources.arrow import BATCH_ROWS, guarded, listed_names
from noisewise.privacy.sources.arrow_columns import (
    as_text,
    check_list,
    exact_below,
    level_indices,
    list_mismatch,
    not_codable,
    not_numeric,
)
from noisewise.privacy.sources.people import PeopleNumbers, Records, sum_capped
from noisewise.privacy.sources.query_results import QueryResults
from noisewise.privacy.sources.snapshot import snapshot
from noisewise.privacy.sources.spark_logging import spark_log_off
from noisewise.privacy.sum_plan import (
    Capped,
    CellCounts,
    CellProducts,
    Histogram,
    Progress,
    SumPlan,
    Sums,
    with_codes,
)
from noisewise.privacy.sums import Columns

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

    from noisewise.privacy.sources.pushdown import Prepared

ENGINES = {"duckdb": "DuckDB", "polars": "Polars", "postgres": "PostgreSQL", "pyspark": "Spark"}
"""What an error calls an engine, by Ibis's name for it."""

UNFIT_ENGINES = {"sqlite": "SQLite"}
"""Engines that cannot form the sums, by Ibis's name for them (no cast from text to double)."""

T = TypeVar("T")


def connect(url: str) -> IbisSource:
    """Return the table a URL names: ``postgresql://user@host/database#table``, ``duckdb://…``."""
    from noisewise.privacy.sources.database_url import open_table

    table, close = open_table(url)
    source = IbisSource(table)
    weakref.finalize(source, close)
    return source


class IbisSource:
    """Source over any Ibis table."""

    def __init__(self, table: ir.Table) -> None:
        self._table = table

    def check(self, numeric: tuple[str, ...], coded: tuple[str, ...]) -> None:
        """Raise where a column does not exist, or is not of a fitting type."""
        engine = self._ask("looking up the table", lambda: self._table.get_backend().name)
        if engine in UNFIT_ENGINES:
            raise ArgumentError(
                f"source: {UNFIT_ENGINES[engine]} behind Ibis cannot form the sums; write the "
                "table to a Parquet file, or read the database with DuckDB"
            )
        types = self._ask("reading the names of columns", lambda: dict(self._table.schema()))
        for column in (*numeric, *coded):
            if column not in types:
                names = listed_names(list(types))
                raise DataError(f"column {column!r} is not in the table; it has: {names}")
        for column in numeric:
            if not _is_numeric(types[column]):
                raise not_numeric(column, types[column])
        for column in coded:
            if not _is_codable(types[column]):
                raise not_codable(column, types[column])

    def kept_records(self) -> KeptRecords:
        """Return which records the expression keeps of the table or view it is made from."""
        from noisewise.privacy.sources.ibis_kept_records import kept_records_of_ibis

        return self._ask("looking up the table", lambda: kept_records_of_ibis(self._table))

    def sum(self, plan: SumPlan, progress: Progress | None = None) -> Sums:
        """Push the plan down and return its sums; ``progress`` is called once, at the end.

        Where people are capped, records leave the engine, and those to keep are chosen here.
        """
        from noisewise.privacy.sources.pushdown import prepare

        plan = self._checked(plan)
        if isinstance(plan.person, Capped):
            return sum_capped(self._records(plan, progress), plan)
        prepared = self._ask("translating the plan", lambda: prepare(self._table, plan))
        with self._one_state():
            self._check_ids(plan)
            results = self._run_queries(prepared)
        if progress is not None:
            progress(results.rows, results.rows)
        return results.sums()

    def stream(
        self, plan: SumPlan, progress: Progress | None = None
    ) -> Iterator[tuple[Columns, np.ndarray | None]]:
        """Yield the columns as they leave the engine, for random partitions to be formed here.

        Spark and Polars hand over the columns asked for as a whole; the other engines stream.
        """
        plan = self._checked(plan)
        for numeric, _, people in self._records(plan, progress):
            yield numeric, people if plan.person is not None else None

    def _checked(self, plan: SumPlan) -> SumPlan:
        """Return the plan with lists in the kind of their columns; raise where one does not fit."""
        person = () if plan.person is None else (plan.person.column,)
        compared = tuple(c.column for c in plan.where if c.is_numeric)
        named = [Coded(c.column, (c.constant,)) for c in plan.where if isinstance(c.constant, str)]
        coded = (*plan.codes, *named)
        self.check((*plan.numeric, *compared), (*(code.column for code in coded), *person))
        for code in named:
            if not self._table[code.column].type().is_string():
                raise list_mismatch(code)
        for code in plan.codes:
            _check_list(self._table[code.column].type(), code)
        for column in plan.numeric:
            kind = self._table[column].type()
            holds_dates = kind.is_date() or kind.is_timestamp()
            csv_numbers.check_dates(column, holds_dates, plan.dated.get(column))
        texts = {code: as_text(code) for code in plan.codes if self._is_text(code.column)}
        return with_codes(plan, texts)

    def _is_text(self, column: str) -> bool:
        return bool(self._table[column].type().is_string())

    def _records(self, plan: SumPlan, progress: Progress | None) -> Iterator[Records]:
        """Yield the plan's columns, and whose each record is, as they leave the engine."""
        from noisewise.privacy.sources.pushdown import ordered_numbers

        with self._one_state():
            self._check_ids(plan)
            query = self._ask("translating the plan", lambda: ordered_numbers(self._table, plan))
            reader = self._ask("reading", lambda: _batches(query))
            people = PeopleNumbers("" if plan.person is None else plan.person.column)
            done = 0
            while (batch := self._ask("reading", lambda: next(reader, None))) is not None:
                numeric = {
                    c: batch.column(f"x{j}").to_numpy(zero_copy_only=False)
                    for j, c in enumerate(plan.numeric)
                }
                codes = {
                    code.column: level_indices(batch.column(f"k{j}"), code)
                    for j, code in enumerate(plan.codes)
                }
                numbers = np.full(batch.num_rows, -1)
                if plan.person is not None:
                    numbers = people.number(batch.column("person").dictionary_encode())
                yield numeric, codes, numbers
                done += batch.num_rows
                if progress is not None:
                    progress(done, None)

    @contextlib.contextmanager
    def _one_state(self) -> Iterator[None]:
        """Hold a snapshot of the table, where the engine has one."""
        with contextlib.ExitStack() as held:
            self._ask(
                "beginning a transaction",
                lambda: held.enter_context(snapshot(self._table.get_backend())),
            )
            yield
            self._ask("ending a transaction", held.close)

    def _check_ids(self, plan: SumPlan) -> None:
        """Raise where ids are floats too large to tell two people apart, or not whole."""
        from noisewise.privacy.sources.pushdown import selected, unfit_ids

        if plan.person is None:
            return
        column = plan.person.column
        kind = self._table[column].type()
        if kind.is_floating():
            most = exact_below(8 * kind.nbytes)
            query = partial(unfit_ids, selected(self._table, plan), column, most)
            counts = self._fetch("looking at ids", query).to_pylist()[0]
            if counts["merged"]:
                raise csv_numbers.merged_ids(column)
            if counts["broken"]:
                raise csv_numbers.broken_ids(column)

    def _run_queries(self, prepared: Prepared) -> QueryResults:
        results = QueryResults(prepared.plan, prepared.missing, prepared.unlisted)
        prepared = self._add_totals(prepared, results)
        if results.rows > MAX_ROWS:
            raise DataError(f"the table has more than {MAX_ROWS} rows, which the lattice allows")
        self._add_counts(prepared, results)
        if prepared.plan.person is not None:
            results.count_people(self._fetch("counting people", prepared.people))
        return results

    def _add_totals(self, prepared: Prepared, results: QueryResults) -> Prepared:
        """Add the aggregate; where the table has more groups than the list, of listed groups only.

        A listed group can come back twice (complete records or not), and records without a group
        once. One row more, and some group is not on the list: there could be too many to fetch.
        """
        most = 2 * prepared.plan.groups + 1
        totals = self._fetch("summing", lambda: prepared.totals().limit(most + 1))
        if len(totals) > most:
            prepared = prepared.with_public_list()
            results.add_unlisted(self._fetch("counting groups", prepared.unlisted_groups))
            totals = self._fetch("summing over listed groups", prepared.totals)
        results.add_totals(totals)
        for further in prepared.further_totals():
            results.add_products(self._ask("summing", partial(_collected, further)))
        return prepared

    def _add_counts(self, prepared: Prepared, results: QueryResults) -> None:
        for number, part in enumerate(prepared.plan.parts):
            if isinstance(part, CellCounts):
                for position, clique in enumerate(part.cliques):
                    cells = self._fetch("counting cells", partial(prepared.cells, part, clique))
                    results.add_cells(number, part, position, cells)
            elif isinstance(part, CellProducts):
                self._add_cell_sums(prepared, results, number, part)
            elif isinstance(part, Histogram):
                points = self._fetch("counting values", partial(prepared.histogram, part))
                results.add_histogram(number, part, points)

    def _add_cell_sums(
        self, prepared: Prepared, results: QueryResults, number: int, part: CellProducts
    ) -> None:
        from noisewise.privacy.sources.pushdown import MAX_SUMS_PER_QUERY

        for within, products in part.tables(prepared.plan.groups).items():
            for first in range(0, len(products) if within else 0, MAX_SUMS_PER_QUERY):
                some = products[first : first + MAX_SUMS_PER_QUERY]
                query = partial(prepared.cell_sums, part, within, some)
                sums = self._fetch("summing within cells", query)
                results.add_cell_sums(number, part, within, first, sums)

    def _fetch(self, step: str, query: Callable[[], ir.Table]) -> pa.Table:
        return self._ask(step, lambda: _collected(query()))

    def _ask(self, step: str, question: Callable[[], T]) -> T:
        def quietly() -> T:
            with spark_log_off(self._table.get_backend()):
                return question()

        return guarded(quietly, partial(self._failure, step))

    def _failure(self, step: str) -> SourceError:
        return SourceError(
            f"{self._engine}: {step} failed; what the engine said is withheld, because it may "
            "quote a record (look into the engine's own log)"
        )

    @property
    def _engine(self) -> str:
        name = "the engine"
        with contextlib.suppress(Exception):
            name = self._table.get_backend().name
        return ENGINES.get(name, name)


def _collected(query: ir.Table) -> pa.Table:
    """Return the answer as Arrow: Ibis reads Spark through pandas, where NULL makes floats."""
    backend = query.get_backend()
    if backend.name == "pyspark":
        backend._run_pre_execute_hooks(query)
        return backend.raw_sql(backend.compile(query)).toArrow()
    if backend.name == "postgres":
        # Ibis opens a server's cursor within a savepoint, and after a failure cannot close it.
        backend._run_pre_execute_hooks(query)
        kind = pa.struct(query.schema().to_pyarrow())
        with backend.con.cursor() as cursor:
            rows = cursor.execute(backend.compile(query)).fetchall()
        return pa.Table.from_struct_array(pa.array(rows, kind))
    return query.to_pyarrow()


def _batches(query: ir.Table) -> Iterator[pa.RecordBatch]:
    """Return an answer as long as the table in batches; Spark sends it as a whole."""
    backend = query.get_backend()
    if backend.name == "pyspark":
        return iter(_collected(query).to_batches(max_chunksize=BATCH_ROWS))
    if backend.name == "duckdb":  # Ibis calls what DuckDB has deprecated
        backend._run_pre_execute_hooks(query)
        return iter(backend.raw_sql(backend.compile(query)).to_arrow_reader(BATCH_ROWS))
    return iter(query.to_pyarrow_batches(chunk_size=BATCH_ROWS))


def _check_list(kind: dt.DataType, code: Coded) -> None:
    bits = 8 * kind.nbytes if kind.is_floating() else None
    check_list(code, kind.is_string(), kind.is_boolean(), bits)


def _is_numeric(kind: dt.DataType) -> bool:
    is_local = kind.is_timestamp() and kind.timezone is None
    return bool(kind.is_numeric() or kind.is_boolean() or kind.is_date() or is_local)


def _is_codable(kind: dt.DataType) -> bool:
    is_number = kind.is_numeric() or kind.is_boolean()
    return bool(kind.is_string() or (is_number and not kind.is_decimal()))

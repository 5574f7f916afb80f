"""All queries of a plan see one state of the table, whoever writes meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import ibis
import psycopg
import pyarrow as pa
import pytest
from psycopg.pq import TransactionStatus

from noisewise.artifact import ArgumentError, SourceError
from noisewise.privacy.lattice import Coded
from noisewise.privacy.sources import ibis as room
from noisewise.privacy.sources.ibis import IbisSource, connect
from noisewise.privacy.sources.snapshot import _in_transaction
from noisewise.privacy.sum_plan import CellCounts, Person, SumPlan, Sums

PLAN = SumPlan(
    (CellCounts((Coded("a", (0, 1)), Coded("b", (0, 1))), ((0, 1), (1,), (0,))),),
    None,
    Person("person", 8),
)
# More levels than go into a query as text: they travel as a temporary table.
LONG = SumPlan((CellCounts((Coded("a", tuple(range(200)), None, 5),), ((0,),)),))
ROWS = "SELECT 1 AS person, 0 AS a, 1 AS b UNION ALL SELECT 1, 1, 1 UNION ALL SELECT 2, 1, 0"
WRITE = "INSERT INTO diary VALUES (3, 0, 0), (3, 0, 7), (1, 0, 0), (NULL, 0, 0)"

Run = Callable[[str], Any]


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], list[int]]:
    """After every query of the plan another connection writes; how often it did."""

    def arrange(run: Run) -> list[int]:
        collected, written = room._collected, []

        def disturbed(query: Any) -> pa.Table:
            answer = collected(query)
            run(WRITE)
            written.append(1)
            return answer

        monkeypatch.setattr(room, "_collected", disturbed)
        return written

    return arrange


@pytest.fixture
def diary(postgres_url: str) -> Iterator[Run]:
    """A fresh table ``diary`` in PostgreSQL, and another connection to write to it."""
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("DROP TABLE IF EXISTS diary")
        other.execute(f"CREATE TABLE diary AS {ROWS}")
        yield other.execute


def undisturbed(found: Sums) -> None:
    assert found.sizes.tolist() == [2]
    assert found.parts[0][:, 0].tolist() == [0, 4, 8, 4, 8, 8, 4, 12]
    assert found.missing == found.unlisted == ()


def test_postgres_is_asked_in_one_snapshot(
    diary: Run, postgres_url: str, write: Callable[[Run], list[int]]
) -> None:
    written = write(diary)
    source = connect(f"{postgres_url}#diary")
    undisturbed(source.sum(PLAN))
    assert len(written) == 5  # totals, three tables, people
    # The next plan sees what was written: the snapshot ended with the first.
    assert source.sum(PLAN).missing == ("person",)


def test_postgres_takes_long_lists_into_the_snapshot(diary: Run, postgres_url: str) -> None:
    source = connect(f"{postgres_url}#diary")
    for _ in range(2):
        assert source.sum(LONG).parts[0][:2, 0].tolist() == [1, 2]


@pytest.mark.parametrize("autocommit", [True, False])
def test_postgres_is_left_idle(diary: Run, postgres_url: str, autocommit: bool) -> None:
    with psycopg.connect(postgres_url, autocommit=autocommit) as connection:
        table = ibis.postgres.from_connection(connection).table("diary")
        undisturbed(IbisSource(table).sum(PLAN))
        after: object = connection.info.transaction_status
        assert after == TransactionStatus.IDLE
        broken = IbisSource(table.mutate(a=ibis.literal(1, "int64") // (table.b - table.b)))
        with pytest.raises(SourceError, match="PostgreSQL: summing failed") as caught:
            broken.sum(PLAN)
        assert caught.value.__context__ is None
        after = connection.info.transaction_status
        assert after == TransactionStatus.IDLE
        undisturbed(IbisSource(table).sum(PLAN))


def test_postgres_within_the_owners_transaction(
    diary: Run, postgres_url: str, write: Callable[[Run], list[int]]
) -> None:
    write(diary)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        source = IbisSource(ibis.postgres.from_connection(connection).table("diary"))
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            undisturbed(source.sum(PLAN))
            assert connection.info.transaction_status == TransactionStatus.INTRANS
        with (
            connection.transaction(),
            pytest.raises(ArgumentError, match="commit it, or begin it as REPEATABLE READ"),
        ):
            source.sum(PLAN)
        after: object = connection.info.transaction_status
        assert after == TransactionStatus.IDLE


def test_a_lost_connection_is_reported_without_what_the_server_said(
    diary: Run, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        source = IbisSource(ibis.postgres.from_connection(connection).table("diary"))
        undisturbed(source.sum(PLAN))
        connection.close()
        with pytest.raises(SourceError, match=r"PostgreSQL: .* failed; what") as caught:
            source.sum(PLAN)
        assert caught.value.__context__ is None


def test_duckdb_is_asked_in_one_snapshot(write: Callable[[Run], list[int]]) -> None:
    backend = ibis.duckdb.connect()
    backend.raw_sql(f"CREATE TABLE diary AS {ROWS}")
    written = write(backend.con.cursor().execute)
    source = IbisSource(backend.table("diary"))
    undisturbed(source.sum(PLAN))
    assert len(written) == 5
    assert source.sum(PLAN).missing == ("person",)
    assert source.sum(LONG).sizes.sum() > 3


def test_an_engine_without_snapshots_is_found_out(
    write: Callable[[Run], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "snapshot", lambda _: contextlib.nullcontext())
    backend = ibis.duckdb.connect()
    backend.raw_sql(f"CREATE TABLE diary AS {ROWS}")
    write(backend.con.cursor().execute)
    with pytest.raises(SourceError, match="the table changed while it was read"):
        IbisSource(backend.table("diary")).sum(PLAN)


def test_duckdb_within_the_owners_transaction(write: Callable[[Run], list[int]]) -> None:
    backend = ibis.duckdb.connect()
    backend.raw_sql(f"CREATE TABLE diary AS {ROWS}")
    write(backend.con.cursor().execute)
    source = IbisSource(backend.table("diary"))
    backend.con.begin()
    undisturbed(source.sum(PLAN))
    assert _in_transaction(backend.con)
    backend.con.commit()
    assert not _in_transaction(backend.con)


def test_duckdb_is_left_without_a_transaction_when_a_query_fails() -> None:
    backend = ibis.duckdb.connect()
    backend.raw_sql(f"CREATE TABLE diary AS {ROWS}")
    table = backend.table("diary")
    broken = table.mutate(a=ibis.ifelse(table.a == 1, "SECRET", "0").cast("int64"))
    with pytest.raises(SourceError, match="DuckDB: summing failed") as caught:
        IbisSource(broken).sum(PLAN)
    assert caught.value.__context__ is None
    assert not _in_transaction(backend.con)
    undisturbed(IbisSource(table).sum(PLAN))

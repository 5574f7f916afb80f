"""What goes wrong in an engine is said without quoting a record, a user or a password."""

from __future__ import annotations

import gc
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pytest

from noisewise.artifact import ArgumentError, Bounds, DataError, SourceError
from noisewise.privacy.lattice import Coded, boxed
from noisewise.privacy.sources import ibis as room
from noisewise.privacy.sources.ibis import IbisSource, connect
from noisewise.privacy.sum_plan import CellCounts, ProductSums, SumPlan
from tests.engines.engines import ENGINES, JavaMissing, find_java, on_duckdb
from tests.engines.plans import PLANS, gram
from tests.engines.table import nasty
from tests.reference.sums_reference import reference_sums

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.*127.0.0.1:ResourceWarning")

RECORDS = pa.table({"diary": ["1.5", "SECRET"], "zero": [0, 1]})
PLAN = SumPlan((ProductSums((boxed("bad", Bounds(0.0, 1.0), bits=15),), ((0,),)),))


def assert_silent(error: BaseException, *secrets: str) -> None:
    """Neither text, cause, context nor any line of the traceback gives the secret away."""
    assert error.__cause__ is None
    assert error.__context__ is None
    told = "".join(traceback.format_exception(error))
    assert not [secret for secret in secrets if secret in told]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engines_error_does_not_quote_a_record(load: Any, engine: str) -> None:
    table = load(engine, RECORDS)._table
    broken = IbisSource(table.mutate(bad=table["diary"].cast("float64")))
    with pytest.raises(SourceError, match=f"(?i){engine}.*: summing failed") as caught:
        broken.sum(PLAN)
    assert_silent(caught.value, "SECRET")


def test_spark_does_not_print_a_record(tmp_path: Path) -> None:
    """Finding 9 of the audit; in a process of its own, whose standard error Java inherits."""
    try:
        find_java(tmp_path)
    except JavaMissing as reason:
        pytest.skip(str(reason))
    worker = [sys.executable, "-m", "tests.engines.failing_spark", str(tmp_path)]
    done = subprocess.run(worker, capture_output=True, text=True, timeout=300, check=True)
    assert "Spark: summing failed" in done.stdout
    assert "level WARN, as its owner had it" in done.stdout
    assert "SECRET" not in done.stdout + done.stderr


def test_nor_does_a_view_that_fails(postgres: Any, postgres_url: str) -> None:
    with postgres.cursor() as cursor:
        cursor.execute("CREATE TABLE diaries AS SELECT 'SECRET' AS diary, 0 AS zero")
        cursor.execute("CREATE VIEW divided AS SELECT 1.0 / zero AS bad FROM diaries")
        cursor.execute("CREATE VIEW parsed AS SELECT diary::double precision AS bad FROM diaries")
    for view in ("divided", "public.parsed"):
        with pytest.raises(SourceError, match="PostgreSQL: summing failed") as caught:
            connect(f"{postgres_url}#{view}").sum(PLAN)
        assert_silent(caught.value, "SECRET", "division")


def test_a_table_named_by_a_url(postgres: Any, postgres_url: str) -> None:
    with postgres.cursor() as cursor:
        cursor.execute('CREATE SCHEMA "Vault"')
        cursor.execute('CREATE TABLE "Vault"."People" AS SELECT 0.25::real AS bad')
    found = connect(f"{postgres_url}#Vault.People").sum(PLAN)
    assert found.parts[0].tolist() == [[-(2**14)]]
    gc.collect()  # the connection is closed with its source, or psycopg would warn
    with pytest.raises(DataError, match=r"on '127.0.0.1' has no table 'vault.people'") as caught:
        connect(f"{postgres_url}#vault.people")
    assert_silent(caught.value, str(urlsplit(postgres_url).password))


def test_an_unreachable_database(postgres_url: str) -> None:
    for url, named in (
        ("postgresql://alice:hunter2@127.0.0.1:1/vault#people", "'vault' on '127.0.0.1'"),
        ("postgres://alice:hunter2@/vault?host=/nowhere#people", "'vault' on '/nowhere'"),
        (f"{postgres_url}?user=alice&password=hunter2#people", "'postgres' on '127.0.0.1'"),
        ("postgresql://alice:hunter2@127.0.0.1:1/vault?nonsense=1#people", "'vault'"),
    ):
        with pytest.raises(SourceError, match=f"cannot connect to PostgreSQL.*{named}") as caught:
            connect(url)
        assert_silent(caught.value, "alice", "hunter2")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://alice:hunter2@host/db", "does not say which table.*postgresql://user@host"),
        ("mysql://alice:hunter2@host/db#t", "mysql:// is not known.*postgresql://user@host"),
        ("postgresql://alice:hunter2@[host/db#t", "not a URL.*postgresql://user@host"),
    ],
)
def test_a_url_that_cannot_be_meant(url: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        connect(url)
    assert_silent(caught.value, "alice", "hunter2")


def test_a_duckdb_file(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    with pytest.raises(SourceError, match=r"there is no DuckDB file '.*people.db'"):
        connect(f"duckdb://{path}#people")
    assert not path.exists()
    path.write_text("this is not a database, it is text of some length")
    with pytest.raises(SourceError, match="cannot open DuckDB file") as caught:
        connect(f"duckdb://{path}#people")
    assert_silent(caught.value)
    path.unlink()
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE people AS SELECT 0.25 AS bad")
    assert connect(f"duckdb://{path}#people").sum(PLAN).sizes.tolist() == [1]
    with pytest.raises(DataError, match="has no table 'nobody'"):
        connect(f"duckdb://{path}#nobody")


@pytest.mark.parametrize(("package", "extra"), [("ibis", "postgres"), ("psycopg", "postgres")])
def test_a_package_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ArgumentError, match=rf"pip install 'noisewise\[{extra}\]'"):
        connect("postgresql://host/db#table")


def test_no_more_rows_than_the_lattice_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_ROWS", 10)
    with pytest.raises(DataError, match="more than 10 rows"):
        IbisSource(on_duckdb(nasty(11))).sum(PLANS["gram"])


def test_groups_are_not_all_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand keys in the table, two on the list: a handful of rows come back."""
    rows: list[int] = []
    collected = room._collected

    def counted(query: Any) -> pa.Table:
        answer = collected(query)
        rows.append(len(answer))
        return answer

    monkeypatch.setattr(room, "_collected", counted)
    records = nasty(10_000).append_column("key", pa.array(range(10_000)))
    plan = SumPlan((gram(fill=True),), Coded("key", (5, 9_999)))
    found = IbisSource(on_duckdb(records)).sum(plan)
    expected = reference_sums(records.take([5, 9_999]).to_pylist(), plan)
    np.testing.assert_array_equal(found.parts[0], expected.parts[0])
    assert found.unlisted == ("key",)
    assert max(rows) <= 2 * 2 + 2


@pytest.mark.parametrize("levels", [("a", "A"), ("a", "A", *map(str, range(200)))])
def test_no_collation_counts_a_record_twice(levels: tuple[str, ...]) -> None:
    """To a column that ignores case, both levels equal the one record."""
    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE t (word VARCHAR COLLATE NOCASE, bad DOUBLE)")
    backend.raw_sql("INSERT INTO t VALUES ('a', 0.5)")
    code = Coded("word", levels)
    for plan in (
        SumPlan((CellCounts((code,), ((0,),)), *PLAN.parts)),
        SumPlan(PLAN.parts, code),
    ):
        assert IbisSource(backend.table("t")).sum(plan).sizes.sum() <= 1

"""Views in real engines are known by what they are made of; rows come in an order of their own."""

from __future__ import annotations

import uuid
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest

from noisewise.privacy.sources import open_source
from noisewise.privacy.sources.ibis import IbisSource
from tests.engines.engines import on_spark
from tests.engines.plans import PLANS
from tests.engines.table import nasty, shuffled

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.*127.0.0.1:ResourceWarning")

RECORDS = pa.table({"word": ["a", "b", "a"], "x": [0.0, 1.0, 2.0]})
VIEWS = {
    "SELECT word, CAST(x AS REAL) AS x FROM {0}": "all",
    "SELECT * FROM {0} WHERE x > 0 AND word IN ('a', 'b')": "some",
    "SELECT * FROM {0} LIMIT 2": "unknown",
    "SELECT DISTINCT * FROM {0}": "unknown",
    "SELECT r.* FROM {0} r JOIN {0} s ON r.word = s.word": "unknown",
    "SELECT * FROM {0} UNION ALL SELECT * FROM {0}": "unknown",
    "SELECT word, count(*) AS n FROM {0} GROUP BY word": "unknown",
    "SELECT word, sum(x) OVER () AS x FROM {0}": "unknown",
    "SELECT * FROM {0} WHERE x > (SELECT avg(x) FROM {0})": "unknown",
}


def test_views_of_postgres(postgres: Any, postgres_url: str) -> None:
    with postgres.cursor() as cursor:
        cursor.execute("CREATE SCHEMA chosen")
        cursor.execute("CREATE TABLE chosen.records AS SELECT 'a' AS word, 0.5 AS x")
        for kind in ("VIEW", "MATERIALIZED VIEW"):
            for number, query in enumerate(VIEWS):
                name = f"chosen.{kind[0]}{number}"
                cursor.execute(f"CREATE {kind} {name} AS {query.format('chosen.records')}")
    assert open_source(f"{postgres_url}#chosen.records").kept_records().kept == "all"
    for number, kept in enumerate(VIEWS.values()):
        for kind in ("v", "m"):
            source = open_source(f"{postgres_url}#chosen.{kind}{number}")
            assert source.kept_records().kept == kept


def test_looking_leaves_the_owners_connection_alone(postgres: Any, postgres_url: str) -> None:
    import psycopg
    from psycopg.pq import TransactionStatus

    with postgres.cursor() as cursor:
        cursor.execute("CREATE TABLE looked_at AS SELECT 0.5 AS x")
    with psycopg.connect(postgres_url) as connection:
        table = ibis.postgres.from_connection(connection).table("looked_at")
        connection.rollback()
        assert IbisSource(table).kept_records().kept == "all"
        assert connection.info.transaction_status == TransactionStatus.IDLE


def test_views_of_spark(spark: Any, tmp_path: Any) -> None:
    table = on_spark(RECORDS, spark, tmp_path)
    assert IbisSource(table).kept_records().kept == "all"
    backend = ibis.pyspark.connect(spark)
    for query, kept in VIEWS.items():
        spark.sql(f"CREATE OR REPLACE TEMP VIEW derived AS {query.format(table.op().name)}")
        assert IbisSource(backend.table("derived")).kept_records().kept == kept


def test_text_files_of_spark_are_refused(spark: Any, tmp_path: Any) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    (tmp_path / "t.json").write_text('{"x": 1}\n')
    name = f"written_{uuid.uuid4().hex}"
    csv = spark.read.csv(str(tmp_path / "t.csv"), header=True, mode="DROPMALFORMED", schema="x INT")
    frames = [csv, spark.read.json(str(tmp_path / "t.json")), spark.read.text(str(tmp_path))]
    backend = ibis.pyspark.connect(spark)
    for frame in frames:
        frame.createOrReplaceTempView("scanned")
        found = IbisSource(backend.table("scanned")).kept_records()
        assert found.kept == "unknown"
        assert "give noisewise the path" in found.by
    csv.write.orc(str(tmp_path / name))
    spark.read.orc(str(tmp_path / name)).createOrReplaceTempView("scanned")
    assert IbisSource(backend.table("scanned")).kept_records().kept == "all"


@pytest.mark.parametrize(("layout", "kept"), [("parquet", "all"), ("csv", "unknown")])
def test_a_table_of_spark_is_known_by_its_files(
    spark: Any, layout: str, kept: str, tmp_path: Any
) -> None:
    name = f"stored_{uuid.uuid4().hex}"
    spark.sql(f"CREATE TABLE {name} (x INT) USING {layout} LOCATION '{tmp_path / name}'")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW seen AS SELECT x FROM {name}")
    backend = ibis.pyspark.connect(spark)
    try:
        for each in (name, "seen"):
            assert IbisSource(backend.table(each)).kept_records().kept == kept
    finally:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("engine", ["duckdb", "polars", "postgres", "spark"])
def test_rows_come_in_an_order_of_the_records_alone(load: Any, engine: str) -> None:
    """Finding 7 of the audit: the proof for random partitions needs it."""
    records = nasty(500)
    plan = PLANS["gram"]
    one, other = (
        {
            c: np.concatenate([batch[c] for batch, _ in load(engine, table).stream(plan)])
            for c in plan.numeric
        }
        for table in (records, shuffled(records))
    )
    for column in plan.numeric:
        np.testing.assert_array_equal(one[column], other[column])
        assert one[column].tobytes() == other[column].tobytes()

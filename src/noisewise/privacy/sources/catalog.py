"""Is a name in a database a table, or a view; and if a view, of what?

An expression does not tell: Ibis calls both a table. The database's own catalog does. A view is
read by its definition (`views`), and one whose definition cannot be seen is not known to be safe.
Engines other than the four named here are believed: there the owner vouches for the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noisewise.privacy.selection import ALL, KeptRecords, unknown
from noisewise.privacy.sources.views import view_selection

FILES = (".parquet", ".pq", ".csv", ".csv.gz", ".json", ".ndjson")
"""Endings of the files that a DuckDB view may read."""
DEEPEST = 16
"""Views upon views; a database allows no circle, and nobody needs more."""


def stored_selection(backend: Any, name: str, schema: str | None) -> KeptRecords:
    """Return what a name in a database keeps of the table behind it."""
    readers: dict[str, Callable[[Any, str, str | None, int], KeptRecords]] = {
        "duckdb": _duckdb,
        "postgres": _postgres,
        "polars": _polars,
        "pyspark": _spark,
    }
    read = readers.get(backend.name)
    return ALL if read is None else read(backend, name, schema, DEEPEST)


def _opaque(name: str) -> KeptRecords:
    return unknown(f"the view {name!r}, whose definition the engine does not tell")


def _duckdb(backend: Any, name: str, schema: str | None, depth: int) -> KeptRecords:
    """Names are compared as DuckDB does: without regard to case, temporary ones first."""
    where = "lower({0}_name) = lower(?) AND (? IS NULL OR lower(schema_name) = lower(?))"
    asked = [name, schema, schema]
    found = backend.con.execute(
        f"SELECT sql FROM duckdb_views() WHERE {where.format('view')} AND NOT internal", asked
    ).fetchall()
    if not found:
        tables = f"SELECT 1 FROM duckdb_tables() WHERE {where.format('table')}"
        known = backend.con.execute(tables, asked).fetchall()
        is_file = name.lower().endswith(FILES)
        return ALL if known or is_file else unknown(f"{name!r}, neither a table nor a view")
    if len(found) > 1 or not found[0][0] or not depth:
        return _opaque(name)

    def below(inner: str, schema: str | None) -> KeptRecords:
        return _duckdb(backend, inner, schema, depth - 1)

    return view_selection(name, found[0][0], "duckdb", below)


def _postgres(backend: Any, name: str, schema: str | None, depth: int) -> KeptRecords:
    """In a transaction of its own, or the owner's connection would be left within one."""
    from psycopg import sql

    parts = (name,) if schema is None else (schema, name)
    asked = sql.Identifier(*parts).as_string(backend.con)
    with backend.con.transaction():
        found = backend.con.execute(
            "SELECT relkind, CASE WHEN relkind IN ('v', 'm') THEN pg_get_viewdef(oid) END "
            "FROM pg_catalog.pg_class WHERE oid = to_regclass(%s)",
            [asked],
        ).fetchone()
    if found is None or not depth:
        return _opaque(name)
    kind, definition = found
    if kind in ("r", "p", "f"):
        return ALL
    if kind not in ("v", "m") or not definition:
        return _opaque(name)

    def below(inner: str, schema: str | None) -> KeptRecords:
        return _postgres(backend, inner, schema, depth - 1)

    return view_selection(name, definition, "postgres", below)


def _polars(backend: Any, name: str, schema: str | None, depth: int) -> KeptRecords:
    """What Ibis keeps under a name is a lazy frame: a plan."""
    from noisewise.privacy.sources.polars_plan import polars_selection

    frame = backend._tables.get(name)
    return _opaque(name) if frame is None else polars_selection(frame)


def _spark(backend: Any, name: str, schema: str | None, depth: int) -> KeptRecords:
    """A table of the catalog, or a view's plan as Spark has resolved it."""
    from noisewise.privacy.sources.spark import spark_selection

    return spark_selection(backend._session, name, schema)

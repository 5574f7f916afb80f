"""Which records an Ibis table keeps of the table it is made from: expressions, names, views.

Three readers, one rule: only what is listed here is safe, and a step that is not known is not.

- An expression is a tree of operations; each is looked up in a list (`kept_records_of_ibis`).
- A name in it is a table or a view. Ibis calls both a table; the database's own catalog knows
  (`kept_records_of_name`). Engines other than the four named there are believed: there the owner
  vouches for the table.
- A view's definition may hold columns of one table and a WHERE, nothing else
  (`kept_records_of_view`). One whose definition cannot be seen is not known to be safe.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ibis.expr.operations as ops
import pyarrow as pa
import pyarrow.dataset as ds
import sqlglot
from sqlglot import exp

from noisewise.privacy.selection import ALL, KeptRecords, some, strictest, unknown
from noisewise.privacy.sources.arrow_datasets import is_text, kept_records_of_dataset
from noisewise.privacy.sources.data_frames import kept_records_of_polars
from noisewise.privacy.sources.spark_kept_records import kept_records_of_spark

if TYPE_CHECKING:
    import ibis.expr.types as ir

Below = Callable[[str, str | None], KeptRecords]
"""What a view's own table keeps, by name and schema."""

IBIS_ROW_BY_ROW = (
    "Project DropColumns FillNull SelfReference AliasedRelation Sort SortKey "
    # Values that are made of one row alone.
    "Field Alias Literal Cast TryCast Coalesce Greatest Least NullIf IsNull NotNull "
    "SearchedCase SimpleCase IfElse E Pi "
    "And Or Xor Not Equals NotEquals Greater GreaterEqual Less LessEqual IdenticalTo Between "
    "InValues Abs Add Subtract Multiply Divide FloorDivide Modulus Negate Power Ceil Floor Round "
    "Clip Sign Sqrt Exp Ln Log Log2 Log10 IsInf IsNan Bucket "
    "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseLeftShift BitwiseRightShift "
    "Acos Asin Atan Atan2 Cos Cot Sin Tan Degrees Radians "
    "Capitalize Lowercase Uppercase Strip LStrip RStrip LPad RPad Reverse Repeat Substring "
    "StrRight StartsWith EndsWith StringContains StringConcat StringFind StringLength "
    "StringReplace StringSQLLike StringSQLILike StringSlice Translate "
    "RegexExtract RegexReplace RegexSearch "
    "Date Time DateAdd DateSub DateDiff DateDelta DateFromYMD DateTruncate DayOfWeekIndex "
    "DayOfWeekName ExtractYear ExtractIsoYear ExtractQuarter ExtractMonth ExtractWeekOfYear "
    "ExtractDay ExtractDayOfYear ExtractHour ExtractMinute ExtractSecond ExtractMillisecond "
    "ExtractMicrosecond ExtractEpochSeconds Strftime StringToDate StringToTime "
    "StringToTimestamp TimestampAdd TimestampSub TimestampDiff TimestampDelta TimestampTruncate "
    "TimestampFromUNIX TimestampFromYMDHMS IntervalFromInteger StructField"
)
"""Operations of Ibis that give one row for each row, from that row alone (chosen)."""

IBIS_FILTERS = {"Filter": "a filter", "DropNull": "a filter (drop_null)"}
"""Operations of Ibis that keep or drop a row, and what an error calls them; what they look
at is itself a step of the expression."""

IBIS_WORDS = {
    "JoinChain": "a join",
    "Limit": "a limit",
    "Distinct": "distinct rows",
    "Sample": "a sample",
    "Union": "a union",
    "Intersection": "an intersection",
    "Difference": "a difference",
    "Aggregate": "an aggregate",
    "WindowFunction": "a window function",
    "Unnest": "unnest",
    "TableUnnest": "unnest",
    "InSubquery": "a subquery",
    "ScalarSubquery": "a subquery",
    "ExistsSubquery": "a subquery",
    "SQLQueryResult": "a query in SQL",
    "SQLStringView": "a query in SQL",
    "RandomScalar": "random numbers",
}
"""What an error calls the commonest of the other operations of Ibis."""

PARQUET_ENDINGS = (".parquet", ".pq")
"""Endings of Parquet files, which DuckDB reads where a table is named after them."""

TEXT_FILE = re.compile(r"\.(csv|tsv|txt|json|jsonl|ndjson)(\.(gz|zst))?$")
"""Endings of text files, which DuckDB reads where a table is named after them (its documentation):
where a record ends and what a cell means there may depend on other records."""

MAX_VIEW_DEPTH = 16
"""Views upon views (chosen): a database allows no circle, and nobody needs more."""

SQL_ROW_BY_ROW = (
    "Column Identifier Star Alias Literal Boolean Null Cast TryCast DataType DataTypeParam Paren "
    "EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ And Or Not Is Between In Any Array Like ILike "
    "Add Sub Mul Div IntDiv Mod Neg Abs Round Floor Ceil Sqrt Exp Ln "
    "Coalesce Nullif Case If Greatest Least Lower Upper Trim Length DPipe Concat Substring"
)
"""Expressions of SQL, as sqlglot names them, that are made of one row alone (chosen)."""

PARQUET_READERS = ("readparquet", "read_parquet", "parquet_scan")
"""DuckDB's readers of Parquet files, by sqlglot's name for them or their own, in small letters."""

TEXT_READER = re.compile(r"read_?(csv|json|ndjson)|sniff_csv")
"""How DuckDB's readers of CSV and JSON files are called, by sqlglot or by their own names."""

PARQUET_OPTIONS = frozenset({"binary_as_string", "hive_partitioning"})
"""Options of DuckDB's reader of Parquet that change no row because of another (chosen)."""

SYSTEM_COLUMNS = frozenset(
    {"rowid", "file_row_number", "file_index", "filename"}
    | {"ctid", "oid", "tableoid", "xmin", "xmax", "cmin", "cmax"}
)
"""Columns nobody declared, of DuckDB and PostgreSQL: they say where a row lies, which may depend on
the others."""

_IBIS_ROW_BY_ROW = {kind for name in IBIS_ROW_BY_ROW.split() if (kind := getattr(ops, name, None))}
_IBIS_FILTERS = {
    kind: words for name, words in IBIS_FILTERS.items() if (kind := getattr(ops, name, None))
}
_SQL_ROW_BY_ROW = frozenset(SQL_ROW_BY_ROW.split())


def kept_records_of_ibis(table: ir.Table) -> KeptRecords:
    """Return what an Ibis table keeps of the records in the table it is made from."""
    steps = [_ibis_step(node) for node in table.op().find(ops.Node)]
    bases = sum(isinstance(node, ops.PhysicalTable) for node in table.op().find(ops.Node))
    if bases != 1:
        steps.append(unknown("more or less than one table"))
    return strictest(steps)


def _ibis_step(node: Any) -> KeptRecords:
    """Return what one step keeps; by its very class, for a subclass may do something else."""
    kind = type(node)
    if kind in _IBIS_ROW_BY_ROW:
        return ALL
    if kind in _IBIS_FILTERS:
        return some(_IBIS_FILTERS[kind])
    if kind is ops.InMemoryTable:
        return _kept_of_memory(node.data.obj)
    if kind is ops.DatabaseTable:
        return kept_records_of_name(node.source, node.name, node.namespace.database)
    return unknown(IBIS_WORDS.get(kind.__name__, f"the Ibis operation {kind.__name__}"))


def _kept_of_memory(data: Any) -> KeptRecords:
    """Return what the object behind `ibis.memtable` keeps, which may be a query itself."""
    if isinstance(data, ds.Dataset):
        return strictest([_text_reader() if is_text(data) else ALL, kept_records_of_dataset(data)])
    library = type(data).__module__.partition(".")[0]
    if library == "polars":
        return kept_records_of_polars(data)
    if library == "pandas" or isinstance(data, pa.Table | pa.RecordBatch):
        return ALL
    return unknown("an object in memory that cannot be looked into")


def kept_records_of_name(backend: Any, name: str, schema: str | None) -> KeptRecords:
    """Return what a name in a database keeps of the table behind it."""
    readers: dict[str, Callable[[Any, str, str | None, int], KeptRecords]] = {
        "duckdb": _kept_of_duckdb,
        "postgres": _kept_of_postgres,
        "polars": _kept_of_polars_name,
        "pyspark": _kept_of_spark_name,
    }
    read = readers.get(backend.name)
    return ALL if read is None else read(backend, name, schema, MAX_VIEW_DEPTH)


def _hidden_view(name: str) -> KeptRecords:
    return unknown(f"the view {name!r}, whose definition the engine does not tell")


def _kept_of_duckdb(backend: Any, name: str, schema: str | None, depth: int) -> KeptRecords:
    """Look up a name as DuckDB does: without regard to case, temporary ones first."""
    where = "lower({0}_name) = lower(?) AND (? IS NULL OR lower(schema_name) = lower(?))"
    asked = [name, schema, schema]
    views = backend.con.execute(
        f"SELECT sql FROM duckdb_views() WHERE {where.format('view')} AND NOT internal", asked
    ).fetchall()
    if not views:
        tables = f"SELECT 1 FROM duckdb_tables() WHERE {where.format('table')}"
        known = backend.con.execute(tables, asked).fetchall()
        return ALL if known else _kept_of_file(name)
    if len(views) > 1 or not views[0][0] or not depth:
        return _hidden_view(name)

    def below(inner: str, schema: str | None) -> KeptRecords:
        return _kept_of_duckdb(backend, inner, schema, depth - 1)

    return kept_records_of_view(name, views[0][0], "duckdb", below)


def _kept_of_file(name: str) -> KeptRecords:
    """Return what a name keeps that is no table: DuckDB then looks for a file of that name."""
    if name.lower().endswith(PARQUET_ENDINGS):
        return ALL
    if TEXT_FILE.search(name.lower()):
        return _text_reader()
    return unknown(f"{name!r}, neither a table nor a view")


def _text_reader() -> KeptRecords:
    return unknown(
        "an engine's own reader of CSV or JSON files (give noisewise the path of the CSV file)"
    )


def _kept_of_postgres(backend: Any, name: str, schema: str | None, depth: int) -> KeptRecords:
    """Look up a name in a transaction of its own, or the owner's connection would stay in one."""
    from psycopg import sql

    parts = (name,) if schema is None else (schema, name)
    asked = sql.Identifier(*parts).as_string(backend.con)
    with backend.con.transaction():
        entry = backend.con.execute(
            "SELECT relkind, CASE WHEN relkind IN ('v', 'm') THEN pg_get_viewdef(oid) END "
            "FROM pg_catalog.pg_class WHERE oid = to_regclass(%s)",
            [asked],
        ).fetchone()
    if entry is None or not depth:
        return _hidden_view(name)
    kind, definition = entry
    if kind in ("r", "p", "f"):
        return ALL
    if kind not in ("v", "m") or not definition:
        return _hidden_view(name)

    def below(inner: str, schema: str | None) -> KeptRecords:
        return _kept_of_postgres(backend, inner, schema, depth - 1)

    return kept_records_of_view(name, definition, "postgres", below)


def _kept_of_polars_name(backend: Any, name: str, schema: str | None, depth: int) -> KeptRecords:
    """Return what a name of Ibis's Polars keeps: it stands for a lazy frame, which is a plan."""
    frame = backend._tables.get(name)
    return _hidden_view(name) if frame is None else kept_records_of_polars(frame)


def _kept_of_spark_name(backend: Any, name: str, schema: str | None, depth: int) -> KeptRecords:
    """Return what a table, or a view's plan as Spark has resolved it, keeps."""
    return kept_records_of_spark(backend._session, name, schema)


def kept_records_of_view(name: str, definition: str, dialect: str, below: Below) -> KeptRecords:
    """Return what a view keeps of the table it is made from."""
    try:
        statement = sqlglot.parse_one(definition, read=dialect)
    except sqlglot.errors.SqlglotError:
        return _unsafe_view(name)
    query = statement.expression if isinstance(statement, exp.Create) else statement
    return _select(name, query, below)


def _select(name: str, query: exp.Expression | None, below: Below) -> KeptRecords:
    if type(query) is not exp.Select:
        return _unsafe_view(name)
    given = {part.rstrip("_") for part, value in query.args.items() if value}
    if not given <= {"expressions", "from", "where"} or "from" not in given:
        return _unsafe_view(name)
    where = query.args.get("where")
    shown = [*query.expressions, *([where.this] if where else [])]
    if not all(_is_row_by_row(part) for part in shown):
        return _unsafe_view(name)
    origin = next(query.args[part].this for part in ("from_", "from") if query.args.get(part))
    kept = some(f"a filter (in the view {name!r})") if where else ALL
    return strictest([kept, _origin(name, origin, below)])


def _origin(name: str, origin: exp.Expression, below: Below) -> KeptRecords:
    """Return what the one table, file or inner query behind FROM keeps."""
    given = {part for part, value in origin.args.items() if value}
    if type(origin) is exp.Subquery and given <= {"this", "alias"}:
        return _select(name, origin.this, below)
    if type(origin) is not exp.Table or not given <= {"this", "db", "catalog", "alias"}:
        return _unsafe_view(name)
    if isinstance(origin.this, exp.Identifier):
        return below(origin.name, origin.text("db") or None)
    return _kept_of_reader(name, origin.this)


def _kept_of_reader(name: str, reader: exp.Expression) -> KeptRecords:
    """Return what a function of DuckDB behind FROM keeps of the files that it reads."""
    anonymous = isinstance(reader, exp.Anonymous)
    function = (reader.name if anonymous else type(reader).__name__).lower()
    if TEXT_READER.match(function):
        return _text_reader()
    if function not in PARQUET_READERS:
        return _unsafe_view(name)
    given = reader.expressions if anonymous else [reader.this, *reader.expressions]
    first, *options = [part for part in given if part]
    if _are_distinct_paths(first) and all(_is_parquet_option(part) for part in options):
        return ALL
    return unknown(f"the view {name!r}, which reads Parquet files with options")


def _are_distinct_paths(argument: exp.Expression) -> bool:
    """Tell whether it is one path, or a list of paths none of which can be read twice."""
    if isinstance(argument, exp.Dot):  # as DuckDB writes a list: main.list_value('a', 'b')
        argument = argument.expression
    if isinstance(argument, exp.Literal):
        return bool(argument.is_string)
    is_list = isinstance(argument, exp.Array) or argument.name.lower() == "list_value"
    paths = argument.expressions
    if not is_list or not all(isinstance(p, exp.Literal) and p.is_string for p in paths):
        return False
    if len(paths) == 1:
        return True
    files = {os.path.realpath(path.name) for path in paths}
    return len(files) == len(paths) and not any(set("*?[") & set(path.name) for path in paths)


def _is_parquet_option(argument: exp.Expression) -> bool:
    equation = argument.this if isinstance(argument, exp.Paren) else argument
    is_named = isinstance(equation, exp.EQ | exp.PropertyEQ | exp.Kwarg)
    return is_named and equation.this.name.lower() in PARQUET_OPTIONS


def _is_row_by_row(expression: exp.Expression) -> bool:
    return all(
        type(node).__name__ in _SQL_ROW_BY_ROW
        and not (isinstance(node, exp.Column) and node.name.lower() in SYSTEM_COLUMNS)
        for node in expression.walk()
    )


def _unsafe_view(name: str) -> KeptRecords:
    return unknown(f"the view {name!r}, which is more than columns of one table and a WHERE")

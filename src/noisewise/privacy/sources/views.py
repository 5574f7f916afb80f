"""A view's definition, read against a list of what is safe: columns of one table, and a WHERE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp

from noisewise.privacy.selection import ALL, KeptRecords, some, strictest, unknown

Below = Callable[[str, str | None], KeptRecords]
"""What a view's own table keeps, by name and schema."""

ROW_BY_ROW = (
    "Column Identifier Star Alias Literal Boolean Null Cast TryCast DataType DataTypeParam Paren "
    "EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ And Or Not Is Between In Any Array Like ILike "
    "Add Sub Mul Div IntDiv Mod Neg Abs Round Floor Ceil Sqrt Exp Ln "
    "Coalesce Nullif Case If Greatest Least Lower Upper Trim Length DPipe Concat Substring"
)
"""Expressions that are made of one row alone."""

READERS = ("ReadParquet", "ReadCSV")
"""Expressions of SQLGlot that read files."""
FUNCTIONS = ("parquet_scan", "read_csv_auto", "read_json", "read_json_auto", "read_ndjson")
"""Functions of DuckDB that read files."""

PSEUDO = {"rowid", "file_row_number", "file_index", "filename"}
PSEUDO |= {"ctid", "oid", "tableoid", "xmin", "xmax", "cmin", "cmax"}
"""Columns nobody declared: they say where a row lies, which may depend on the others."""


def view_selection(name: str, definition: str, dialect: str, below: Below) -> KeptRecords:
    """Return what a view keeps of the table it is made from."""
    try:
        statement = sqlglot.parse_one(definition, read=dialect)
    except sqlglot.errors.SqlglotError:
        return _refused(name)
    query = statement.expression if isinstance(statement, exp.Create) else statement
    return _select(name, query, below)


def _select(name: str, query: Any, below: Below) -> KeptRecords:
    if type(query) is not exp.Select:
        return _refused(name)
    given = {part.rstrip("_") for part, value in query.args.items() if value}
    if not given <= {"expressions", "from", "where"} or "from" not in given:
        return _refused(name)
    where = query.args.get("where")
    shown = [*query.expressions, *([where.this] if where else [])]
    if not all(_is_row_by_row(part) for part in shown):
        return _refused(name)
    origin = next(query.args[part].this for part in ("from_", "from") if query.args.get(part))
    kept = some(f"a filter (in the view {name!r})") if where else ALL
    return strictest([kept, _origin(name, origin, below)])


def _origin(name: str, origin: Any, below: Below) -> KeptRecords:
    """Return what the one table, file or inner query behind FROM keeps."""
    given = {part for part, value in origin.args.items() if value}
    if type(origin) is exp.Subquery and given <= {"this", "alias"}:
        return _select(name, origin.this, below)
    if type(origin) is not exp.Table or not given <= {"this", "db", "catalog", "alias"}:
        return _refused(name)
    if isinstance(origin.this, exp.Identifier):
        return below(origin.name, origin.text("db") or None)
    kind = type(origin.this).__name__
    reads = kind in READERS or (kind == "Anonymous" and origin.this.name.lower() in FUNCTIONS)
    return ALL if reads else _refused(name)


def _is_row_by_row(expression: Any) -> bool:
    return all(
        type(node).__name__ in _NAMES
        and not (isinstance(node, exp.Column) and node.name.lower() in PSEUDO)
        for node in expression.walk()
    )


def _refused(name: str) -> KeptRecords:
    return unknown(f"the view {name!r}, which is more than columns of one table and a WHERE")


_NAMES = frozenset(ROW_BY_ROW.split())

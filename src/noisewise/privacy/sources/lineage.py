"""How an Ibis table came about: every step of its expression, against a list of safe ones.

Only what is listed here is safe. A step that is not known, or not known yet, is not.
"""

from __future__ import annotations

from typing import Any

import ibis.expr.operations as ops

from noisewise.privacy.selection import ALL, KeptRecords, some, strictest, unknown
from noisewise.privacy.sources.catalog import stored_selection

ROW_BY_ROW = (
    "Project DropColumns FillNull SelfReference AliasedRelation Sort SortKey InMemoryTable "
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
"""Steps that give one row for each row, from that row alone."""

FILTERS = {"Filter": "a filter", "DropNull": "a filter (drop_null)"}
"""Steps that keep or drop a row; what they look at is itself a step of the expression."""

WORDS = {
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
"""What an error calls the commonest of the others."""

_ROW_BY_ROW = {kind for name in ROW_BY_ROW.split() if (kind := getattr(ops, name, None))}
_FILTERS = {kind: by for name, by in FILTERS.items() if (kind := getattr(ops, name, None))}


def ibis_selection(table: Any) -> KeptRecords:
    """Return what an Ibis table keeps of the records in the table it is made from."""
    steps = [_step(node) for node in table.op().find(ops.Node)]
    bases = sum(isinstance(node, ops.PhysicalTable) for node in table.op().find(ops.Node))
    if bases != 1:
        steps.append(unknown("more or less than one table"))
    return strictest(steps)


def _step(node: Any) -> KeptRecords:
    """Return what one step keeps; by its very class, for a subclass may do something else."""
    kind = type(node)
    if kind in _ROW_BY_ROW:
        return ALL
    if kind in _FILTERS:
        return some(_FILTERS[kind])
    if kind is ops.DatabaseTable:
        return stored_selection(node.source, node.name, node.namespace.database)
    return unknown(WORDS.get(kind.__name__, f"the Ibis operation {kind.__name__}"))

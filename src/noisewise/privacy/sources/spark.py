"""What a name in Spark's catalog keeps of its table: a table's type, or a view's resolved plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from noisewise.privacy.selection import ALL, KeptRecords, some, strictest, unknown

TABLES = ("MANAGED", "EXTERNAL")
"""Kinds of catalogue entries that are tables, not views."""
STEPS = (
    "SubqueryAlias View Project Sort LogicalRelation HiveTableRelation DataSourceV2Relation "
    "LocalRelation LogicalRDD"
)
"""Steps of a plan that give one row for each row."""

ROW_BY_ROW = (
    "AttributeReference Alias Cast Literal SortOrder And Or Not EqualTo EqualNullSafe LessThan "
    "LessThanOrEqual GreaterThan GreaterThanOrEqual IsNull IsNotNull IsNaN In Add Subtract "
    "Multiply Divide Remainder UnaryMinus Abs Floor Ceil Round Sqrt Exp Coalesce CaseWhen If "
    "Lower Upper StringTrim Concat Substring"
)
"""Expressions that are made of one row alone."""

_STEPS, _ROW_BY_ROW = frozenset(STEPS.split()), frozenset(ROW_BY_ROW.split())


def spark_selection(session: Any, name: str, schema: str | None) -> KeptRecords:
    """Return what a table or view of Spark keeps of the table behind it."""
    quoted = ".".join(f"`{part.replace('`', '``')}`" for part in (schema, name) if part)
    if session.catalog.getTable(quoted).tableType in TABLES:
        return ALL
    frame = session.table(quoted)
    if not hasattr(frame, "_jdf"):  # Spark Connect does not show its plans
        return unknown(f"the view {name!r}, whose definition the engine does not tell")
    return strictest(_steps(frame._jdf.queryExecution().analyzed()))


def _steps(plan: Any) -> Iterator[KeptRecords]:
    """Walk from the last step to the table, which is the first."""
    while True:
        yield _step(plan)
        inputs = plan.children()
        if inputs.size() != 1:
            if inputs.size():
                yield unknown("a view of several tables")
            return
        plan = inputs.apply(0)


def _step(plan: Any) -> KeptRecords:
    kind = plan.getClass().getSimpleName()
    safe = all(_is_row_by_row(e) for e in _each(plan.expressions()))
    if kind in _STEPS and safe:
        return ALL
    if kind == "Filter" and safe:
        return some("a filter (in a view of Spark)")
    return unknown(f"a view of Spark that is more than columns and a filter ({kind})")


def _is_row_by_row(expression: Any) -> bool:
    kind = expression.getClass().getSimpleName()
    return kind in _ROW_BY_ROW and all(_is_row_by_row(e) for e in _each(expression.children()))


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(i) for i in range(sequence.size()))

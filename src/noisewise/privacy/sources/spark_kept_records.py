"""Which records a name in Spark's catalog keeps of the table behind it.

A table of the catalog keeps all of its records; a view is read by its plan, as Spark has resolved
it, against a list of safe steps (`kept_records_of_spark`). Neither may stand for text files, in
which Spark may drop, split or retype records because of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from noisewise.privacy.selection import ALL, KeptRecords, some, strictest, unknown

TABLES = ("MANAGED", "EXTERNAL")
"""Types of tables in Spark's catalog that are no views."""

RELATIONS = ("LogicalRelation", "DataSourceV2Relation")
"""Steps of Spark's plans that read files or another database, by either interface."""

SPARK_STEPS = "SubqueryAlias View Project Sort HiveTableRelation LocalRelation LogicalRDD"
"""Steps of Spark's plans that give one row for each row (chosen)."""

TYPED_FILES = (
    "ParquetFileFormat OrcFileFormat DeltaParquetFileFormat "  # of Spark's first interface
    "ParquetTable OrcTable"  # of its second
)
"""Classes of Spark that read files whose records and types are stored, not guessed (chosen)."""

TEXT_FILES = (
    "CSVFileFormat JsonFileFormat TextFileFormat XmlFileFormat CSVTable JsonTable TextTable"
)
"""Classes of Spark that read text files."""

SPARK_ROW_BY_ROW = (
    "AttributeReference Alias Cast Literal SortOrder And Or Not EqualTo EqualNullSafe LessThan "
    "LessThanOrEqual GreaterThan GreaterThanOrEqual IsNull IsNotNull IsNaN In Add Subtract "
    "Multiply Divide Remainder UnaryMinus Abs Floor Ceil Round Sqrt Exp Coalesce CaseWhen If "
    "Lower Upper StringTrim Concat Substring"
)
"""Expressions of Spark that are made of one row alone (chosen)."""

_STEPS, _ROW_BY_ROW = frozenset(SPARK_STEPS.split()), frozenset(SPARK_ROW_BY_ROW.split())
_TYPED_FILES, _TEXT_FILES = frozenset(TYPED_FILES.split()), frozenset(TEXT_FILES.split())


def kept_records_of_spark(session: Any, name: str, schema: str | None) -> KeptRecords:
    """Return what a table or view of Spark keeps of the table behind it."""
    quoted = ".".join(f"`{part.replace('`', '``')}`" for part in (schema, name) if part)
    is_table = session.catalog.getTable(quoted).tableType in TABLES
    frame = session.table(quoted)
    if not hasattr(frame, "_jdf"):  # Spark Connect does not show its plans
        hidden = unknown(f"the view {name!r}, whose definition the engine does not tell")
        return ALL if is_table else hidden
    plan = frame._jdf.queryExecution().analyzed()
    return _kept_of_table(plan) if is_table else strictest(_steps(plan))


def _kept_of_table(plan: Any) -> KeptRecords:
    """Return what a table of the catalog keeps, whatever Spark does to its columns on reading."""
    while plan.children().size() == 1:
        plan = plan.children().apply(0)
    kind = plan.getClass().getSimpleName()
    return _relation(plan, kind) if kind in RELATIONS else ALL


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
    if kind in RELATIONS:
        return _relation(plan, kind)
    safe = all(_is_row_by_row(e) for e in _each(plan.expressions()))
    if kind in _STEPS and safe:
        return ALL
    if kind == "Filter" and safe:
        return some("a filter (in a view of Spark)")
    return unknown(f"a view of Spark that is more than columns and a filter ({kind})")


def _relation(plan: Any, kind: str) -> KeptRecords:
    """Return what files or a table keep: a table of the catalog, or files of a typed format."""
    if kind == "LogicalRelation":
        is_table, relation = plan.catalogTable().isDefined(), plan.relation()
        is_files = relation.getClass().getSimpleName() == "HadoopFsRelation"
        reader = relation.fileFormat() if is_files else relation
    else:
        is_table, reader = plan.identifier().isDefined(), plan.table()
    name = reader.getClass().getSimpleName()
    if name in _TEXT_FILES:
        return unknown("Spark's own reader of text files (give noisewise the path of the CSV file)")
    if is_table or name in _TYPED_FILES:
        return ALL
    return unknown(f"a source of Spark that is neither a table nor Parquet ({name})")


def _is_row_by_row(expression: Any) -> bool:
    kind = expression.getClass().getSimpleName()
    return kind in _ROW_BY_ROW and all(_is_row_by_row(e) for e in _each(expression.children()))


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(i) for i in range(sequence.size()))

"""What a Polars frame that is not computed yet keeps of its table: its plan, step by step.

The plan is looked at as it was written: the optimiser may carry a step out and leave no trace of
it. Only steps and expressions that are listed here are safe. A frame that is computed already
(``.collect()``) is a table, and its owner vouches for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from noisewise.privacy.selection import ALL, KeptRecords, some, strictest, unknown

PROJECTIONS = ("Select", "HStack", "SimpleProjection")
"""Steps of a Polars plan that change columns and keep all rows."""
FILES = ("parquet", "ipc")
"""Kinds of files that a lazy frame may scan."""
FUNCTIONS = (
    "BooleanFunction.IsNull BooleanFunction.IsNotNull BooleanFunction.IsNan "
    "BooleanFunction.IsNotNan BooleanFunction.IsFinite BooleanFunction.IsInfinite "
    "BooleanFunction.IsBetween BooleanFunction.Not BooleanFunction.AllHorizontal "
    "BooleanFunction.AnyHorizontal StringFunction.Lowercase StringFunction.Uppercase "
    "StringFunction.StartsWith StringFunction.EndsWith StringFunction.StripChars "
    "fill_null coalesce clip abs negate floor ceil round sqrt exp log pow sign "
    "max_horizontal min_horizontal"
)
"""Functions whose value in a row is made of that row alone."""

MEMBER = "BooleanFunction.IsIn"
"""The test for membership of a list, whose second argument may be a column."""
WORDS = {
    "Slice": "a slice",
    "Distinct": "unique rows",
    "Join": "a join",
    "GroupBy": "an aggregate",
    "Union": "a union",
}
"""Steps that mix rows, in words for an error message."""

_FUNCTIONS = frozenset(FUNCTIONS.split())


def polars_selection(frame: Any) -> KeptRecords:
    """Return what a frame keeps of its table; a frame that is computed already keeps all of it."""
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return ALL
    frame.collect_schema()  # what is wrong with the plan itself is said by Polars
    try:
        plan = frame._ldf.with_optimizations(pl.QueryOptFlags.none()._pyoptflags).visit()
        return strictest(_steps(plan))
    except (NotImplementedError, AttributeError, TypeError, pl.exceptions.PolarsError):
        return unknown("a plan of Polars that cannot be looked into (`.collect()` it first)")


def _steps(plan: Any) -> Iterator[KeptRecords]:
    """Walk from the last step to the table, which is the first."""
    while True:
        step, inputs = plan.view_current_node(), plan.get_inputs()
        yield _step(plan, step)
        if not inputs:
            return
        if len(inputs) > 1:
            yield unknown(WORDS.get(type(step).__name__, "several tables"))
            return
        plan.set_node(inputs[0])


def _step(plan: Any, step: Any) -> KeptRecords:
    kind = type(step).__name__
    if kind == "DataFrameScan":
        return ALL if step.selection is None else _filter(plan, step.selection)
    if kind == "Scan":
        return _scan(plan, step)
    if kind == "Cache":
        return ALL
    if kind == "Filter":
        return _filter(plan, step.predicate)
    if kind in PROJECTIONS:
        return _projection(plan, step, kind)
    return unknown(f"{WORDS.get(kind, f'the step {kind} of Polars')} (`.collect()` it first)")


def _scan(plan: Any, step: Any) -> KeptRecords:
    """Return what a scan of files keeps: not what it reads by position."""
    options = step.file_options
    whole = (options.n_rows, options.row_index, options.deletion_files) == (None, None, None)
    if step.scan_type[0] not in FILES or not whole:
        return unknown("a scan of files by Polars with options (give their path instead)")
    return ALL if step.predicate is None else _filter(plan, step.predicate)


def _filter(plan: Any, predicate: Any) -> KeptRecords:
    if _is_row_by_row(plan, predicate.node):
        return some("a filter")
    return unknown("a filter that looks at more than one row at a time")


def _projection(plan: Any, step: Any, kind: str) -> KeptRecords:
    if kind == "SimpleProjection":
        return ALL
    nodes = [each.node for each in (step.expr if kind == "Select" else step.exprs)]
    # Of constants alone, Polars makes a single row.
    is_row = kind == "HStack" or any(_has_column(plan, node) for node in nodes)
    if is_row and all(_is_row_by_row(plan, node) for node in nodes):
        return ALL
    return unknown("a column that is made of more than one row (`.collect()` it first)")


def _has_column(plan: Any, node: int) -> bool:
    expression = plan.view_expression(node)
    inner = _inner(expression) or []
    return type(expression).__name__ == "Column" or any(_has_column(plan, n) for n in inner)


def _is_row_by_row(plan: Any, node: int) -> bool:
    """Tell whether an expression's value in a row is made of that row alone."""
    expression = plan.view_expression(node)
    kind = type(expression).__name__
    if kind == "Literal":
        return type(expression.value).__name__ != "PySeries"  # a column beside the table
    if kind == "Function" and str(expression.function_data[0]) == MEMBER:
        first, *lists = expression.input
        constant = all(type(plan.view_expression(n)).__name__ == "Literal" for n in lists)
        return constant and _is_row_by_row(plan, first)
    inner = _inner(expression)
    return inner is not None and all(_is_row_by_row(plan, n) for n in inner)


def _inner(expression: Any) -> list[int] | None:
    """Return the parts of an expression; None where it is not on the list."""
    kind = type(expression).__name__
    if kind in ("Column", "Literal"):
        return []
    if kind == "BinaryExpr":
        return [expression.left, expression.right]
    if kind == "Cast":
        return [expression.expr]
    if kind == "Ternary":
        return [expression.predicate, expression.truthy, expression.falsy]
    if kind == "Function" and str(expression.function_data[0]) in _FUNCTIONS:
        return list(expression.input)
    return None

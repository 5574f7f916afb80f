"""Data frames of pandas and Polars as batches, and what a lazy Polars frame keeps of its table.

A Polars frame that is not computed yet is a plan. It is looked at step by step as it was written:
the optimiser may carry a step out and leave no trace of it. Only steps and expressions that are
listed here are safe. A frame that is computed already (``.collect()``) is a table, and its owner
vouches for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noisewise.artifact import DataError, NoisewiseError, SourceError
from noisewise.privacy.selection import ALL, KeptRecords, some, strictest, unknown
from noisewise.privacy.sources.arrow import BATCH_ROWS, Types, guarded
from noisewise.privacy.sum_plan import SumPlan

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

PROJECTIONS = ("Select", "HStack", "SimpleProjection")
"""Steps of a Polars plan that choose or make columns."""

SCANNED_FORMATS = ("parquet", "ipc")
"""Files whose scan by Polars is safe: their types do not depend on other records."""

POLARS_FUNCTIONS = (
    "BooleanFunction.IsNull BooleanFunction.IsNotNull BooleanFunction.IsNan "
    "BooleanFunction.IsNotNan BooleanFunction.IsFinite BooleanFunction.IsInfinite "
    "BooleanFunction.IsBetween BooleanFunction.Not BooleanFunction.AllHorizontal "
    "BooleanFunction.AnyHorizontal StringFunction.Lowercase StringFunction.Uppercase "
    "StringFunction.StartsWith StringFunction.EndsWith StringFunction.StripChars "
    "fill_null coalesce clip abs negate floor ceil round sqrt exp log pow sign "
    "max_horizontal min_horizontal"
)
"""Functions of Polars whose value in a row is made of that row alone (chosen)."""

IS_IN = "BooleanFunction.IsIn"
"""The test for membership, safe where the list is constant."""

POLARS_WORDS = {
    "Slice": "a slice",
    "Distinct": "unique rows",
    "Join": "a join",
    "GroupBy": "an aggregate",
    "Union": "a union",
}
"""What an error calls the commonest of the other steps."""

_POLARS_FUNCTIONS = frozenset(POLARS_FUNCTIONS.split())


class PandasBatches:
    """A pandas frame; only the columns asked for are converted, in slices."""

    name = "the data frame"
    spelled = False

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def types(self) -> Types:
        """Return types of columns named by text; an object column has none before conversion."""
        types: Types = []
        for place, (name, dtype) in enumerate(self._frame.dtypes.items()):
            if isinstance(name, str):
                empty = self._frame.iloc[:0, place]
                types.append((name, None if dtype.name == "object" else _type_of(empty)))
        return types

    def rows(self) -> int | None:
        """Return the number of rows."""
        return len(self._frame)

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """Yield slices, converted one by one, so that no second copy of the table exists."""
        frame = self._frame[plan.columns]
        for start in range(0, len(frame), BATCH_ROWS):
            part = frame.iloc[start : start + BATCH_ROWS]
            arrays = [guarded(partial(_array, part[c]), partial(_unfit, c)) for c in plan.columns]
            yield pa.RecordBatch.from_arrays(arrays, names=plan.columns)

    def explain(self, plan: SumPlan | None) -> NoisewiseError:
        """Return a general error: a conversion that fails raises its own."""
        return SourceError(f"{self.name} could not be read to its end")


def _array(series: pd.Series[Any]) -> pa.Array:
    array = pa.Array.from_pandas(series)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _type_of(empty: pd.Series[Any]) -> pa.DataType | None:
    """Return None where Arrow has no such type: only columns asked for must have one."""
    try:
        return _array(empty).type
    except (pa.ArrowException, TypeError, ValueError):
        return None


def _unfit(column: str) -> DataError:
    return DataError(
        f"column {column!r} holds something that can be read neither as numbers nor as text"
    )


class PolarsBatches:
    """A Polars frame, computed already or not; only the columns asked for are."""

    name = "the Polars frame"
    spelled = False

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame

    def types(self) -> Types:
        """Return columns and types as the schema has them."""
        schema = self._frame.lazy().collect_schema()
        return [(name, _polars_type(name, kind)) for name, kind in schema.items()]

    def rows(self) -> int | None:
        """Return the number of rows of a frame that is computed, else None."""
        return getattr(self._frame, "height", None)

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """Yield slices; a LazyFrame is computed here."""
        frame = self._frame.lazy().select(plan.columns).collect()
        for part in frame.iter_slices(BATCH_ROWS):
            yield from part.to_arrow().combine_chunks().to_batches()

    def explain(self, plan: SumPlan | None) -> NoisewiseError:
        """Return an error without Polars's words: a LazyFrame fails at whatever its owner wrote."""
        return SourceError(
            f"{self.name} could not be computed; what Polars said is withheld, because it may "
            "quote a record"
        )


def _polars_type(name: str, kind: pl.DataType) -> pa.DataType | None:
    import polars as pl

    try:
        return pl.Series(name, [], kind).to_arrow().type
    except (pa.ArrowException, TypeError, ValueError, pl.exceptions.PolarsError):
        return None


def kept_records_of_polars(frame: pl.DataFrame | pl.LazyFrame) -> KeptRecords:
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
            yield unknown(POLARS_WORDS.get(type(step).__name__, "several tables"))
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
    words = POLARS_WORDS.get(kind, f"the step {kind} of Polars")
    return unknown(f"{words} (`.collect()` it first)")


def _scan(plan: Any, step: Any) -> KeptRecords:
    """Return what a scan of files keeps: not what it reads by position."""
    options = step.file_options
    whole = (options.n_rows, options.row_index, options.deletion_files) == (None, None, None)
    if step.scan_type[0] not in SCANNED_FORMATS or not whole:
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
    if kind == "Function" and str(expression.function_data[0]) == IS_IN:
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
    if kind == "Function" and str(expression.function_data[0]) in _POLARS_FUNCTIONS:
        return list(expression.input)
    return None

"""Data frames and Arrow datasets as batches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from noisewise.artifact import ArgumentError, DataError, NoisewiseError, SourceError
from noisewise.privacy.selection import ALL, KeptRecords, some
from noisewise.privacy.sources.arrow import BATCH_ROWS, Types, guarded
from noisewise.privacy.sources.arrow_datasets import is_filtered, scan
from noisewise.privacy.sum_plan import SumPlan

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class PandasBatches:
    """A pandas frame; only the columns asked for are converted, in slices."""

    name = "the data frame"
    spelled = False

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def types(self) -> Types:
        """Of columns named by text. An object column has no type before it is converted."""
        found: Types = []
        for place, (name, dtype) in enumerate(self._frame.dtypes.items()):
            if isinstance(name, str):
                empty = self._frame.iloc[:0, place]
                found.append((name, None if dtype.name == "object" else _type_of(empty)))
        return found

    def rows(self) -> int | None:
        """Known."""
        return len(self._frame)

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """Converted slice by slice, so that no second copy of the table exists."""
        frame = self._frame[plan.columns]
        for start in range(0, len(frame), BATCH_ROWS):
            part = frame.iloc[start : start + BATCH_ROWS]
            arrays = [guarded(partial(_array, part[c]), partial(_unfit, c)) for c in plan.columns]
            yield pa.RecordBatch.from_arrays(arrays, names=plan.columns)

    def explain(self, plan: SumPlan | None) -> NoisewiseError:
        """Conversions explain themselves."""
        return SourceError(f"{self.name} could not be read to its end")


def _array(series: pd.Series[Any]) -> pa.Array:
    array = pa.Array.from_pandas(series)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _type_of(empty: pd.Series[Any]) -> pa.DataType | None:
    """None where Arrow has no such type: a column that nobody asks for may hold anything."""
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
        """As the schema says."""
        schema = self._frame.lazy().collect_schema()
        return [(name, _polars_type(name, kind)) for name, kind in schema.items()]

    def rows(self) -> int | None:
        """Known once it is computed."""
        return getattr(self._frame, "height", None)

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """A LazyFrame is computed here."""
        frame = self._frame.lazy().select(plan.columns).collect()
        for part in frame.iter_slices(BATCH_ROWS):
            yield from part.to_arrow().combine_chunks().to_batches()

    def explain(self, plan: SumPlan | None) -> NoisewiseError:
        """A LazyFrame may fail at whatever its owner wrote."""
        return SourceError(
            f"{self.name} could not be computed; what Polars said is withheld, because it may "
            "quote a record"
        )


def _polars_type(name: str, kind: Any) -> pa.DataType | None:
    import polars as pl

    try:
        return pl.Series(name, [], kind).to_arrow().type
    except (pa.ArrowException, TypeError, ValueError, pl.exceptions.PolarsError):
        return None


def dataset_selection(dataset: ds.Dataset) -> KeptRecords:
    """Return what a dataset keeps: Arrow's filters look at one row at a time."""
    return some("a filter") if is_filtered(dataset) else ALL


class DatasetBatches:
    """An Arrow dataset of a typed format.

    Of CSV and JSON, Arrow would guess the types from other records, and where records end.
    """

    name = "the dataset"
    spelled = False

    def __init__(self, dataset: ds.Dataset) -> None:
        if _is_text(dataset):
            raise ArgumentError(
                "source: an Arrow dataset of CSV or JSON files is not accepted, because its types "
                "are guessed from the first records; give the path of the CSV files instead"
            )
        self._dataset = dataset

    def types(self) -> Types:
        """As the schema says."""
        schema = self._dataset.schema
        return list(zip(schema.names, schema.types, strict=True))

    def rows(self) -> int | None:
        """Known from the files' footers."""
        return int(self._dataset.count_rows())

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        """In bounded memory."""
        yield from scan(self._dataset, plan.columns)

    def explain(self, plan: SumPlan | None) -> NoisewiseError:
        """Its files are known to Arrow only."""
        return SourceError(
            f"{self.name} could not be read to its end: a file is damaged, or a value is not of "
            "its column's type"
        )


def _is_text(dataset: ds.Dataset) -> bool:
    """Tell whether any part of it is CSV or JSON."""
    layout = getattr(dataset, "format", None)
    if isinstance(layout, ds.CsvFileFormat | ds.JsonFileFormat):
        return True
    return any(_is_text(child) for child in getattr(dataset, "children", ()))

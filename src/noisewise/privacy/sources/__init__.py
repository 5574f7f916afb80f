"""Sources of the sensitive table: files, data frames, Arrow tables, or an engine behind Ibis.

Read here: ``files`` finds the reader of a path, ``csv_files`` (cells: ``csv_numbers``) or
``arrow_datasets``; ``data_frames`` reads pandas and Polars. All give batches to ``arrow``, which
sums their columns (``arrow_columns``), by person where asked (``people``).

Asked of an engine: ``ibis`` sends the queries of ``pushdown``, made of ``record_expressions``, over
one ``snapshot``, and ``query_results`` puts the answers together. ``database_url`` opens a table by
its URL; ``ibis_kept_records`` and ``spark_kept_records`` say which records a table keeps of
another; ``spark_logging`` keeps Spark's log from printing any.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from noisewise.artifact import ArgumentError
from noisewise.privacy.sources.arrow import ArrowSource, TableBatches
from noisewise.privacy.sources.arrow_datasets import DatasetBatches, kept_records_of_dataset
from noisewise.privacy.sources.data_frames import (
    PandasBatches,
    PolarsBatches,
    kept_records_of_polars,
)
from noisewise.privacy.sources.files import open_files
from noisewise.privacy.sum_plan import Source

ACCEPTED = (
    "a path or glob of CSV, Parquet or Arrow files, a database URL such as "
    "'postgresql://host/db#table', a pandas or Polars data frame, an Arrow table, "
    "or an Ibis table"
)
"""What a source may be, for the error where it is something else."""


def open_source(source: Any) -> Source:
    """Return the right reader for whatever the owner has."""
    if isinstance(source, str | os.PathLike):
        return _from_text(os.fspath(source))
    if _is_a(source, "ibis", "Table"):
        from noisewise.privacy.sources.ibis import IbisSource

        return IbisSource(source)
    if _is_a(source, "pandas", "DataFrame"):
        return ArrowSource(PandasBatches(source))
    if _is_a(source, "polars", "DataFrame", "LazyFrame"):
        return ArrowSource(PolarsBatches(source), kept=partial(kept_records_of_polars, source))
    if isinstance(source, ds.Dataset):
        return ArrowSource(DatasetBatches(source), kept=partial(kept_records_of_dataset, source))
    if isinstance(source, pa.RecordBatch):
        return ArrowSource(TableBatches(pa.Table.from_batches([source])))
    if isinstance(source, pa.Table):
        return ArrowSource(TableBatches(source))
    raise ArgumentError(f"source: {type(source).__name__} is not accepted; give {ACCEPTED}")


def _from_text(text: str) -> Source:
    if "://" in text:
        from noisewise.privacy.sources.ibis import connect

        return connect(text)
    return ArrowSource(*open_files(text))


def _is_a(source: Any, library: str, *kinds: str) -> bool:
    """Return whether its class, or a base of it, is the library's, without importing that."""
    return any(
        kind.__module__.partition(".")[0] == library and kind.__name__ in kinds
        for kind in type(source).__mro__
    )

"""Where the sensitive table lives: files, data frames, Arrow tables, or an engine behind Ibis."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from noisewise.artifact import ArgumentError
from noisewise.release.plan import Source
from noisewise.release.sources.arrow import ArrowSource
from noisewise.release.sources.files import FileBatches
from noisewise.release.sources.frames import DatasetBatches, PandasBatches

ACCEPTED = (
    "a path or glob of CSV, Parquet or Arrow files, a database URL such as "
    "'postgresql://host/db#table', a pandas or Polars data frame, an Arrow table, "
    "or an Ibis table"
)


def open_source(source: Any) -> Source:
    """The right reader for whatever the owner has."""
    if isinstance(source, str | os.PathLike):
        return _from_text(os.fspath(source))
    room = type(source).__module__.partition(".")[0]
    if room == "ibis":
        from noisewise.release.sources.ibis import IbisSource

        return IbisSource(source)
    if room == "pandas" and hasattr(source, "columns"):
        return ArrowSource(PandasBatches(source))
    if room == "polars":
        frame = source.collect() if hasattr(source, "collect") else source
        return ArrowSource(frame.to_arrow())
    if isinstance(source, ds.Dataset):
        return ArrowSource(DatasetBatches(source))
    if isinstance(source, pa.RecordBatch):
        return ArrowSource(pa.Table.from_batches([source]))
    if isinstance(source, pa.Table):
        return ArrowSource(source)
    raise ArgumentError(f"source: {type(source).__name__} is not accepted; give {ACCEPTED}")


def _from_text(text: str) -> Source:
    if "://" in text:
        from noisewise.release.sources.ibis import connect

        return connect(text)
    return ArrowSource(FileBatches(text))

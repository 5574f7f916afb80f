"""Reading an Arrow dataset in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from noisewise.release.sources.arrow import BATCH_ROWS


def scan(dataset: ds.Dataset, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Some columns, with just enough read-ahead to decode while the sums are formed."""
    options: dict[str, Any] = {}
    if isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat):
        # Pre-buffering keeps a whole file's column chunks: memory would grow with the rows
        # (measured: 0.6 GiB at 10 million rows, 1.4 GiB at 30; without it 0.25 at both).
        options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(pre_buffer=False)
    yield from dataset.to_batches(
        columns=columns,
        batch_size=BATCH_ROWS,
        batch_readahead=4,
        fragment_readahead=1,
        **options,
    )

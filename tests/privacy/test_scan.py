"""Reading ahead stays within a few row groups, and reads each row once."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from noisewise.privacy.sources.arrow_datasets import AHEAD, scan

GROUPS, ROWS = 60, 2**17


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 row groups of one megabyte each."""
    path = tmp_path_factory.mktemp("scan") / "wide.parquet"
    table = pa.table({"a": np.random.default_rng(1).random(GROUPS * ROWS)})
    pq.write_table(table, path, row_group_size=ROWS, use_dictionary=False)
    return path


def test_decoders_do_not_run_ahead_of_a_slow_reader(wide: Path) -> None:
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for batch in scan(ds.dataset(wide), ["a"]):
        time.sleep(0.005)  # slower than decoding: whatever may run ahead does
        most = max(most, pa.total_allocated_bytes() - before)
        rows += batch.num_rows
    assert rows == GROUPS * ROWS
    # A piece holds its pages and its values: twice its size, and one piece being handed over.
    assert most < 2 * (AHEAD + 2) * ROWS * 8


def test_the_order_of_rows_is_that_of_the_file(wide: Path) -> None:
    read = pa.Table.from_batches(scan(ds.dataset(wide), ["a"]))
    assert read.equals(pq.read_table(wide))


def test_partition_columns_and_filters_survive(tmp_path: Path) -> None:
    table = pa.table({"g": [1, 2, 3] * 100, "a": np.arange(300.0)})
    layout = ds.partitioning(pa.schema([("g", pa.int64())]), flavor="hive")
    ds.write_dataset(table, tmp_path, format="parquet", partitioning=layout)
    dataset = ds.dataset(tmp_path, partitioning=layout)
    whole = pa.Table.from_batches(scan(dataset, ["g", "a"]))
    assert (whole.num_rows, pc.sum(whole["g"]).as_py()) == (300, 600)
    few = pa.Table.from_batches(scan(dataset.filter(pc.field("a") < 10), ["a"]))
    assert few.num_rows == 10


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "e.parquet")
    assert sum(b.num_rows for b in scan(ds.dataset(tmp_path / "e.parquet"), ["a"])) == 0

"""70,000 groups, 10 million rows, 2 columns: one pass, against the ungrouped pass."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, GROUPS = 10_000_000, 70_000


def make(folder: Path) -> Path:
    path = folder / "groups.parquet"
    if path.exists():
        return path
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(2)
    schema = pa.schema([("g", pa.int64()), ("x", pa.float64()), ("y", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(40):
            size = ROWS // 40
            columns = [rng.integers(0, GROUPS, size), rng.random(size), rng.random(size)]
            writer.write_table(pa.table(columns, schema=schema))
    return path


def run(folder: Path) -> list[str]:
    from noisewise import Release, release

    path = make(folder)
    bounds = {"x": (0, 1), "y": (0, 1)}
    reads = []
    start = time.perf_counter()
    release.linear_regression(
        path, x="x", y="y", bounds=bounds, epsilon=1.0,
        progress=lambda done, total: reads.append((time.perf_counter(), done)),
    )  # fmt: skip
    plain = time.perf_counter() - start
    reads.clear()
    start = time.perf_counter()
    made = release.linear_regression(
        path, x="x", y="y", bounds=bounds, epsilon=1.0, groups={"g": range(GROUPS)}, sizes="public",
        progress=lambda done, total: reads.append((time.perf_counter(), done)),
    )  # fmt: skip
    grouped = time.perf_counter() - start
    summing = reads[-1][0] - start
    start = time.perf_counter()
    saved = made.save(folder / "groups.json")
    writing = time.perf_counter() - start
    start = time.perf_counter()
    Release.load(saved)
    loading = time.perf_counter() - start
    return [
        f"{GROUPS:,} groups over {ROWS:,} rows: one pass of {reads[-1][1]:,} rows in "
        f"{summing:.2f} s, with noise {grouped:.2f} s; ungrouped {plain:.2f} s "
        f"(ratio of the passes {summing / plain:.2f})",
        f"its file: {saved.stat().st_size / 2**20:.1f} MiB, written in {writing:.2f} s, "
        f"loaded and checked in {loading:.2f} s",
    ]

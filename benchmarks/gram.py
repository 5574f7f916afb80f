"""10 million rows × 10 columns of Parquet: exact sums against an inexact float sum and DuckDB.

Peak memory is read in a child process, at two table sizes, so that growth would show.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.memory import peak_mib

ROWS, COLUMNS = 10_000_000, 10
NAMES = tuple(f"c{i}" for i in range(COLUMNS))


def make(folder: Path, rows: int) -> Path:
    """Uniform columns in row groups of a quarter million, made once."""
    path = folder / f"wide-{rows}.parquet"
    if path.exists():
        return path
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    schema = pa.schema([(n, pa.float64()) for n in NAMES])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 250_000):
            size = min(250_000, rows - start)
            columns = [np.round(rng.random(size) * 100, 3) for _ in NAMES]
            writer.write_table(pa.table(columns, schema=schema))
    return path


def exact(path: Path) -> None:
    """What the owner runs, noise included."""
    from noisewise import release

    release.linear_regression(
        path, x=NAMES[:-1], y=NAMES[-1], bounds=dict.fromkeys(NAMES, (0, 100)), epsilon=1.0
    )


def inexact(path: Path) -> None:
    """Streaming XᵀX in floating point, the same reader, nothing private about it."""
    gram = np.zeros((COLUMNS + 1,) * 2)
    batches = ds.dataset(path).to_batches(
        columns=list(NAMES),
        batch_size=2**17,
        batch_readahead=4,
        fragment_readahead=1,
        fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=False),
    )
    for batch in batches:
        x = np.empty((COLUMNS + 1, batch.num_rows))
        for row, name in zip(x, NAMES, strict=False):
            row[:] = batch.column(name).to_numpy()
        x[-1] = 1.0
        gram += x @ x.T


def duckdb(path: Path) -> None:
    """The same integer sums through Ibis on DuckDB, all cores."""
    import ibis

    from noisewise import release

    table = ibis.duckdb.connect().read_parquet(str(path))
    release.linear_regression(
        table, x=NAMES[:-1], y=NAMES[-1], bounds=dict.fromkeys(NAMES, (0, 100)), epsilon=1.0
    )


def seconds(work: object, path: Path) -> float:
    start = time.perf_counter()
    work(path)  # type: ignore[operator]
    return time.perf_counter() - start


def run(folder: Path) -> list[str]:
    path, small = make(folder, ROWS), make(folder, ROWS // 10)
    for work in (exact, inexact):
        work(small)
    # Alternate, so that a slow minute of the machine hits both.
    pairs = [(seconds(exact, path), seconds(inexact, path)) for _ in range(9)]
    ours, theirs = (float(np.median(side)) for side in zip(*pairs, strict=True))
    engine = seconds(duckdb, path)
    return [
        f"exact release of {ROWS:,} × {COLUMNS}: {ours:.2f} s; float XᵀX: {theirs:.2f} s; "
        f"ratio of the medians {ours / theirs:.2f}, of the fastest "
        f"{min(a for a, _ in pairs) / min(b for _, b in pairs):.2f} (aim: at most 1.5)",
        f"DuckDB through Ibis: {engine:.2f} s; ours is {engine / ours:.1f} × faster (aim: 3)",
        f"peak memory: {peak_mib(exact, small):.0f} MiB at {ROWS // 10:,} rows, "
        f"{peak_mib(exact, path):.0f} MiB at {ROWS:,} (aim: below 1024, not growing)",
    ]

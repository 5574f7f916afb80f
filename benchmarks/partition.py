"""10 million rows × 3 columns: one posterior probability in a single pass, against reading alone.

Also the batched fit of 1,000 partitions, and peak memory at two table sizes.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.memory import peak_mib

ROWS, PARTITIONS = 10_000_000, 1000


def make(folder: Path, rows: int) -> Path:
    """Two covariates and a response in row groups of a quarter million, made once."""
    path = folder / f"partition-{rows}.parquet"
    if path.exists():
        return path
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(5)
    schema = pa.schema([(n, pa.float64()) for n in ("a", "b", "y")])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 250_000):
            size = min(250_000, rows - start)
            a, b = rng.standard_normal(size), rng.standard_normal(size)
            y = 1 + 2 * a - b + rng.standard_normal(size)
            writer.write_table(pa.table([a, b, y], schema=schema))
    return path


def release(path: Path) -> None:
    """What the owner runs, noise included."""
    import noisewise as nw

    nw.release.posterior_probability(
        path, x=["a", "b"], y="y", coefficient="a", at=2.0, epsilon=0.25, partitions=PARTITIONS
    )


def read(path: Path) -> None:
    """The file as the library reads it, every column as a NumPy array, and nothing else."""
    batches = ds.dataset(path).to_batches(
        columns=["a", "b", "y"], batch_size=2**17, batch_readahead=4
    )
    for batch in batches:
        for column in batch.columns:
            column.to_numpy()


def regress(path: Path) -> None:
    """Reading, and one ordinary (not private) streaming regression of the whole table."""
    gram = np.zeros((4, 4))
    batches = ds.dataset(path).to_batches(
        columns=["a", "b", "y"], batch_size=2**17, batch_readahead=4
    )
    for batch in batches:
        x = np.ones((4, batch.num_rows))
        for row, column in zip(x, batch.columns, strict=False):
            row[:] = column.to_numpy()
        gram += x @ x.T


def seconds(work: object, *given: object) -> float:
    start = time.perf_counter()
    work(*given)  # type: ignore[operator]
    return time.perf_counter() - start


def fit_seconds() -> float:
    """All partitions of 10⁵ rows, fitted in one call."""
    from noisewise.models.partition.conjugate_regression import Zellner, fit
    from noisewise.models.partition.partition_moments import MomentsAccumulator, assign

    rng = np.random.default_rng(6)
    columns = [rng.standard_normal(100_000) for _ in range(3)]
    accumulator = MomentsAccumulator(3, PARTITIONS)
    accumulator.add(columns, assign(100_000, PARTITIONS))
    moments = accumulator.result()
    return min(
        seconds(lambda: fit(moments, 0, Zellner(1e5), 2.0, 2e-3).probabilities((0.0,)))
        for _ in range(5)
    )


def run(folder: Path) -> list[str]:
    path, small = make(folder, ROWS), make(folder, ROWS // 10)
    for work in (release, read, regress):
        work(small)
    # Alternate, so that a slow minute of the machine hits all.
    times = [[seconds(work, path) for work in (release, read, regress)] for _ in range(5)]
    ours, reading, plain = (float(np.median(side)) for side in zip(*times, strict=True))
    return [
        f"release of {ROWS:,} × 3 in {PARTITIONS:,} partitions: {ours:.2f} s; reading the file: "
        f"{reading:.2f} s; ratio {np.median([a / b for a, b, _ in times]):.2f}",
        f"reading and one plain regression: {plain:.2f} s; "
        f"ratio {np.median([a / c for a, _, c in times]):.2f}",
        f"{PARTITIONS:,} partitions of 100,000 rows fitted in one call: "
        f"{1000 * fit_seconds():.1f} ms",
        f"peak memory: {peak_mib(release, small):.0f} MiB at {ROWS // 10:,} rows, "
        f"{peak_mib(release, path):.0f} MiB at {ROWS:,}",
    ]

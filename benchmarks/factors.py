"""10 million rows of Parquet, 5 numeric columns, factors of 10, 50 and 5 levels: exact sums.

Against an inexact pass that forms the same sums in floating point, with the same reader: texts come
as dictionaries in both.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.memory import peak_mib

ROWS = 10_000_000
NUMERIC = tuple(f"c{i}" for i in range(5))
LEVELS = {
    name: tuple(f"{name} {i}" for i in range(size))
    for name, size in (("job", 10), ("region", 50), ("school", 5))
}


def make(folder: Path, rows: int) -> Path:
    """Uniform columns and levels in row groups of a quarter million, made once."""
    path = folder / f"factors-{rows}.parquet"
    if path.exists():
        return path
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(3)
    kinds = [(n, pa.float64()) for n in NUMERIC] + [(n, pa.string()) for n in LEVELS]
    with pq.ParquetWriter(path, pa.schema(kinds)) as writer:
        for start in range(0, rows, 250_000):
            size = min(250_000, rows - start)
            columns: list[object] = [np.round(rng.random(size) * 100, 3) for _ in NUMERIC]
            columns += [
                pa.array(levels).take(pa.array(rng.integers(0, len(levels), size)))
                for levels in LEVELS.values()
            ]
            writer.write_table(pa.table(columns, schema=pa.schema(kinds)))
    return path


def exact(path: Path) -> None:
    """What a release of a regression with these factors sums."""
    from noisewise.artifact import Bounds
    from noisewise.artifact.statistics import CellSums
    from noisewise.artifact.statistics.cell_sums import main_effects
    from noisewise.privacy.sources import open_source
    from noisewise.privacy.statistic_privacy import PublicColumns, find_privacy
    from noisewise.privacy.sum_plan import SumPlan

    statistic = CellSums(tuple((c,) for c in NUMERIC), LEVELS, main_effects(5, 3))
    columns = PublicColumns({c: Bounds(0, 100) for c in NUMERIC})
    plan = SumPlan((find_privacy(statistic.kind).part(statistic, columns),))
    open_source(path).sum(plan)


def inexact(path: Path) -> None:
    """XᵀX, sums within levels and tables of counts in floating point, nothing private about it."""
    gram = np.zeros((len(NUMERIC) + 1,) * 2)
    sums = {f: np.zeros((len(NUMERIC), len(levels))) for f, levels in LEVELS.items()}
    pairs = list(itertools.combinations(LEVELS, 2))
    counts = {(f, g): np.zeros(len(LEVELS[f]) * len(LEVELS[g])) for f, g in pairs}
    layout = ds.ParquetFileFormat(dictionary_columns=set(LEVELS))
    batches = ds.dataset(path, format=layout).to_batches(
        columns=[*NUMERIC, *LEVELS],
        batch_size=2**17,
        batch_readahead=4,
        fragment_readahead=1,
        fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=False),
    )
    for batch in batches:
        x = np.ones((len(NUMERIC) + 1, batch.num_rows))
        for row, name in zip(x, NUMERIC, strict=False):
            row[:] = batch.column(name).to_numpy()
        gram += x @ x.T
        codes = {
            f: pc.index_in(batch.column(f).dictionary, value_set=pa.array(levels))
            .take(batch.column(f).indices)
            .to_numpy()
            for f, levels in LEVELS.items()
        }
        for f, code in codes.items():
            for row, total in zip(x, sums[f], strict=False):
                total += np.bincount(code, row, len(total))
        for f, g in pairs:
            cell = codes[f] * len(LEVELS[g]) + codes[g]
            counts[f, g] += np.bincount(cell, minlength=len(counts[f, g]))


def seconds(work: object, path: Path) -> tuple[float, float]:
    """Return wall and processor seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    work(path)  # type: ignore[operator]
    return time.perf_counter() - wall, time.process_time() - processor


def run(folder: Path) -> list[str]:
    path, small = make(folder, ROWS), make(folder, ROWS // 10)
    for work in (exact, inexact):
        work(small)
    # Alternate, so that a slow minute of the machine hits both.
    ours, theirs = zip(
        *((seconds(exact, path), seconds(inexact, path)) for _ in range(5)), strict=True
    )
    a, b = np.median(ours, axis=0), np.median(theirs, axis=0)
    return [
        f"exact sums of {ROWS:,} rows, 5 columns and 3 factors: {a[0]:.2f} s; in floating point: "
        f"{b[0]:.2f} s; ratio of the medians {a[0] / b[0]:.2f}, of processor time "
        f"{a[1] / b[1]:.2f} (aim: at most 2)",
        f"peak memory: {peak_mib(exact, small):.0f} MiB at {ROWS // 10:,} rows, "
        f"{peak_mib(exact, path):.0f} MiB at {ROWS:,} (aim: below 1024, not growing)",
    ]

"""Which groups are sampled together, and how many batches run side by side."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

from noisewise.numerics.runtime import one_blas_thread
from noisewise.models.linear_regression.coordinates import full_rank
from noisewise.models.linear_regression.problem import Problem
from noisewise.numerics.small_matrices import UNROLLED

SIZES = {"cpu": (1, 256), "gpu": (1, 256, 4096, 24576)}
"""Groups per batch: few sizes, since each is a compilation; as large as keeps the device busy."""
SINGLY = 64
"""Fewer groups than this go one by one through a CPU: each then has trajectories of its own."""


def split(problem: Problem, todo: np.ndarray, kept: int) -> list[np.ndarray]:
    """Groups that are sampled together: of one rank, and no more than fit."""
    q = len(problem.x) + 1
    few = jax.default_backend() == "cpu" and len(todo) < SINGLY
    most = 1 if few or q > UNROLLED else slab(q, kept)
    rank = np.minimum(problem.n[todo] - 1, q) if not problem.noisy_n else np.full(len(todo), q)
    alike = [todo[rank == r] for r in np.unique(rank)]
    return [rows[i : i + most] for rows in alike for i in range(0, len(rows), most)]


def in_parallel(work: Callable[[int], None], count: int) -> None:
    """One slab per core of a CPU, since XLA runs such small loops on a single one; two on a GPU.

    There the second is computed while the first is prepared or fetched.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    workers = min(count, 2 if jax.default_backend() != "cpu" else cores or 1)
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(count)))


def subset(problem: Problem, rows: np.ndarray) -> Problem:
    """Some groups of a problem."""
    others = tuple(dataclasses.replace(o, z=o.z[rows]) for o in problem.others)
    return dataclasses.replace(problem, z=problem.z[rows], n=problem.n[rows], others=others)


def sizes() -> tuple[int, ...]:
    """Those of the device at hand."""
    return SIZES["cpu" if jax.default_backend() == "cpu" else "gpu"]


def slab(q: int, kept: int) -> int:
    """The most groups whose ``kept`` draws each fit the device, with their copies in passing."""
    stats = jax.local_devices()[0].memory_stats() or {}
    bytes_each = 8 * kept * (3 * full_rank(q, noisy_n=True).dimension + 8 * (q + 1))
    # Two at a time: see in_parallel.
    fitting = [s for s in sizes() if 2 * s * bytes_each <= stats.get("bytes_limit", np.inf)]
    return fitting[-1] if fitting else 1


def padded(rows: np.ndarray) -> np.ndarray:
    """Repeat the last group up to one of few sizes: a new size is a new compilation."""
    size = next(s for s in sizes() if s >= len(rows))
    return np.concatenate([rows, np.repeat(rows[-1:], size - len(rows))])

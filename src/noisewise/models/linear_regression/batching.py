"""Batches of groups that are sampled together, run side by side, and their collected results.

A batch is compiled for its size, so there are few sizes; groups of a batch share one rank of the
scatter. Groups that do not converge are sampled again, and later attempts overwrite earlier ones.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

import jax
import numpy as np

from noisewise.inference.results import ESS, RHAT
from noisewise.inference.summaries import STATISTICS, GroupSummaries, summary_numbers
from noisewise.models.linear_regression.coordinates import Shape, full_rank
from noisewise.models.linear_regression.posterior_draws import LatentDraws, draw_latent, latent_fit
from noisewise.models.linear_regression.problem import RegressionProblem, subset
from noisewise.numerics import one_blas_thread
from noisewise.numerics.matrices import UNROLLED

BATCH_SIZES = {"cpu": (1, 256), "gpu": (1, 256, 4096, 24576)}
"""Groups per batch: few sizes, since each is a compilation; as large as keeps the device busy
(chosen)."""
MIN_BATCHED = 64
"""Fewer groups than this go one by one through a CPU: each then has trajectories of its own
(chosen)."""


def split(problem: RegressionProblem, groups: np.ndarray, kept: int) -> list[np.ndarray]:
    """Return batches of the groups: of one rank each, and no more than fit the device.

    Args:
        problem: of all groups.
        groups: positions of those to be sampled.
        kept: draws of all chains kept per group.
    """
    q = len(problem.x) + 1
    few = jax.default_backend() == "cpu" and len(groups) < MIN_BATCHED
    largest = 1 if few or q > UNROLLED else largest_batch(q, kept)
    rank = np.full(len(groups), q) if problem.noisy_n else np.minimum(problem.n[groups] - 1, q)
    alike = [groups[rank == r] for r in np.unique(rank)]
    return [rows[i : i + largest] for rows in alike for i in range(0, len(rows), largest)]


def in_parallel(work: Callable[[int], None], count: int) -> None:
    """Call ``work`` with 0 … count - 1: one batch per core of a CPU, two at a time on a GPU.

    XLA runs such small loops on a single core. On a GPU the second batch is computed while the
    first is prepared or fetched.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    workers = min(count, 2 if jax.default_backend() != "cpu" else cores or 1)
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(count)))


def batch_sizes() -> tuple[int, ...]:
    """Return the batch sizes of the device at hand."""
    return BATCH_SIZES["cpu" if jax.default_backend() == "cpu" else "gpu"]


def largest_batch(q: int, kept: int) -> int:
    """Return the most groups whose ``kept`` draws each fit the device, with temporary copies."""
    stats = jax.local_devices()[0].memory_stats() or {}
    bytes_each = 8 * kept * (3 * full_rank(q, noisy_n=True).dimension + 8 * (q + 1))
    # Two at a time: see in_parallel.
    limit = stats.get("bytes_limit", np.inf)
    fitting = [size for size in batch_sizes() if 2 * size * bytes_each <= limit]
    return fitting[-1] if fitting else 1


def padded(rows: np.ndarray) -> np.ndarray:
    """Return the groups, the last repeated up to one of few sizes: a new size is a compilation."""
    size = next(s for s in batch_sizes() if s >= len(rows))
    return np.concatenate([rows, np.repeat(rows[-1:], size - len(rows))])


def shape_of(problem: RegressionProblem) -> Shape:
    """Return the columns and the rank of the scatter; one rank for all groups."""
    q = len(problem.x) + 1
    rank = q if problem.noisy_n else int(min(q, problem.n.min() - 1))
    return Shape(q, rank, problem.noisy_n, problem.scale_free)


class BatchDraws(NamedTuple):
    """Draws (parameter, group, chain, draw) in the user's units; R-hat and ESS per parameter.

    ``divergences`` per group; ``positions`` (draw, coordinate, chain, group) where they fit memory.
    """

    user: np.ndarray
    rhat: np.ndarray
    ess: np.ndarray
    divergences: np.ndarray
    positions: np.ndarray | None


class BatchSummaries(NamedTuple):
    """What is kept of a batch in place of its draws: numbers (statistic, parameter, group)."""

    numbers: np.ndarray


B = TypeVar("B", BatchDraws, BatchSummaries)
"""What is kept of a batch."""


class Collected(ABC, Generic[B]):
    """What was kept of all groups, from the last attempt at each."""

    rhat: np.ndarray
    """R-hat (parameter, group)."""
    ess: np.ndarray
    """Effective draws (parameter, group)."""
    tries: np.ndarray
    """Attempts at each group."""

    @abstractmethod
    def taken(self, batch: BatchDraws) -> B:
        """Return what is kept of a batch; it may be asked of several batches at once."""

    @abstractmethod
    def put(self, rows: np.ndarray, batch: B) -> None:
        """Store a batch's groups; padding beyond them is dropped."""

    @property
    def unconverged(self) -> np.ndarray:
        """Return the positions of groups that need another attempt."""
        return np.flatnonzero(~((self.rhat < RHAT) & (self.ess >= ESS)).all(axis=0))


class CollectedSummaries(Collected[BatchSummaries]):
    """Means, quantiles and diagnostics of all groups; no draws."""

    def __init__(self, problem: RegressionProblem) -> None:
        groups, size = len(problem.n), len(problem.x) + 2
        self._numbers = np.full((len(STATISTICS), size, groups), np.nan)
        self.rhat, self.ess = self._numbers[-2], self._numbers[-1]
        self.tries = np.zeros(groups, int)

    def taken(self, batch: BatchDraws) -> BatchSummaries:
        """Return the numbers of a batch."""
        return BatchSummaries(summary_numbers(batch.user, batch.rhat, batch.ess))

    def put(self, rows: np.ndarray, batch: BatchSummaries) -> None:
        """Store a batch's groups; padding beyond them is dropped."""
        self._numbers[:, :, rows] = batch.numbers[:, :, : len(rows)]
        self.tries[rows] += 1

    @property
    def summaries(self) -> GroupSummaries:
        """Return all groups' numbers."""
        return GroupSummaries(self._numbers, self.tries)


class CollectedDraws(Collected[BatchDraws]):
    """Draws and diagnostics of all groups, from the last attempt at each."""

    def __init__(self, problem: RegressionProblem, chains: int, draws: int) -> None:
        groups, size = len(problem.n), len(problem.x) + 2
        self.user = np.empty((size, groups, chains, draws))
        self.rhat, self.ess = np.empty((size, groups)), np.empty((size, groups))
        self.tries, self.divergences = np.zeros(groups, int), np.zeros(groups, int)
        # By the attempt that first had this batch, and its groups: an order that does not depend on
        # which thread finished first, since latent draws are seeded by it.
        self._positions: dict[tuple[int, tuple[int, ...]], np.ndarray] = {}
        self._first_attempt: dict[tuple[int, ...], int] = {}
        shape = full_rank(len(problem.x) + 1, noisy_n=problem.noisy_n)
        self._keeps_latent = latent_fit(shape, groups * chains * draws)

    def taken(self, batch: BatchDraws) -> BatchDraws:
        """Return the batch itself."""
        return batch

    def put(self, rows: np.ndarray, batch: BatchDraws) -> None:
        """Store a batch's groups; padding beyond them is dropped."""
        count = len(rows)
        self.user[:, rows] = batch.user[:, :count]
        self.rhat[:, rows], self.ess[:, rows] = batch.rhat[:, :count], batch.ess[:, :count]
        self.divergences[rows] = batch.divergences[:count]
        self.tries[rows] += 1
        if self._keeps_latent and batch.positions is not None:
            groups = tuple(rows.tolist())
            attempt = self._first_attempt.setdefault(groups, int(self.tries[rows[0]]))
            self._positions[attempt, groups] = batch.positions[..., :count]

    def latent(self, problem: RegressionProblem, seed: int) -> Mapping[str, np.ndarray]:
        """Return draws of s, μx and τ², made when first asked for; empty where they do not fit."""
        if not self._keeps_latent:
            return {}
        single = problem.keys is None

        def make() -> Mapping[str, np.ndarray]:
            latent: dict[str, np.ndarray] = {}
            for number, (attempt, rows) in enumerate(sorted(self._positions)):
                positions = self._positions[attempt, rows]
                some = subset(problem, np.array(rows))
                rng = np.random.default_rng([seed, number])
                for name, values in draw_latent(rng, some, shape_of(some), positions).items():
                    shape = (len(problem.n), *values.shape[1:])
                    latent.setdefault(name, np.empty(shape))[list(rows)] = values
            return {name: v[0] if single else v for name, v in latent.items()}

        return LatentDraws(make, problem)

"""Second moments of every partition in one pass over the table; memory does not grow with rows.

Sums are in floating point, and that is safe for two reasons. A partition's sums are formed from its
own records alone, one after the other: where a batch or a block ends changes no bit, so a changed
record changes nothing in any other partition. And whatever rounding or overflow does to its own
partition, that partition's answer is clipped to a lattice afterwards. Columns are shifted by the
partition's first record, so that a common offset (a year, a coordinate) does not eat the digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from noisewise.models.partition.assignment import assign
from noisewise.privacy.plan import Progress, Source, SumPlan

BLOCK_ROWS = 2**14
"""Rows at a time, or more where there are many partitions: each block costs one visit to all."""


@dataclass(frozen=True)
class Moments:
    """Per partition: number of records, mean of the columns, centred cross-products."""

    sizes: np.ndarray
    means: np.ndarray
    products: np.ndarray


class Accumulator:
    """Adds batches of float64 columns without missing values."""

    def __init__(self, columns: int, partitions: int) -> None:
        self._partitions = partitions
        self._sizes = np.zeros(partitions)
        self._shift = np.zeros((columns, partitions))
        self._sums = np.zeros((columns, partitions))
        self._pairs = [(i, j) for i in range(columns) for j in range(i, columns)]
        self._products = np.zeros((len(self._pairs), partitions))

    def add(self, columns: list[np.ndarray], partition: np.ndarray) -> None:
        """One batch, in blocks that stay in a core's cache."""
        size = max(BLOCK_ROWS, 4 * self._partitions)
        for start in range(0, len(partition), size):
            window = slice(start, start + size)
            with np.errstate(all="ignore"):
                self._add([x[window] for x in columns], partition[window])

    def _add(self, columns: list[np.ndarray], partition: np.ndarray) -> None:
        self._meet(columns, partition)
        self._sizes += np.bincount(partition, minlength=self._partitions)
        shifted = [x - s[partition] for x, s in zip(columns, self._shift, strict=True)]
        # The totals so far go first, so that each record is added to them on its own.
        index = np.concatenate([np.arange(self._partitions), partition])
        weights = np.empty(len(index))
        for total, x in zip(self._sums, shifted, strict=True):
            weights[: self._partitions], weights[self._partitions :] = total, x
            total[:] = np.bincount(index, weights, self._partitions)
        for total, (i, j) in zip(self._products, self._pairs, strict=True):
            weights[: self._partitions] = total
            np.multiply(shifted[i], shifted[j], out=weights[self._partitions :])
            total[:] = np.bincount(index, weights, self._partitions)

    def _meet(self, columns: list[np.ndarray], partition: np.ndarray) -> None:
        """The first record of a partition becomes its shift."""
        if self._sizes.all():
            return
        fresh = self._sizes[partition] == 0
        # Written backwards, so that the first of several stays.
        place = partition[fresh][::-1]
        for shift, x in zip(self._shift, columns, strict=True):
            shift[place] = x[fresh][::-1]

    def result(self) -> Moments:
        """Means in the user's units, cross-products about them; empty partitions are all zero."""
        k = len(self._sums)
        count = np.maximum(self._sizes, 1)
        with np.errstate(all="ignore"):
            means = self._shift + self._sums / count
            products = np.empty((self._partitions, k, k))
            for total, (i, j) in zip(self._products, self._pairs, strict=True):
                centred = total - self._sums[i] * self._sums[j] / count
                products[:, i, j] = products[:, j, i] = centred
        return Moments(self._sizes.astype(np.int64), means.T, products)


@dataclass(frozen=True)
class Read:
    """The moments, the number of complete records, and columns that had missing values."""

    moments: Moments
    rows: int
    missing: tuple[str, ...]


def read(source: Source, plan: SumPlan, partitions: int, progress: Progress | None = None) -> Read:
    """One pass: every complete record goes to a random partition."""
    columns = list(plan.numeric)
    accumulator = Accumulator(len(columns), partitions)
    missing: set[str] = set()
    rows = 0
    for batch in source.stream(plan, progress):
        complete = _complete(batch, plan.numeric, missing)
        accumulator.add(complete, assign(len(complete[0]), partitions))
        rows += len(complete[0])
    return Read(accumulator.result(), rows, tuple(sorted(missing)))


def _complete(
    batch: Mapping[str, np.ndarray], fills: Mapping[str, float | None], missing: set[str]
) -> list[np.ndarray]:
    """Fill what has a public fill value; leave out records that stay incomplete."""
    columns, keep = [], None
    for column, fill in fills.items():
        x = batch[column]
        absent = np.isnan(x)
        if absent.any():
            if fill is not None:
                x = np.where(absent, fill, x)
            else:
                missing.add(column)
                keep = ~absent if keep is None else keep & ~absent
        columns.append(x)
    return columns if keep is None else [x[keep] for x in columns]

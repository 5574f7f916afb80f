"""Random partitions of a table, and the second moments of each, in one pass.

The assignment of records to partitions is part of the mechanism: uniform, independent, from the
operating system's generator. Each record is assigned on its own and never looked at, so that the
assignment has the same distribution for every table of n rows, in whatever order an engine delivers
them, and a record that is replaced, added or removed leaves the others where they are
(``docs/proofs/partition.md``, section 1). Sizes are therefore multinomial, not equal. Where people
are protected with all of their records, people are assigned so, and their records go with them.

Memory does not grow with rows. Sums are in floating point, and that is safe for two reasons. A
partition's sums are formed from its own records alone, one after the other: where a batch or a
block ends changes no bit, so a changed record changes nothing in any other partition. And whatever
rounding or overflow does to its own partition, that partition's answer is clipped to a lattice
afterwards. Columns are shifted by the partition's first record, so that a common offset (a year, a
coordinate) does not eat the digits.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from noisewise.privacy.sum_plan import Progress, Source, SumPlan

MAX_PARTITIONS_SHORT = 2**12
"""Up to here two random bytes per record suffice: at most a sixteenth of the draws is rejected."""
BLOCK_ROWS = 2**14
"""Rows at a time (chosen), or more where there are many partitions: each block visits them all."""


def assign(rows: int, partitions: int) -> np.ndarray:
    """Return a partition number for each of the next rows; exactly uniform, by rejection."""
    numbers = np.empty(rows, np.intp)
    done = 0
    while done < rows:
        fresh = _accepted_numbers(rows - done, partitions)
        numbers[done : done + len(fresh)] = fresh
        done += len(fresh)
    return numbers


def _accepted_numbers(rows: int, partitions: int) -> np.ndarray:
    """Draw so many random words; return partition numbers of those that are not rejected."""
    kind = np.dtype(np.uint16 if partitions <= MAX_PARTITIONS_SHORT else np.uint32)
    drawn = np.frombuffer(os.urandom(rows * kind.itemsize), kind)
    span = 2 ** (8 * kind.itemsize)
    most = span - span % partitions
    kept = drawn if most == span else drawn[drawn < most]
    return np.asarray(kept % kind.type(partitions))


@dataclass(frozen=True)
class PartitionMoments:
    """Per partition: number of records, mean of the columns, centred cross-products."""

    sizes: np.ndarray
    means: np.ndarray
    products: np.ndarray


class MomentsAccumulator:
    """Adds batches of float64 columns without missing values."""

    def __init__(self, columns: int, partitions: int) -> None:
        self._partitions = partitions
        self._sizes = np.zeros(partitions)
        self._shift = np.zeros((columns, partitions))
        self._sums = np.zeros((columns, partitions))
        self._pairs = [(i, j) for i in range(columns) for j in range(i, columns)]
        self._products = np.zeros((len(self._pairs), partitions))

    def add(self, columns: list[np.ndarray], partition: np.ndarray) -> None:
        """Add one batch, in blocks that stay in a core's cache."""
        size = max(BLOCK_ROWS, 4 * self._partitions)
        for start in range(0, len(partition), size):
            window = slice(start, start + size)
            with np.errstate(all="ignore"):
                self._add([x[window] for x in columns], partition[window])

    def _add(self, columns: list[np.ndarray], partition: np.ndarray) -> None:
        self._set_shifts(columns, partition)
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

    def _set_shifts(self, columns: list[np.ndarray], partition: np.ndarray) -> None:
        """Make the first record of a partition its shift."""
        if self._sizes.all():
            return
        fresh = self._sizes[partition] == 0
        # Written backwards, so that the first of several stays.
        place = partition[fresh][::-1]
        for shift, x in zip(self._shift, columns, strict=True):
            shift[place] = x[fresh][::-1]

    def result(self) -> PartitionMoments:
        """Return means in the user's units and cross-products about them; zero where empty."""
        k = len(self._sums)
        count = np.maximum(self._sizes, 1)
        with np.errstate(all="ignore"):
            means = self._shift + self._sums / count
            products = np.empty((self._partitions, k, k))
            for total, (i, j) in zip(self._products, self._pairs, strict=True):
                centred = total - self._sums[i] * self._sums[j] / count
                products[:, i, j] = products[:, j, i] = centred
        return PartitionMoments(self._sizes.astype(np.int64), means.T, products)


@dataclass(frozen=True)
class PartitionedTable:
    """The moments, the number of complete records, and columns that had missing values."""

    moments: PartitionMoments
    rows: int
    missing: tuple[str, ...]


def read_partitions(
    source: Source, plan: SumPlan, partitions: int, progress: Progress | None = None
) -> PartitionedTable:
    """Send every complete record, or every person, to a random partition; return their moments."""
    columns = list(plan.numeric)
    accumulator = MomentsAccumulator(len(columns), partitions)
    of_people = np.empty(0, np.intp)
    missing: set[str] = set()
    rows = 0
    for batch, people in source.stream(plan, progress):
        named = None if people is None else people >= 0
        if named is not None and plan.person is not None and not named.all():
            missing.add(plan.person.column)
        keep, complete = _complete(batch, plan.numeric, missing, named)
        if people is None:
            partition = assign(len(complete[0]), partitions)
        else:
            new = max(0, int(people.max(initial=-1)) + 1 - len(of_people))
            of_people = np.concatenate([of_people, assign(new, partitions)])
            partition = of_people[people[keep]]
        accumulator.add(complete, partition)
        rows += len(partition)
    return PartitionedTable(accumulator.result(), rows, tuple(sorted(missing)))


def _complete(
    batch: Mapping[str, np.ndarray],
    fills: Mapping[str, float | None],
    missing: set[str],
    keep: np.ndarray | None,
) -> tuple[np.ndarray | None, list[np.ndarray]]:
    """Fill what has a public fill value; return which records are complete (None: all), and them.

    ``keep`` tells which of them to look at in the first place.
    """
    columns = []
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
    return keep, columns if keep is None else [x[keep] for x in columns]

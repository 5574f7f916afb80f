"""At most k records of each person, chosen at random: what a capped plan sums.

Every complete record gets a random number of 64 bits from the operating system, and of each
person the k records with the smallest are kept. The numbers are drawn without looking at a record,
so that what one person holds decides nothing about the records of others
(``docs/proofs/units.md``, Lemma 1); and a person's kept records are a fair sample of theirs. Memory
grows with the number of people times k.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import numpy as np

from noisewise.privacy.sum_plan import Capped, SumPlan, Sums
from noisewise.privacy.sums import Accumulator, Columns

COMPACT_ROWS = 2**20
"""Records that are gathered at least before those beyond the cap are dropped (chosen)."""

Records = tuple[Columns, Columns, np.ndarray]
"""Numeric columns, level indices and the numbers of people (-1: nobody), of one batch."""


def sum_capped(batches: Iterable[Records], plan: SumPlan) -> Sums:
    """Return the plan's sums over the records that are kept."""
    if not isinstance(plan.person, Capped):
        raise TypeError("the plan caps nobody")
    accumulator, kept = Accumulator(plan), KeptRecords(plan.person.records)
    for numeric, codes, people in batches:
        # The person is one more code: a record without one is incomplete.
        numeric, codes = accumulator.complete(numeric, {**codes, plan.person.column: people})
        kept.add(codes.pop(plan.person.column), numeric, codes)
    for numeric, codes in kept.result():
        accumulator.add_complete(numeric, codes)
    return accumulator.result()


def priorities(records: int) -> np.ndarray:
    """Return a random number of 64 bits for each record, from the operating system."""
    return np.frombuffer(os.urandom(8 * records), np.uint64)


class KeptRecords:
    """The records with the smallest priorities of each person, while batches come in."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._people: list[np.ndarray] = []
        self._priorities: list[np.ndarray] = []
        self._numeric: list[Columns] = []
        self._codes: list[Columns] = []
        self._fresh = 0

    def add(self, people: np.ndarray, numeric: Columns, codes: Columns) -> None:
        """Add a batch of complete records; drop what is beyond the cap from time to time."""
        self._people.append(people)
        self._priorities.append(priorities(len(people)))
        self._numeric.append(numeric)
        self._codes.append(codes)
        self._fresh += len(people)
        if self._fresh > max(COMPACT_ROWS, len(self._people[0])):
            self._compact()

    def result(self) -> Iterator[tuple[Columns, Columns]]:
        """Yield the columns of all records that are kept, if there are any."""
        if self._people:
            self._compact()
            yield self._numeric[0], self._codes[0]

    def _compact(self) -> None:
        people, priority = np.concatenate(self._people), np.concatenate(self._priorities)
        order = np.lexsort((priority, people))
        owner = people[order]
        # The place of a record among those of its person: positions less the person's first.
        first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]][: len(owner)])
        place = np.arange(len(owner)) - np.repeat(first, np.diff(np.r_[first, len(owner)]))
        kept = order[place < self._most]
        self._people, self._priorities = [people[kept]], [priority[kept]]
        self._numeric, self._codes = [_taken(self._numeric, kept)], [_taken(self._codes, kept)]
        self._fresh = 0


def _taken(batches: list[Columns], kept: np.ndarray) -> Columns:
    return {c: np.concatenate([b[c] for b in batches])[kept] for c in batches[0]}

"""People with several records: who is who, weights by person, and at most k records of each.

**Ids.** Who is who must not depend on other records: a person who went by two ids would count
twice. So ids of two types are refused, and ids of CSV files that some writer has spelled as floats
in one file and not in another.

**Weights.** In tables of counts each person weighs one, however many records. Two passes: how many
complete records each person has, then each record with its share. Memory grows with the number of
people, not of records.

**Caps.** Of a capped plan at most k records of each person are summed. Every complete record gets a
random number of 64 bits from the operating system, and of each person the k records with the
smallest are kept. The numbers are drawn without looking at a record, so that what one person holds
decides nothing about the records of others (``docs/proofs/units.md``, Lemma 1); and a person's kept
records are a fair sample of theirs. Memory grows with the number of people times k.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from noisewise.artifact import DataError
from noisewise.artifact.statistics import MAX_ROWS
from noisewise.privacy.sources.snapshot import changed
from noisewise.privacy.sum_plan import Capped, CellCounts, Person, Progress, SumPlan, Sums
from noisewise.privacy.sums import Accumulator, Columns


class PeopleNumbers:
    """Numbers for people, from 0, by their ids; ids that may stand for others are refused.

    ``files`` tells whether the ids come from several CSV files, which may spell them differently.
    """

    def __init__(self, column: str, files: bool = False) -> None:
        self._column = column
        self._numbers: dict[Any, int] = {}
        self._places: dict[str, set[int]] | None = {} if files else None

    def number(self, people: pa.DictionaryArray, table: int = 0) -> np.ndarray:
        """Return the number of each record's person, -1 where the id is missing."""
        ids = people.dictionary.to_pylist()
        known = self._numbers
        # The last entry is for records without an id; so is NULL inside a dictionary.
        numbers = [-1 if one is None else known.setdefault(one, len(known)) for one in ids] + [-1]
        if self._places is not None:
            for one in ids:
                self._places.setdefault(one, set()).add(table)
        indices = people.indices.fill_null(len(ids)).to_numpy(zero_copy_only=False)
        numbered: np.ndarray = np.array(numbers, np.int64)[indices]
        return numbered

    def check(self) -> None:
        """Raise a DataError where one person may have gone by two ids."""
        check_alike(self._numbers, self._column)
        if self._places is not None:
            check_spellings(self._places, self._column)


def check_alike(people: Iterable[Any], column: str) -> None:
    """Raise where ids are of two types: one who is 7 here and "7" there would count twice."""
    if len({isinstance(one, str) for one in people}) > 1:
        raise DataError(
            f"column {column!r} holds text in one part of the table and numbers in "
            "another; whose record it is must be told alike everywhere"
        )


def check_spellings(places: dict[str, set[int]], column: str) -> None:
    """Refuse a table in which one file has "7" and another "7.0", and none has both.

    A missing id in one file makes pandas write the other ids there as floats. Where a file has
    both spellings they are text, and two people.

    Args:
        places: in which files an id stands.
        column: the column of ids.
    """
    for one, files in places.items():
        whole = one.removesuffix(".0")
        if whole != one and whole in places and not files & places[whole]:
            raise DataError(
                f"column {column!r} holds ids as whole numbers in one file and as "
                "floating-point numbers in another; whose record it is must be told alike "
                "everywhere"
            )


Reading = Callable[[Any, SumPlan], Iterator[tuple[Columns, Any, int]]]
"""Level indices, ids as an Arrow dictionary array, rows: batch by batch."""


def sum_people(
    tables: Sequence[Any], plan: SumPlan, read: Reading, progress: Progress | None
) -> Sums:
    """Return the plan's tables of counts, in steps of a person's weight."""
    if not isinstance(plan.person, Person):
        raise TypeError("the plan weighs nobody")
    counted: dict[Any, int] = {}
    missing: set[str] = set()
    unlisted: set[str] = set()
    done = 0
    for table in tables:
        for codes, people, rows in read(table, plan):
            done += rows
            if done > MAX_ROWS:
                raise DataError(f"the table has more than {MAX_ROWS} rows, the most allowed")
            _note(codes, people, plan.person, missing, unlisted)
            for person, count in _tally(codes, people):
                counted[person] = counted.get(person, 0) + count
    check_alike(counted, plan.person.column)
    tables_of_counts = [part for part in plan.parts if isinstance(part, CellCounts)]
    parts = [np.zeros((sum(map(math.prod, p.shapes)), 1), np.int64) for p in tables_of_counts]
    left = dict(counted)
    places = _two_spellings(counted, tables)
    total, done = done, 0
    for number, table in enumerate(tables):
        for codes, people, rows in read(table, plan):
            _place(places, people, number)
            _take(left, _tally(codes, people))
            shares = _shares(people, plan.person, counted)
            for part, sums in zip(tables_of_counts, parts, strict=True):
                _add(codes, people, part, shares, sums)
            done += rows
            if progress is not None:
                progress(done, total)
    if any(left.values()):
        raise changed()
    check_spellings(places, plan.person.column)
    sizes = np.array([len(counted)], np.int64)
    return Sums(tuple(parts), sizes, tuple(sorted(missing)), tuple(sorted(unlisted)))


def _tally(codes: Columns, people: pa.DictionaryArray) -> Iterator[tuple[Any, int]]:
    """Return who has complete records in a batch, and how many."""
    ids, index = _present(codes, people)
    counts = np.bincount(index, minlength=len(ids)).tolist()
    return ((person, count) for person, count in zip(ids, counts, strict=True) if count)


def _take(left: dict[Any, int], tally: Iterator[tuple[Any, int]]) -> None:
    """Take a batch's records from those counted; more than were counted would weigh over one."""
    for person, count in tally:
        left[person] = left.get(person, 0) - count
        if left[person] < 0:
            raise changed()


def _two_spellings(people: Mapping[Any, int], tables: Sequence[Any]) -> dict[str, set[int]]:
    """Return ids of CSV files spelled both "7" and "7.0", with an empty set for their files."""
    if len(tables) < 2 or not any(table.spelled for table in tables):
        return {}
    floats = [one for one in people if one.endswith(".0") and one.removesuffix(".0") in people]
    return {spelling: set() for one in floats for spelling in (one, one.removesuffix(".0"))}


def _place(places: dict[str, set[int]], people: pa.DictionaryArray, number: int) -> None:
    """Note in which file an id with two spellings stands."""
    if places:
        for one in places.keys() & set(people.dictionary.to_pylist()):
            places[one].add(number)


def _note(
    codes: Columns,
    people: pa.DictionaryArray,
    person: Person,
    missing: set[str],
    unlisted: set[str],
) -> None:
    """Note names of columns that stand in the way, never a value."""
    missing |= {column for column, index in codes.items() if (index == -1).any()}
    unlisted |= {column for column, index in codes.items() if (index == -2).any()}
    if people.null_count:
        missing.add(person.column)


def _keep(codes: Columns, people: pa.DictionaryArray) -> np.ndarray:
    kept = people.is_valid().to_numpy(zero_copy_only=False)
    for index in codes.values():
        kept = kept & (index >= 0)
    return np.asarray(kept, bool)


def _present(codes: Columns, people: pa.DictionaryArray) -> tuple[list[Any], np.ndarray]:
    """Return the distinct ids of a batch, and their position for each complete record."""
    index = people.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return people.dictionary.to_pylist(), index[_keep(codes, people)]


def _shares(people: pa.DictionaryArray, person: Person, counted: dict[Any, int]) -> np.ndarray:
    """Return the weight of one record of each distinct person of a batch."""
    # An id that only incomplete records have was not counted, and has no complete record here.
    ids = people.dictionary.to_pylist()
    return np.array([person.steps // counted.get(one, 1) for one in ids], np.int64)


def _add(
    codes: Columns,
    people: pa.DictionaryArray,
    part: CellCounts,
    shares: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add a batch's complete records to the tables of a part, each with its share."""
    kept = _keep(codes, people)
    _, index = _present(codes, people)
    weight = shares[index].astype(float)  # a batch's sums stay below 2**53: exact
    start = 0
    for clique, shape in zip(part.cliques, part.shapes, strict=True):
        cell = np.ravel_multi_index(tuple(codes[part.codes[i].column][kept] for i in clique), shape)
        size = math.prod(shape)
        added = np.bincount(cell, weights=weight, minlength=size)
        sums[start : start + size, 0] += added.astype(np.int64)
        start += size


COMPACT_ROWS = 2**20
"""Records that are gathered at least before those beyond the cap are dropped (chosen)."""

Records = tuple[Columns, Columns, np.ndarray]
"""Numeric columns, level indices and the numbers of people (-1: nobody), of one batch."""


def sum_capped(batches: Iterable[Records], plan: SumPlan) -> Sums:
    """Return the plan's sums over the records that are kept."""
    if not isinstance(plan.person, Capped):
        raise TypeError("the plan caps nobody")
    accumulator, kept = Accumulator(plan), CappedSample(plan.person.records)
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


class CappedSample:
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

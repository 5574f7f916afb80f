"""Weights by person: tables of counts in which each person weighs one, however many records.

Two passes: how many complete records each person has, then each record with its share. Memory grows
with the number of people, not of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from noisewise.artifact import DataError
from noisewise.artifact.statistics import MAX_ROWS
from noisewise.privacy.sources.person_ids import check_alike, check_spellings
from noisewise.privacy.sources.snapshot import changed
from noisewise.privacy.sum_plan import CellCounts, Person, Progress, SumPlan, Sums
from noisewise.privacy.sums import Columns

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

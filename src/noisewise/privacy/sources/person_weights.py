"""Tables in which people weigh one each, whose records lie scattered over a local table.

Two passes: how many complete records each person has, then each record with its share. Memory grows
with the number of people, not of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from noisewise.artifact import DataError
from noisewise.artifact.statistics import MAX_ROWS
from noisewise.privacy.sources.snapshot import changed
from noisewise.privacy.sum_plan import CellCounts, Person, Progress, SumPlan, Sums
from noisewise.privacy.sums import Columns

Reading = Callable[[Any, SumPlan], Iterator[tuple[Columns, Any, int]]]
"""Level indices, ids as an Arrow dictionary array, rows: batch by batch."""


def sum_people(
    tables: Sequence[Any], plan: SumPlan, read: Reading, progress: Progress | None
) -> Sums:
    """The plan's tables of counts, in steps of a person's weight."""
    if plan.person is None or not all(isinstance(p, CellCounts) for p in plan.parts):
        raise TypeError("people are weighed in tables of counts only")
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
    _check_alike(counted, plan.person)
    parts = [np.zeros((_components(p), 1), np.int64) for p in plan.parts]
    left = dict(counted)
    places = _two_spellings(counted, tables)
    total, done = done, 0
    for number, table in enumerate(tables):
        for codes, people, rows in read(table, plan):
            _place(places, people, number)
            _take(left, _tally(codes, people))
            _add(codes, people, plan, counted, parts)
            done += rows
            if progress is not None:
                progress(done, total)
    if any(left.values()):
        raise changed()
    _check_spellings(places, plan.person)
    sizes = np.array([len(counted)], np.int64)
    return Sums(tuple(parts), sizes, tuple(sorted(missing)), tuple(sorted(unlisted)))


def _tally(codes: Columns, people: Any) -> Iterator[tuple[Any, int]]:
    """Who has complete records in a batch, and how many."""
    ids, index = _present(codes, people)
    counts = np.bincount(index, minlength=len(ids)).tolist()
    return ((person, count) for person, count in zip(ids, counts, strict=True) if count)


def _take(left: dict[Any, int], tally: Iterator[tuple[Any, int]]) -> None:
    """Whoever has more records now than were counted would weigh more than one."""
    for person, count in tally:
        left[person] = left.get(person, 0) - count
        if left[person] < 0:
            raise changed()


def _check_alike(people: Iterable[Any], person: Person) -> None:
    """To be 7 in one file and "7" in another would be to weigh two."""
    if len({isinstance(one, str) for one in people}) > 1:
        raise DataError(
            f"column {person.column!r} holds text in one part of the table and numbers in "
            "another; whose record it is must be told alike everywhere"
        )


def _two_spellings(people: Mapping[Any, int], tables: Sequence[Any]) -> dict[str, set[int]]:
    """Ids of CSV files spelled both as "7" and as "7.0"; the files they stand in, none yet."""
    if len(tables) < 2 or not any(table.spelled for table in tables):
        return {}
    floats = [one for one in people if one.endswith(".0") and one.removesuffix(".0") in people]
    return {spelling: set() for one in floats for spelling in (one, one.removesuffix(".0"))}


def _place(places: dict[str, set[int]], people: Any, number: int) -> None:
    """Note in which file an id with two spellings is found."""
    if places:
        for one in places.keys() & set(people.dictionary.to_pylist()):
            places[one].add(number)


def _check_spellings(places: dict[str, set[int]], person: Person) -> None:
    """Refuse a table in which one file has "7" and another "7.0", and none has both.

    A missing id in one file makes pandas write the other ids there as floats. Where a file has
    both spellings they are text, and two people.
    """
    for one, files in places.items():
        whole = places.get(one.removesuffix(".0"), files)
        if not files & whole:
            raise DataError(
                f"column {person.column!r} holds ids as whole numbers in one file and as "
                "floating-point numbers in another; whose record it is must be told alike "
                "everywhere"
            )


def _note(
    codes: Columns, people: Any, person: Person, missing: set[str], unlisted: set[str]
) -> None:
    """Names of columns that stand in the way, never a value."""
    missing |= {column for column, index in codes.items() if (index == -1).any()}
    unlisted |= {column for column, index in codes.items() if (index == -2).any()}
    if people.null_count:
        missing.add(person.column)


def _keep(codes: Columns, people: Any) -> np.ndarray:
    kept = people.is_valid().to_numpy(zero_copy_only=False)
    for index in codes.values():
        kept = kept & (index >= 0)
    return np.asarray(kept, bool)


def _present(codes: Columns, people: Any) -> tuple[list[Any], np.ndarray]:
    """Distinct ids of a batch, and their position for each complete record."""
    index = people.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return people.dictionary.to_pylist(), index[_keep(codes, people)]


def _add(
    codes: Columns, people: Any, plan: SumPlan, counted: dict[Any, int], parts: list[np.ndarray]
) -> None:
    kept = _keep(codes, people)
    ids, index = _present(codes, people)
    steps = plan.person.steps if plan.person is not None else 0
    # An id that only incomplete records have was not counted, and has no record here either.
    shares = np.array([steps // counted.get(i, 1) for i in ids], np.int64)
    weight = shares[index].astype(float)  # a batch's sums stay below 2**53: exact
    for part, sums in zip(plan.parts, parts, strict=True):
        if not isinstance(part, CellCounts):
            continue
        start = 0
        for clique in part.cliques:
            shape = tuple(len(part.codes[i].levels) for i in clique)
            cell = np.ravel_multi_index(
                tuple(codes[part.codes[i].column][kept] for i in clique), shape
            )
            size = int(np.prod(shape))
            added = np.bincount(cell, weights=weight, minlength=size)
            sums[start : start + size, 0] += added.astype(np.int64)
            start += size


def _components(part: Any) -> int:
    return sum(int(np.prod([len(part.codes[i].levels) for i in clique])) for clique in part.cliques)

"""Ids of people: who is who must not depend on other records.

A person who went by two ids would count twice. So ids of two types are refused, and ids of CSV
files that some writer has spelled as floats in one file and not in another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from noisewise.artifact import DataError


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

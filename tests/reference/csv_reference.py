"""Reading a CSV file the obvious way: Python's ``csv``, row by row, each cell on its own.

The oracle for what the records of an accepted file are. Numbers are exact fractions, or floats
where a plan sums them; what they mean is then up to `sums_reference`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from noisewise.privacy.sum_plan import SumPlan
from tests.reference.sums_reference import Record

MISSING = {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"}
MISSING |= {"1.#QNAN", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"}
BOOLEANS = {"true": 1, "True": 1, "TRUE": 1, "false": 0, "False": 0, "FALSE": 0}
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

csv.field_size_limit(2**30)


def reference_records(path: Path | str, plan: SumPlan) -> list[Record]:
    """Return the plan's columns of every record."""
    missing = {column: MISSING - _listed(column, plan) for column in plan.columns}
    return [
        {column: _value(record[column], column, plan, missing[column]) for column in plan.columns}
        for record in _rows(path)
    ]


def _listed(column: str, plan: SumPlan) -> set[Any]:
    """Return the texts and numbers with which a column is compared."""
    compared = {c.constant for c in plan.where if c.column == column}
    return compared | {v for code in plan.codes if code.column == column for v in code.levels}


def _rows(path: Path | str) -> Iterator[dict[str, str]]:
    with open(path, encoding="utf-8-sig", newline="") as text:
        rows = csv.reader(text, strict=True)
        names = next(row for row in rows if row)
        for row in rows:
            if not row and len(names) > 1:
                continue  # no record: one of several columns has a comma
            yield dict(zip(names, row or [""], strict=True))


def _value(cell: str, column: str, plan: SumPlan, missing: set[str]) -> Any:
    if cell in missing:
        return None
    if plan.person is not None and column == plan.person.column:
        return cell
    lists = [code.levels for code in plan.codes if code.column == column]
    if lists and isinstance(lists[0][0], str):
        return cell
    cell = cell.strip(" \t")
    if cell in BOOLEANS:
        return BOOLEANS[cell]
    return _exact(cell) if lists else float(cell)


def _exact(cell: str) -> Fraction:
    assert DECIMAL.fullmatch(cell)
    return Fraction(cell)

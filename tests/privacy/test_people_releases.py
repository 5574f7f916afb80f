"""Whose record it is, in tables that are read here: nobody may weigh more than one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noisewise as nw
from noisewise.artifact import DataError, SourceError
from noisewise.privacy.lattice import Coded
from noisewise.privacy.sources import open_source
from noisewise.privacy.sources.arrow import ArrowSource, TableBatches
from noisewise.privacy.sum_plan import CellCounts, Person, ProductSums, SumPlan

PLAN = SumPlan((CellCounts((Coded("a", ("x", "y")),), ((0,),)),), None, Person("user", 1000))
WORDS: dict[str, Any] = {"cliques": [("a",)], "levels": {"a": ("x", "y")}, "epsilon": 1.0}


def cells(source: Any) -> list[int]:
    found: list[int] = open_source(source).sum(PLAN).parts[0][:, 0].tolist()
    return found


@pytest.mark.parametrize("stranger", ["9", "z9", "9.5", "09", "NA"])
def test_an_id_in_csv_files_is_its_text(tmp_path: Path, stranger: str) -> None:
    """Else a stranger's id would decide whether 7 here and 7 there are one person, or 07 is 7."""
    (tmp_path / "1.csv").write_text("user,a\n7,x\n07,y\n")
    (tmp_path / "2.csv").write_text(f"user,a\n7,x\n{stranger},y\n")
    found = open_source(str(tmp_path / "*.csv")).sum(PLAN)
    known = stranger != "NA"
    assert found.sizes.tolist() == [2 + known]
    assert found.parts[0][:, 0].tolist() == [1000, 1000 + 1000 * known]
    assert found.missing == (() if known else ("user",))


def test_an_id_far_down_a_csv_file_may_look_different(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("user,a\n" + "7,x\n" * 400_000 + "z9,y\n")
    assert cells(path) == [0, 1000]  # 400,000 records weigh floor(1000 / 400,000) each


def test_an_id_that_is_no_text_is_named_by_column(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(b"user,a\n\xe9,x\n")
    with pytest.raises(DataError, match=r"^column 'user' holds something that is not text$"):
        nw.release.graphical_model(path, unit="user", **WORDS)


def test_ids_of_two_kinds_are_refused(tmp_path: Path) -> None:
    """7 in one file and "7" in another would be one person who weighs two."""
    pq.write_table(pa.table({"user": [7, 8], "a": ["x", "y"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"user": ["7"], "a": ["x"]}), tmp_path / "2.parquet")
    with pytest.raises(DataError, match="column 'user' holds text in one part of the table and"):
        nw.release.graphical_model(tmp_path, unit="user", **WORDS)


def test_whole_numbers_of_any_type_are_one_kind(tmp_path: Path) -> None:
    types = (pa.int8(), pa.uint64(), pa.float64())
    for i, kind in enumerate(types):
        part = pa.table({"user": pa.array([7], kind), "a": ["x"]})
        pq.write_table(part, tmp_path / f"{i}.parquet")
    assert cells(tmp_path) == [999, 0]


@pytest.mark.parametrize("kind", ["category", "string", "object"])
def test_text_ids_of_a_data_frame(kind: str) -> None:
    frame = pd.DataFrame({"user": ["p", "q", "p", "p"], "a": ["x", "y", "x", "y"]})
    assert cells(frame.astype({"user": kind})) == [666, 1333]


class Changing:
    """A table that someone writes to between the two readings."""

    name = "the table"
    spelled = False

    def __init__(self, *readings: dict[str, list[Any]]) -> None:
        self._readings = iter(readings)
        self._types = pa.table(readings[0]).schema

    def types(self) -> list[tuple[str, Any]]:
        return list(zip(self._types.names, self._types.types, strict=True))

    def rows(self) -> int | None:
        return None

    def read(self, plan: SumPlan) -> Iterator[pa.RecordBatch]:
        yield from pa.table(next(self._readings)).select(plan.columns).to_batches()

    def explain(self, plan: SumPlan | None) -> SourceError:
        return SourceError("could not be read")


FIRST: dict[str, list[Any]] = {"user": [1, 2], "a": ["x", "y"]}
LATER = [
    {"user": [1, 2, 3, 3, 3], "a": ["x", "y", "x", "x", "x"]},  # 3 would weigh three
    {"user": [1, 1, 2], "a": ["x", "x", "y"]},
    {"user": [1, 1], "a": ["x", "x"]},
    {"user": [1], "a": ["x"]},
    {"user": [], "a": []},
]


@pytest.mark.parametrize("later", LATER)
def test_a_table_that_changes_between_two_readings(later: dict[str, list[Any]]) -> None:
    """Shares come from the first reading: in the second, somebody could weigh more than one."""
    typed: dict[str, Any] = {
        "user": pa.array(later["user"], pa.int64()),
        "a": pa.array(later["a"], pa.string()),
    }
    with pytest.raises(SourceError, match="the table changed while it was read"):
        ArrowSource(Changing(FIRST, typed)).sum(PLAN)


def test_a_table_that_changes_its_order_only() -> None:
    later: dict[str, Any] = {"user": [2, 1], "a": ["y", "x"]}
    assert ArrowSource(Changing(FIRST, later)).sum(PLAN).sizes.tolist() == [2]


def test_people_whose_every_id_is_missing() -> None:
    table = pa.table({"user": pa.array([None, None], pa.null()), "a": ["x", "y"]})
    found = ArrowSource(TableBatches(table)).sum(PLAN)
    assert found.missing == ("user",)
    np.testing.assert_array_equal(found.parts[0], 0)


def test_people_are_weighed_in_tables_only() -> None:
    """A Gram matrix of people with several records would need another bound."""
    plan = SumPlan((ProductSums((), ((),)),))
    with pytest.raises(TypeError, match="weighed in tables of counts only"):
        replace(plan, person=Person("user", 2**20))

"""``where=``: one meaning in every source, and no neighbour further away than claimed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, Bounds, DataError, Gram, ReleaseError
from noisewise.artifact.sensitivity import sensitivity
from noisewise.privacy.mechanisms import Calibrated
from noisewise.privacy.selection import Condition, in_words, parse_where
from noisewise.privacy.sources import open_source
from noisewise.privacy.statistic_privacy import PublicColumns, find_privacy
from noisewise.privacy.sum_plan import SumPlan
from tests.reference.sums_reference import reference_sums

REGRESSION: dict[str, Any] = {
    "x": "x",
    "y": "y",
    "bounds": {"x": (0, 1), "y": (0, 1)},
    "epsilon": 1.0,
}


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("age >= 18", [Condition("age", ">=", 18.0)]),
        ("age>=18 AND sex=='f'", [Condition("age", ">=", 18.0), Condition("sex", "=", "f")]),
        ("x != -1.5e3 and y < .5", [Condition("x", "!=", -1500.0), Condition("y", "<", 0.5)]),
        ('"household income" > 0', [Condition("household income", ">", 0.0)]),
        ('"and" = 1 and "a""b" = 2', [Condition("and", "=", 1.0), Condition('a"b', "=", 2.0)]),
        ("name != 'O''Brien and <'", [Condition("name", "!=", "O'Brien and <")]),
        ("größe <= 3", [Condition("größe", "<=", 3.0)]),
        ("x = -0", [Condition("x", "=", 0.0)]),
    ],
)
def test_texts_of_the_grammar(text: str, conditions: list[Condition]) -> None:
    parsed = parse_where(text)
    assert list(parsed) == conditions
    assert parse_where(in_words(parsed)) == parsed


OUTSIDE = """
age | age > | >= 18 | 18 <= age | age >= 18 or x = 1 | age >= 18 and | x = y | and x = 1 | x = 'a
x = 1 x = 2 | x = 1; drop table t | f(x) = 1 | x = 1e999 | x = 9007199254740992 | x < 'a' | x = ''
x = 1 and and y = 2 | x = 0x10 | x = 1.2.3 | x = 1 -- y | (x = 1) | x is null | x = nan | 'x' = 1
x = 'a' 'b' | x in (1, 2) | x = true | x = 1 and y | x = = 1 | x = 1, y = 2 | x >= | = | and
"""


@pytest.mark.parametrize("text", ["", " ", *OUTSIDE.strip().replace("\n", " | ").split(" | ")])
def test_texts_outside_the_grammar(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"^where: "):
        parse_where(text)


def test_only_text_is_a_condition() -> None:
    for odd in (3, {"age": (18, None)}, ["age >= 18"], pd.DataFrame({"a": [1]})):
        with pytest.raises(ArgumentError, match="where: must be text, conditions such as"):
            parse_where(odd)


# -- the same in every source ----------------------------------------------------------------------

BIG = 2**53
TABLE = pa.table(
    {
        "x": pa.array([0.1, 0.9, None, 0.5, float("nan"), 0.3, 0.7, 1.0], pa.float64()),
        "y": pa.array([0.2, 0.4, 0.6, 0.8, 0.1, 0.3, None, 0.5], pa.float64()),
        "age": pa.array([17, 18, 19, None, 40, BIG + 1, -3, 18], pa.int64()),
        "sex": pa.array(["f", "m", "f", "f", None, "F", "f ", "m"], pa.string()),
        "ok": pa.array([True, False, True, None, True, True, False, True], pa.bool_()),
    }
)
CONDITIONS = (
    "age >= 18", "age > 18", "age < 18", "age <= 18", "age = 18", "age == 18 and sex = 'm'",
    "age != 18", "sex = 'f'", "sex != 'f'", "x < 0.5", "x <= 0.5", "x != 0.5", "ok = 1", "ok != 1",
    "x = 0.3 and y = 0.3", "y > 0.15 and x > 0", "age > 1e15", "age > 9007199254740991",
    "age < -1000",
)  # fmt: skip
LOCAL = ("arrow", "pandas", "polars", "lazy", "dataset", "parquet", "csv")


def local(form: str, table: pa.Table, folder: Path) -> Any:
    if form == "arrow":
        return table
    if form == "pandas":
        return table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    if form in ("polars", "lazy"):
        frame = pl.DataFrame(pl.from_arrow(table))
        return frame if form == "polars" else frame.lazy()
    if form == "dataset":
        return ds.dataset(table)
    path = folder / f"t.{form}"
    (pq.write_table if form == "parquet" else pyarrow.csv.write_csv)(table, path)
    return path


def gram_plan(where: str, bits: int = 15) -> SumPlan:
    limits = PublicColumns({"x": Bounds(0, 1), "y": Bounds(0, 1)})
    part = find_privacy("gram").part(Gram(("x", "y"), True, bits), limits)
    return SumPlan((part,), where=parse_where(where))


@pytest.mark.parametrize("form", LOCAL)
def test_sums_are_the_oracles(form: str, tmp_path: Path) -> None:
    source = local(form, TABLE, tmp_path)
    for where in CONDITIONS:
        plan = gram_plan(where)
        found, expected = open_source(source).sum(plan), reference_sums(TABLE.to_pylist(), plan)
        np.testing.assert_array_equal(found.parts[0], expected.parts[0], where)
        assert found.sizes.tolist() == expected.sizes.tolist()
        assert found.missing == expected.missing, where


def test_csv_cells_keep_their_meaning(tmp_path: Path) -> None:
    """A number far down may change how the file is read, never what is selected."""
    path = tmp_path / "t.csv"
    lines = "".join(f"0.5,0.5,{i % 3},k{i % 2}\n" for i in range(40_000))
    for last in ("0.5,0.5,2,k0\n", "0.5,0.5, 2.0,k0\n", "0.5,0.5,true,k0\n", "0.5,0.5,NA,NA\n"):
        path.write_text("x,y,age,sex\n" + lines + last)
        found = open_source(path).sum(gram_plan("age >= 1 and sex = 'k0'"))
        assert found.sizes.tolist() == [13_333 + (not last.endswith("NA\n"))]


def test_a_spelling_of_missing_is_a_value_only_of_the_column_compared(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y,s,t\n0.5,0.5,a,NA\n0.5,NA,a,b\n0.5,0.5,NA,b\n0.5,0.5,a,b\n,1,a,b\n")
    for where, size in (("s != 'NA'", 2), ("s = 'NA'", 1), ("s != 'NA' and t != 'b'", 0)):
        sums = open_source(path).sum(gram_plan(where))
        assert sums.sizes.tolist() == [size], where
        assert sorted(sums.missing) == (["x", "y"] if size == 2 else [])


def test_levels_respelt_as_floats_are_refused(tmp_path: Path) -> None:
    """One missing value makes pandas write 7.0 for 7: every record would leave the selection."""
    path = tmp_path / "t.csv"
    path.write_text("x,y,zip\n0.5,0.5,7.0\n0.5,0.5,\n")
    with pytest.raises(DataError, match="column 'zip' holds a level of its public list as a floa"):
        open_source(path).sum(gram_plan("zip = '7'"))


@pytest.mark.parametrize("form", LOCAL)
def test_columns_of_conditions_are_checked(form: str, tmp_path: Path) -> None:
    source = local(form, TABLE, tmp_path)
    release = {**REGRESSION, "neighbours": "add-remove"}
    with pytest.raises(DataError, match="column 'nowhere' is not in"):
        nw.release.linear_regression(source, where="nowhere = 1", **release)
    with pytest.raises(
        DataError, match=r"column 'sex' (must be numeric|holds something that is not a num)"
    ):
        nw.release.linear_regression(source, where="sex = 1", **release)
    if form != "csv":  # where a number may well be text
        with pytest.raises(DataError, match="column 'age' holds numbers, but its public list is"):
            nw.release.linear_regression(source, where="age = '18'", **release)


# -- neighbours ------------------------------------------------------------------------------------

RECORDS = tuple(itertools.product((0.0, 1.0), (0.0, 0.5, 1.0), (None, 17, 18)))


@pytest.mark.parametrize("where", ["age >= 18", "age != 17 and y > 0", "x < 1"])
def test_a_selection_keeps_neighbours_neighbours(where: str) -> None:
    """Brute force over all tables of up to two records, and one record more."""
    statistic, plan = Gram(("x", "y"), True, 1), gram_plan(where, 1)
    claim, privacy = sensitivity(statistic, "add-remove"), find_privacy("gram")

    def sums(rows: tuple[Any, ...]) -> np.ndarray:
        table = pa.table(
            {
                "x": pa.array([r[0] for r in rows], pa.float64()),
                "y": pa.array([r[1] for r in rows], pa.float64()),
                "age": pa.array([r[2] for r in rows], pa.int64()),
            }
        )
        return privacy.integers(statistic, open_source(table).sum(plan).parts[0])

    largest = 0
    for rows in ((), *((r,) for r in RECORDS)):
        before = sums(rows)
        for more in RECORDS:
            largest = max(largest, int(np.abs(sums((*rows, more)) - before).sum()))
    assert largest <= claim.l1
    assert largest >= claim.l1 * (0.9 if "x < 1" not in where else 0.5)


def test_the_number_of_selected_records_is_a_secret() -> None:
    frame = pd.DataFrame({"x": [0.1, 0.5], "y": [0.2, 0.4], "age": [10, 20]})
    with pytest.raises(ArgumentError, match=r"where: how many .* use neighbours='add-remove'"):
        nw.release.linear_regression(frame, where="age >= 18", **REGRESSION)


def test_filtered_sources_are_told_of_where() -> None:
    frame = pl.DataFrame({"x": [0.1], "y": [0.2]}).lazy().filter(pl.col("x") > 0)
    with pytest.raises(ArgumentError, match=r"neighbours='add-remove' \(where= sel"):
        nw.release.linear_regression(frame, **REGRESSION)


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Calibrated, "draw", lambda _, integers: integers)


@pytest.mark.usefixtures("exact")
def test_every_release_takes_a_selection() -> None:
    rng = np.random.default_rng(1)
    n = 400
    frame = pd.DataFrame({"x": rng.random(n), "y": rng.random(n), "age": rng.integers(0, 90, n)})
    frame["sex"] = rng.choice(["f", "m"], n)
    words: dict[str, Any] = {"where": "age>=18 and sex='f'", "neighbours": "add-remove"}
    few = frame[(frame.age >= 18) & (frame.sex == "f")]
    regression = nw.release.linear_regression(frame, **REGRESSION, **words)
    plain = nw.release.linear_regression(few, **REGRESSION, neighbours="add-remove")
    np.testing.assert_array_equal(regression.block("gram").values, plain.block("gram").values)
    family = nw.release.exponential_family(
        frame, column="age", family="poisson", bounds=(0, 100), epsilon=1.0, **words
    )
    assert family.block("power-sums").values[:, 0].tolist() == [few.age.sum(), len(few)]
    private = nw.release.exponential_family(
        frame,
        column="age",
        family="normal",
        bounds=nw.release.PrivateBounds(within=(0, 100)),
        epsilon=1e5,
        **words,
    )
    assert private.bounds["age"].lower >= 15
    tables = nw.release.graphical_model(
        frame, cliques=[("sex",)], levels={"sex": ["f", "m"]}, epsilon=1.0, **words
    )
    assert tables.block("tables").values[:, 0].tolist() == [len(few), 0]
    answer = nw.release.posterior_probability(
        frame, x="x", y="y", coefficient="x", at=0.0, partitions=5, epsilon=1.0,
        prior=nw.release.Zellner(g=100), **words,
    )  # fmt: skip
    for release in (regression, family, private, tables, answer):
        assert release.where == "age >= 18 and sex = 'f'"
        assert nw.Release.from_json(release.to_json()) == release
        assert '"where": "age >= 18 and sex = \'f\'"' in release.to_json()
    assert '"where"' not in plain.to_json()


def test_a_file_cannot_select_under_replace_one() -> None:
    made = nw.release.linear_regression(nw.release.Blank(10), **REGRESSION)
    text = made.to_json().replace('"created"', '"where": "x > 0", "created"')
    with pytest.raises(ReleaseError, match="where: "):
        nw.Release.from_json(text)

"""Contingency tables: weighed by person, with an "other" level, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import noisewise as nw
from noisewise.artifact import PersonTables
from noisewise.artifact.sensitivity import sensitivity
from noisewise.privacy.lattice import Coded
from noisewise.privacy.sources import open_source
from noisewise.privacy.sources.arrow import ArrowSource, TableBatches
from noisewise.privacy.sum_plan import CellCounts, Person, SumPlan
from tests.reference.graphical_reference import person_weights

LEVELS = {"a": ("x", "y"), "b": (0, 1, 2)}
CLIQUES = (("a", "b"), ("b",))
WORDS: dict[str, Any] = {"cliques": CLIQUES, "levels": LEVELS, "epsilon": 1.0}
QUIET = {**WORDS, "epsilon": 1e7}


def visits(n: int = 500, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "user": rng.geometric(0.02, n),
            "a": rng.choice(["x", "y"], n),
            "b": rng.integers(0, 3, n),
        }
    )


def engine(frame: pd.DataFrame) -> Any:
    """The same table in DuckDB; as Arrow, because Ibis asks pandas for what it has deprecated."""
    return pytest.importorskip("ibis").memtable(pa.Table.from_pandas(frame))


def plan(steps: int = 2**20, other: Any = None) -> SumPlan:
    codes = (Coded("a", LEVELS["a"], None, other), Coded("b", LEVELS["b"]))
    return SumPlan((CellCounts(codes, ((0, 1), (1,))),), None, Person("user", steps))


def oracle(frame: pd.DataFrame, steps: int = 2**20) -> tuple[np.ndarray, int]:
    records = frame.to_dict("records")
    return person_weights(records, "user", CLIQUES, LEVELS, steps)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [7, 500])
@pytest.mark.parametrize("text", [False, True])
def test_people_are_weighed_exactly_across_batches(rows: int, text: bool) -> None:
    frame = visits()
    if text:
        frame["user"] = "person " + frame["user"].astype(str)
    source = ArrowSource(TableBatches(pa.Table.from_pandas(frame), rows))
    found, (cells, people) = source.sum(plan()), oracle(frame)
    np.testing.assert_array_equal(found.parts[0][:, 0], cells)
    assert found.sizes.tolist() == [people]


def test_an_engine_weighs_people_alike() -> None:
    frame = visits()
    found, (cells, people) = open_source(engine(frame)).sum(plan(1000)), oracle(frame, 1000)
    np.testing.assert_array_equal(found.parts[0][:, 0], cells)
    assert found.sizes.tolist() == [people]


def test_incomplete_records_weigh_nothing_and_leave_their_person_whole() -> None:
    frame = visits(40)
    holes = frame.copy()
    extra = pd.DataFrame({"user": [1, None, 99], "a": [None, "x", None], "b": [0, 1, 2]})
    table = pa.Table.from_pandas(pd.concat([holes, extra], ignore_index=True))
    found = ArrowSource(TableBatches(table)).sum(plan())
    np.testing.assert_array_equal(found.parts[0][:, 0], oracle(frame)[0])
    assert found.missing == ("a", "user")
    assert found.sizes.tolist() == [oracle(frame)[1]]


def test_sensitivity_covers_every_pair_of_people() -> None:
    """Every multiset of up to three records, as one person; bits = 2, so that shares are rounded.

    Here for the oracle; for the integers of every engine in ``tests/engines/test_people.py``.
    Fails if the bound were any smaller: two people with one record each in different cells.
    """
    levels = {"a": (0, 1), "b": (0, 1)}
    statistic = PersonTables((("a", "b"), ("b",)), levels, "user", 2)
    records = list(itertools.product((0, 1), (0, 1)))
    people = [np.zeros(6, int)]  # nobody: add-remove
    for k in (1, 2, 3):
        for chosen in itertools.combinations_with_replacement(records, k):
            given = [{"user": 1, "a": a, "b": b} for a, b in chosen]
            cells, _ = person_weights(given, "user", statistic.cliques, levels, 4)  # type: ignore[arg-type]
            people.append(cells)
    moves = [u - w for u, w in itertools.product(people[1:], repeat=2)]
    replace, single = (sensitivity(statistic, r) for r in ("replace-one", "add-remove"))
    assert max(np.abs(m).sum() for m in moves) == replace.l1 == 16
    assert max((m**2).sum() for m in moves) == replace.l2_squared == 64
    assert max(p.sum() for p in people) == single.l1 == 8
    assert max((p**2).sum() for p in people) == single.l2_squared == 32


def test_a_release_by_person_round_trips_and_says_how_many_people() -> None:
    frame = visits()
    made = nw.release.graphical_model(frame, unit="user", **QUIET)
    again = nw.Release.from_json(made.to_json())
    assert again == made
    assert made.n == frame["user"].nunique()
    assert made.block("person-tables").noise.sensitivity == 4 * 2**20
    # Rounded down to 2^-20 of a person per record.
    assert made.table().set_index("statistic").value[["b=0", "b=1", "b=2"]].sum() == pytest.approx(
        frame["user"].nunique(), abs=500 * 2**-20 + 1e-3
    )


def test_other_counts_what_is_not_listed() -> None:
    frame = visits()
    words = {**QUIET, "levels": {"a": ("x", "rest"), "b": (0, 1, 2)}}
    with pytest.raises(nw.DataError, match="column 'a' holds a value outside its public list"):
        nw.release.graphical_model(frame, **words)
    made = nw.release.graphical_model(frame, other={"a": "rest"}, **words)
    found = made.table().set_index("statistic").value
    for b in range(3):
        assert found[f"a=rest,b={b}"] == ((frame.a == "y") & (frame.b == b)).sum()


def test_other_in_an_engine() -> None:
    frame = visits()
    frame.loc[3, "a"] = "strange"
    code = (Coded("a", ("x", "y"), None, "y"),)
    wanted = SumPlan((CellCounts(code, ((0,),)),))
    sums = [open_source(t).sum(wanted) for t in (frame, engine(frame))]
    np.testing.assert_array_equal(sums[0].parts[0], sums[1].parts[0])
    assert sums[0].parts[0].sum() == len(frame)
    assert sums[0].unlisted == sums[1].unlisted == ()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"cliques": [("a", "nowhere")]}, "levels: none for column 'nowhere'"),
        (
            {"cliques": [("a",), ("a", "b"), ("b", "a")]},
            r"cliques\[2\] has the same columns as cliques\[1\], b, a; every table takes",
        ),
        (
            {"cliques": [("a",), ("b",)]},
            r"cliques\[1\], b, is not connected with cliques\[0\].*independent. Add a clique",
        ),
        ({"unit": "a"}, "unit 'a' is also a column of a table"),
        ({"unit": 3}, "unit: must be a column name, not int"),
        ({"unit": "user", "groups": {"g": [1]}}, "max_records: with groups, unit needs it"),
        ({"other": {"a": "z"}}, "other.'a'.: 'z' is not among the column's levels"),
        ({"other": {"c": "z"}}, "other: 'c' is not among a, b"),
        (
            {"levels": {"a": range(2000), "b": range(2000)}},
            "tables: 4000000 components, more than 2000000",
        ),
    ],
)
def test_refused_before_the_table_is_read(more: dict[str, Any], message: str) -> None:
    with pytest.raises(nw.ArgumentError, match=message):
        nw.release.graphical_model("no-such-file.parquet", **{**WORDS, **more})


def test_a_clique_over_a_column_that_the_table_lacks() -> None:
    with pytest.raises(
        nw.DataError, match="column 'b' is not in the data frame; it has: 'user', 'a'"
    ):
        nw.release.graphical_model(visits()[["user", "a"]], **WORDS)
    with pytest.raises(nw.DataError, match="column 'who' is not in the data frame"):
        nw.release.graphical_model(visits(), unit="who", **WORDS)

"""Conditions and caps on people's records, in every engine: the integers of the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noisewise.artifact import Bounds, DataError, Gram, Tables
from noisewise.artifact.statistics import CellSums
from noisewise.artifact.statistics.cell_sums import main_effects
from noisewise.privacy.lattice import Coded
from noisewise.privacy.selection import parse_where
from noisewise.privacy.statistic_privacy import PublicColumns, find_privacy
from noisewise.privacy.sum_plan import Capped, SumPlan, Whole
from tests.engines.engines import ENGINES
from tests.privacy.test_where import CONDITIONS, TABLE, gram_plan
from tests.reference.sums_reference import reference_sums

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.*127.0.0.1:ResourceWarning")

QUICK = [*ENGINES[:-1], pytest.param("spark", marks=pytest.mark.evidence)]


@pytest.mark.parametrize("engine", ENGINES)
def test_conditions_mean_the_same(load: Any, engine: str) -> None:
    for where in CONDITIONS if engine != "spark" else CONDITIONS[5:11:5]:
        plan = gram_plan(where)
        found = load(engine, TABLE).sum(plan)
        expected = reference_sums(TABLE.to_pylist(), plan)
        np.testing.assert_array_equal(found.parts[0], expected.parts[0], where)
        assert (found.sizes.tolist(), found.missing) == (expected.sizes.tolist(), expected.missing)


@pytest.mark.parametrize("engine", QUICK)
def test_conditions_are_checked(load: Any, engine: str) -> None:
    for where, said in {
        "nowhere = 1": "column 'nowhere' is not in the table",
        "sex = 1": "column 'sex' must be numeric",
        "age = '18'": "column 'age' holds numbers, but its public list is of text",
    }.items():
        with pytest.raises(DataError, match=said):
            load(engine, TABLE).sum(gram_plan(where))


def people(kind: pa.DataType, ids: list[Any], repeated: bool, seed: int = 2) -> pa.Table:
    """Records of a few people; where ``repeated``, all records of a person are alike."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, len(ids), 60)
    values: dict[str, Any] = {
        "x": rng.uniform(-1.5, 1.5, 60),
        "y": rng.uniform(-1, 3, 60),
        "a": rng.integers(0, 3, 60),
        "g": rng.choice(["u", "v"], 60),
        "z": rng.integers(0, 2, 60),
    }
    if repeated:
        values = {name: column[owner] for name, column in values.items()}
    table = pa.table({"id": pa.array([ids[i] for i in owner], kind), **values})
    holes = pa.array(rng.random(60) < 0.9 if not repeated else owner != 0)
    x = pa.compute.if_else(holes, table["x"], pa.scalar(None, pa.float64()))
    return table.set_column(1, "x", x)


WHOLE_IDS: list[Any] = [1, 2, 2**53, 2**53 + 1, None, -7]
TEXT_IDS: list[Any] = ["a", "A", "7", "07", None, "it's"]
FLOAT_IDS: list[Any] = [0.0, -0.0, 3.0, None, float("nan"), -7.0]
KINDS = {
    "whole": (pa.int64(), WHOLE_IDS),
    "text": (pa.string(), TEXT_IDS),
    "float": (pa.float64(), FLOAT_IDS),
}


def plan(most: int, where: str | None = None) -> SumPlan:
    public = PublicColumns({"x": Bounds(-1, 1), "y": Bounds(0, 2)}, {"y": 1.0}, {"a": 2})
    parts = (
        find_privacy("gram").part(Gram(("x", "y"), True), public),
        find_privacy("tables").part(Tables((("a",),), {"a": (0, 2)}), public),
        find_privacy("cell-sums").part(
            CellSums((("x",), ("x", "y")), {"a": (0, 2)}, main_effects(2, 1)), public
        ),
    )
    return SumPlan(parts, Coded("g", ("v", "u")), Capped("id", most), parse_where(where))


@pytest.mark.parametrize("engine", QUICK)
@pytest.mark.parametrize("kind", KINDS)
def test_capped_sums_are_the_oracles(load: Any, engine: str, kind: str) -> None:
    """Where the cap is beyond everybody's records, or a person's records are all alike."""
    cases = ((False, 60, None), (True, 2, None), (True, 1, "z = 1"), (False, 60, "z = 0 and y < 2"))
    for repeated, most, where in cases:
        table, asked = people(*KINDS[kind], repeated), plan(most, where)
        found = load(engine, table).sum(asked)
        expected = reference_sums(table.to_pylist(), asked)
        for part, other in zip(found.parts, expected.parts, strict=True):
            np.testing.assert_array_equal(part, other)
        np.testing.assert_array_equal(found.sizes, expected.sizes)
        assert (found.missing, found.unlisted) == (expected.missing, expected.unlisted)


@pytest.mark.parametrize("engine", ["arrow", *QUICK])
def test_records_of_a_person_stay_together(load: Any, engine: str) -> None:
    """For random partitions: numbers of people instead of ids, -1 for nobody."""
    table = people(*KINDS["text"], repeated=True)
    asked = SumPlan(plan(1).parts[:1], None, Whole("id"), parse_where("z = 1"))
    rows = [(x, who) for batch, numbers in load(engine, table).stream(asked)
            for x, who in zip(batch["y"], numbers, strict=True)]  # fmt: skip
    selected = [r for r in table.to_pylist() if r["z"] == 1]
    assert len(rows) == len(selected)
    owners: dict[Any, set[Any]] = {}
    for y, number in rows:
        owners.setdefault(number, set()).add(y)
    # Of each person all records are alike here, and of different people they differ.
    nobody = {r["y"] for r in selected if r["id"] is None}
    assert owners.pop(-1, set()) == nobody
    assert all(len(values) == 1 for values in owners.values())
    assert len(owners) == len({r["id"] for r in selected if r["id"] is not None})


@pytest.mark.parametrize("engine", QUICK)
def test_ids_that_are_no_whole_numbers_are_refused(load: Any, engine: str) -> None:
    table = people(pa.float64(), [0.5, 1.0], repeated=False)
    with pytest.raises(DataError, match=r"column 'id' holds ids .* not whole"):
        load(engine, table).sum(plan(2))

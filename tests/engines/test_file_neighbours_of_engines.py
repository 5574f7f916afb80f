"""Neighbours as engines hold them and write them: tables, COPY, and folders of CSV by Spark."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noisewise.artifact import DataError
from noisewise.privacy.lattice import Coded
from noisewise.privacy.sum_plan import CellCounts, Person, SumPlan
from tests.engines import engines
from tests.engines.engines import ENGINES
from tests.privacy.file_neighbours import Values, Writer, as_arrow, attack

# Spark's own Python never closes the sockets its answers come through.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.*127.0.0.1:ResourceWarning")

QUICK = (*ENGINES[:-1], pytest.param("spark", marks=pytest.mark.evidence))
NAMES = ("on_duckdb", "on_polars", "on_postgres", "by_copy")
SPARK = ("on_spark", "by_spark", "by_spark_with_doubled_marks")


@pytest.fixture
def writers(request: pytest.FixtureRequest) -> dict[str, Writer]:
    """Return what puts a table into an engine, or has an engine write it."""

    def on_postgres(values: Values, folder: Path) -> Any:
        return engines.on_postgres(as_arrow(values, folder), request.getfixturevalue("postgres"))

    def by_copy(values: Values, folder: Path) -> Path:
        table = on_postgres(values, folder).get_name()
        connection = request.getfixturevalue("postgres")
        path = folder / "people.csv"
        command = f"COPY {table} TO STDOUT (FORMAT csv, HEADER)"
        with connection.cursor() as cursor, cursor.copy(command) as copy, path.open("wb") as file:
            file.writelines(bytes(piece) for piece in copy)
        return path

    def on_spark(values: Values, folder: Path) -> Any:
        session = request.getfixturevalue("spark")
        return engines.on_spark(as_arrow(values, folder), session, folder)

    def by_spark(values: Values, folder: Path, escape: str = "\\") -> Path:
        session = request.getfixturevalue("spark")
        parquet, made = folder / f"{uuid.uuid4().hex}.parquet", folder / "people.csv"
        pq.write_table(as_arrow(values, folder), parquet)
        writer = session.read.parquet(str(parquet)).coalesce(1).write.option("header", True)
        writer.option("escape", escape).csv(str(made))
        return made

    return {
        "on_duckdb": lambda values, folder: engines.on_duckdb(as_arrow(values, folder)),
        "on_polars": lambda values, folder: engines.on_polars(as_arrow(values, folder)),
        "on_postgres": on_postgres,
        "by_copy": by_copy,
        "on_spark": on_spark,
        "by_spark": by_spark,
        "by_spark_with_doubled_marks": lambda v, folder: by_spark(v, folder, '"'),
    }


@pytest.mark.parametrize("name", NAMES)
def test_neighbours_in_engines(name: str, writers: dict[str, Writer], tmp_path: Path) -> None:
    tries = [attack(name, seed, tmp_path, long=False, writers=writers) for seed in range(12)]
    tries += [attack(name, 0, tmp_path, long=True, writers=writers)]
    assert sum(tries) > 3


@pytest.mark.evidence
@pytest.mark.parametrize("name", [*NAMES, *SPARK])
def test_many_neighbours_in_engines(name: str, writers: dict[str, Writer], tmp_path: Path) -> None:
    pairs = 8 if name in SPARK else 200
    tries = [attack(name, seed, tmp_path, long=False, writers=writers) for seed in range(pairs)]
    tries += [
        attack(name, seed, tmp_path, long=True, writers=writers)
        for seed in range(2 if name in SPARK else 10)
    ]
    print(f"{name}: {len(tries)} pairs, {sum(tries)} of them accepted")


@pytest.mark.parametrize("engine", QUICK)
def test_floats_that_cannot_tell_apart(load: Any, engine: str) -> None:
    """Levels by the list and the type, people by their ids."""
    big = 2.0**53
    table = pa.table(
        {
            "a": [0.0, 1.0, 1.0],
            "id": [1.0, 2.0, -big],
            "inf": [1.0, 2.0, float("inf")],
            "whole": [1.0, 2.0, 3.0],
        }
    )
    source = load(engine, table)
    plan = SumPlan((CellCounts((Coded("a", (0, 1, 2**53)),), ((0,),)),))
    with pytest.raises(DataError, match="cannot tell the whole numbers of its public list apart"):
        source.sum(plan)
    people = SumPlan((CellCounts((Coded("a", (0, 1)),), ((0,),)),), person=Person("id", 100))
    with pytest.raises(DataError, match="cannot tell people apart"):
        source.sum(people)
    with pytest.raises(DataError, match="that are not whole"):
        source.sum(SumPlan(people.parts, person=Person("inf", 100)))
    fine = SumPlan(people.parts, person=Person("whole", 100))
    assert source.sum(fine).sizes.tolist() == [3]

"""Tables in which people have several records, drawn at random, in every form a source can have."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet
from hypothesis import strategies as st

from noisewise.privacy.lattice import Coded
from noisewise.privacy.sum_plan import CellCounts, Person, SumPlan

LOCAL = (
    "arrow",
    "pandas",
    "polars frame",
    "lazy frame",
    "dataset",
    "parquet",
    "arrow files",
    "csv",
)
"""Read here; those that are files come in two parts, so that people have records in both."""

MANY = tuple(str(i) for i in range(150))  # longer than goes into a query as text

# Ids that some reader might take for one another. The empty text is NULL to a reader of CSV.
USERS: dict[str, tuple[list[Any], Any]] = {
    "whole": ([1, 2, 3, 2**53, 2**53 + 1, -1], pa.int64()),
    "text": (["a", "A", "a ", "7", "07", "7.0", "日本", "it's"], pa.string()),
    "empty text": (["a", "", " "], pa.string()),
    "real": ([0.0, -0.0, 2.0, 3.0, math.nan], pa.float64()),
}
LEVELS: dict[str, tuple[Any, ...]] = {"a": ("x", "y", "rest"), "b": (3, 0, 1), "g": (0, 1, 2)}
VALUES: dict[str, tuple[list[Any], Any]] = {
    "a": (["x", "y", "x", "y", "rest", "X", "x "], pa.string()),
    "b": ([3, 0, 1, 3, 0, 1, 7], pa.int32()),
    "g": ([0.0, -0.0, 1.0, 2.0, 2.5, math.inf, math.nan], pa.float64()),
}
PLAIN: dict[str, tuple[list[Any], Any]] = {**VALUES, "g": ([0, 1, 2, 5], pa.int64())}
PANDAS_TYPES = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype()}
CLIQUES = (((0, 1),), ((1,), (1, 0)), ((0, 1), (1, 2), (2,)), ((2, 1, 0), (0,)))
STEPS = (2**20, 1000, 7, 4, 1)


@st.composite
def tables(draw: st.DrawFn, *, plain: bool) -> pa.Table:
    """Up to forty records of a few people; plain: without what CSV cannot tell."""
    kinds = ["whole", "text"] if plain else list(USERS)
    ids, kind = USERS[draw(st.sampled_from(kinds))]
    holes = draw(st.booleans())
    strange = draw(st.booleans())
    rows = draw(st.integers(0, 40))

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        chosen = st.sampled_from([*values, None] if holes else values)
        return pa.array(draw(st.lists(chosen, min_size=rows, max_size=rows)), kind)

    columns = {"user": column(ids, kind)}
    for name, (values, held) in (PLAIN if plain else VALUES).items():
        listed = [v for v in values if v in LEVELS[name]]
        columns[name] = column(values if strange else listed, held)
    return pa.table(columns)


@st.composite
def plans(draw: st.DrawFn) -> SumPlan:
    """Tables weighed by person, or (steps of None) records counted as they are."""
    others: dict[str, Any] = {"a": "rest", "b": 0, "g": 2}
    codes = tuple(
        Coded(
            c,
            levels,
            levels[0] if draw(st.booleans()) else None,
            others[c] if draw(st.booleans()) else None,
        )
        for c, levels in LEVELS.items()
    )
    steps = draw(st.sampled_from((*STEPS, None)))
    person = None if steps is None else Person("user", steps)
    return SumPlan((CellCounts(codes, draw(st.sampled_from(CLIQUES))),), None, person)


def local(path: str, table: pa.Table, folder: Path) -> Any:
    """What an owner would give for a table that is read here."""
    forms: dict[str, Callable[[], Any]] = {
        "arrow": lambda: table,
        # By default pandas makes floats of whole numbers with gaps, and one id of two.
        "pandas": lambda: table.to_pandas(types_mapper=PANDAS_TYPES.get),
        "polars frame": lambda: pl.from_arrow(table),
        "lazy frame": lambda: pl.DataFrame(pl.from_arrow(table)).lazy(),
        "dataset": lambda: ds.dataset(table),
        "parquet": lambda: _parts(table, folder, ".parquet", pyarrow.parquet.write_table),
        "arrow files": lambda: _parts(table, folder, ".arrow", pyarrow.feather.write_feather),
        "csv": lambda: _parts(table, folder, ".csv", pyarrow.csv.write_csv),
    }
    return forms[path]()


def _parts(table: pa.Table, folder: Path, ending: str, write: Callable[..., None]) -> str:
    middle = table.num_rows // 2
    for name, part in (("1", table.slice(0, middle)), ("2", table.slice(middle))):
        write(part, str(folder / f"{name}{ending}"))
    return str(folder / f"*{ending}")

"""Regressions with factors from every kind of local table: the integers of the oracle."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from noisewise.artifact import ArgumentError, Bounds, DataError
from noisewise.artifact.statistics import CellSum, CellSums
from noisewise.privacy.lattice import Coded, boxed
from noisewise.privacy.sources import open_source
from noisewise.privacy.sources.arrow import ArrowSource, TableBatches
from noisewise.privacy.statistic_privacy import PublicColumns, find_privacy
from noisewise.privacy.sum_plan import ProductSums, SumPlan, Sums
from tests.reference.sums_reference import reference_sums

ROWS = 500
BOUNDS = {"age": Bounds(18, 70), "wage": Bounds(-5, 40), "member": Bounds(0, 1)}
LEVELS: dict[str, Any] = {
    "sex": ("f", "m"),
    "union": (0, 1),
    "region": (3, 1, 2),
    "job": ("a", "b", "c"),
}
STATISTIC = CellSums(
    (("age",), ("age", "age"), ("age", "member", "wage"), ("wage",)),
    LEVELS,
    (
        *(CellSum((i, j), ()) for i, j in ((0, 0), (0, 1), (1, 2), (2, 3), (3, 3))),
        *(CellSum((i,), (f,)) for i in range(4) for f in range(4)),
        *(CellSum((0, 2), (1, 3)), CellSum((), (0, 2)), CellSum((), (1, 2, 3))),
    ),
)  # fmt: skip


def columns(gaps: bool) -> dict[str, pa.Array]:
    """Numbers, booleans as numbers and as factors, texts and whole numbers; some missing."""
    rng = np.random.default_rng(8)
    values: dict[str, Any] = {
        "age": rng.integers(10, 90, ROWS),
        "wage": np.round(rng.normal(15, 15, ROWS), 2),
        "member": rng.random(ROWS) < 0.5,
        "sex": rng.choice(["f", "m"], ROWS),
        "union": rng.random(ROWS) < 0.3,
        "region": rng.integers(1, 4, ROWS),
        "year": rng.integers(2019, 2021, ROWS),
        "job": rng.choice(["a", "b", "c", "other"] if gaps else ["a", "b", "c"], ROWS),
    }
    return {
        name: pa.array(column, mask=(rng.random(ROWS) < 0.05) if gaps else None)
        for name, column in values.items()
    }


TABLES = {gaps: pa.table(columns(gaps)) for gaps in (False, True)}


def plan(gaps: bool, group: bool = False) -> SumPlan:
    public = PublicColumns(
        BOUNDS,
        {"age": 200.0, "sex": "m", "member": 1} if gaps else {},
        {"job": "c"} if gaps else {},
    )
    part = find_privacy(STATISTIC.kind).part(STATISTIC, public)
    return SumPlan((part,), Coded("year", (2020, 2019)) if group else None)


def forms(table: pa.Table, folder: Path) -> dict[str, Any]:
    """The same records in every kind of local table."""
    text = [name for name in table.column_names if pa.types.is_string(table[name].type)]
    encoded = table
    for name in (*text, "region"):
        place = table.column_names.index(name)
        encoded = encoded.set_column(place, name, table[name].dictionary_encode())
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    categorical = frame.astype(dict.fromkeys(text, "category"))
    # More categories than occur, the unused ones before those used.
    categorical["job"] = pd.Categorical(table["job"].to_pylist(), ["zz", "c", "b", "a", "other"])
    pyarrow.parquet.write_table(table, folder / "table.parquet", row_group_size=97)
    pyarrow.parquet.write_table(encoded, folder / "encoded.parquet")
    pyarrow.feather.write_feather(table, folder / "table.arrow")
    numbers = table
    for name in ("member", "union"):  # CSV has no booleans
        place = table.column_names.index(name)
        numbers = numbers.set_column(place, name, table[name].cast(pa.int8()))
    pyarrow.csv.write_csv(numbers, folder / "table.csv")
    return {
        "Arrow": table,
        "dictionaries": encoded,
        "small batches": ArrowSource(TableBatches(encoded, 7)),
        "pandas": frame,
        "pandas objects": table.to_pandas(integer_object_nulls=True),
        "categoricals": categorical,
        "Polars": pl.from_arrow(table),
        "Polars categoricals": pl.DataFrame(table).with_columns(pl.col(*text).cast(pl.Categorical)),
        "Parquet": folder / "table.parquet",
        "Parquet of dictionaries": folder / "encoded.parquet",
        "Feather": folder / "table.arrow",
        "CSV": folder / "table.csv",
    }


def same(found: Sums, expected: Sums) -> bool:
    return (
        (found.missing, found.unlisted) == (expected.missing, expected.unlisted)
        and np.array_equal(found.sizes, expected.sizes)
        and np.array_equal(found.parts[0], expected.parts[0])
    )


@pytest.mark.parametrize("gaps", [False, True])
def test_every_local_table_has_the_integers_of_the_oracle(gaps: bool, tmp_path: Path) -> None:
    for asked in (plan(gaps), plan(gaps, group=True)):
        expected = reference_sums(TABLES[gaps].to_pylist(), asked)
        assert expected.sizes.sum() > ROWS / 2
        for name, form in forms(TABLES[gaps], tmp_path).items():
            source = form if isinstance(form, ArrowSource) else open_source(form)
            source.check(tuple(asked.numeric), tuple(code.column for code in asked.codes))
            assert same(source.sum(asked), expected), name


def test_integers_are_in_one_unit() -> None:
    """Every component, divided by the unit, is the plain sum in the box up to the lattice."""
    table, asked = TABLES[False], plan(False)
    sums = open_source(table).sum(asked).parts[0]
    values = find_privacy(STATISTIC.kind).integers(STATISTIC, sums)[:, 0] * STATISTIC.units
    frame = table.to_pandas()
    parts = {c: frame[c].astype(float).clip(b.lower, b.upper) for c, b in BOUNDS.items()}
    ends = {("age", "age"): (18**2, 70**2), ("age", "member", "wage"): (-5 * 70, 40 * 70)}
    boxed = []
    for column in STATISTIC.numeric:
        low, high = ends.get(column, (BOUNDS[column[0]].lower, BOUNDS[column[0]].upper))
        product = np.prod([parts[c] for c in column], axis=0)
        boxed.append((product - (low + high) / 2) / ((high - low) / 2))
    for block, place in zip(STATISTIC.blocks, STATISTIC.slices, strict=True):
        product = np.prod([boxed[i] for i in block.product], axis=0) * np.ones(ROWS)
        within = [STATISTIC.factors[f] for f in block.within]
        shape = STATISTIC.shape(block)
        expected = np.zeros(shape)
        for row in range(ROWS):
            cell = tuple(LEVELS[f].index(frame[f][row]) for f in within)
            expected[cell] += product[row]
        np.testing.assert_allclose(values[place].reshape(shape), expected, atol=ROWS * 2.0**-14)


def test_a_product_with_unusable_bounds_is_refused() -> None:
    for power, upper in ((2, 1e100), (2, 1e-100), (8, 1e140)):
        statistic = CellSums((("a",) * power,), {}, (CellSum((0,), ()),))
        with pytest.raises(ArgumentError, match=rf"bounds: those of a\^{power} lie beyond"):
            find_privacy(statistic.kind).part(statistic, PublicColumns({"a": Bounds(0, upper)}))


def test_dates_are_days(tmp_path: Path) -> None:
    """In every kind of table, and also with a time of day."""
    moments = [
        datetime(1969, 12, 31, 23, 59, 59),
        datetime(1970, 1, 1),
        datetime(2001, 5, 17, 8, 30),
    ]
    moments += [datetime(1931, 1, 1, 0, 0, 1), datetime(2024, 2, 29)]
    statistic = CellSums(
        (("born",), ("born", "born")), {}, (CellSum((0, 1), ()), CellSum((0,), ()))
    )
    public = PublicColumns({"born": Bounds(-14_000, 15_000)})
    asked = SumPlan((find_privacy(statistic.kind).part(statistic, public),))
    for rows in (moments, [moment.date() for moment in moments]):
        table = pa.table({"born": pa.array([*rows, None])})
        pyarrow.parquet.write_table(table, tmp_path / "dates.parquet")
        pyarrow.csv.write_csv(table, tmp_path / "dates.csv")
        table.to_pandas().to_csv(tmp_path / "pandas.csv")
        tables = {
            "Arrow": table,
            "nanoseconds": table.cast(pa.schema([("born", pa.timestamp("ns"))])),
            "pandas": table.to_pandas(),
            "Polars": pl.from_arrow(table),
            "Parquet": tmp_path / "dates.parquet",
            "CSV": tmp_path / "dates.csv",
            "CSV of pandas": tmp_path / "pandas.csv",
        }
        expected = reference_sums([{"born": moment} for moment in [*rows, None]], asked)
        for name, form in tables.items():
            assert same(open_source(form).sum(asked), expected), name


def test_what_is_no_date_is_no_number(tmp_path: Path) -> None:
    for cell in ("2001-02-30", "2001-13-01", "2001-05-17 25:00", "17.05.2001", "2001-05-17Z"):
        (tmp_path / "dates.csv").write_text(f"born,x\n2001-05-17,1\n{cell},1\n")
        asked = SumPlan((ProductSums((boxed("born", Bounds(0, 20_000), bits=15),), ((0,),)),))
        with pytest.raises(DataError, match="column 'born' holds something that is not a number"):
            open_source(tmp_path / "dates.csv").sum(asked)

"""One table in many forms: every reader must give the same exact sums."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from noisewise.artifact import Bounds, Gram
from noisewise.privacy.lattice import Coded, Outside, Outward, boxed, scaled
from noisewise.privacy.sources import arrow, arrow_datasets, open_source
from noisewise.privacy.sources.arrow import ArrowSource, TableBatches
from noisewise.privacy.sum_plan import CellCounts, Histogram, ProductSums, SumPlan, Sums
from tests.reference.sums_reference import reference_sums

ROWS = 300
NUMBERS = ("income", "share", "price", "visits", "smoker")
BOUNDS = {
    "income": Bounds(-3.0, 40.0),
    "share": Bounds(0.0, 1.0),
    "price": Bounds(0.0, 9.9),
    "visits": Bounds(0, 6),
    "smoker": Bounds(0, 1),
}


def table() -> pa.Table:
    """Decimal, float32, integer and boolean columns; text and whole-number levels; NULLs."""
    rng = np.random.default_rng(3)
    hole = rng.random((3, ROWS)) < 0.04
    cents = rng.integers(0, 1200, ROWS)
    return pa.table(
        {
            "income": pa.array(rng.normal(15, 12, ROWS), mask=hole[0]),
            "share": pa.array((rng.integers(0, 65, ROWS) / 64).astype(np.float32)),
            "price": pa.array([Decimal(int(c)) / 100 for c in cents], pa.decimal128(8, 2)),
            "visits": pa.array(rng.integers(-1, 9, ROWS), pa.int32(), mask=hole[1]),
            "smoker": pa.array(rng.random(ROWS) < 0.3),
            "region": pa.array(rng.choice(["north", "NA", "süd"], ROWS), mask=hole[2]),
            "tract": pa.array(rng.integers(0, 3, ROWS)),
            "note": pa.array(["free text, never read"] * ROWS),
        }
    )


def plan() -> SumPlan:
    boxes = tuple(boxed(c, BOUNDS[c], bits=15) for c in NUMBERS)
    more = (
        scaled("income", BOUNDS["income"], bits=15, origin=0.0, scale=64.0, outside="drop"),
        Outside("visits", 0, 6),
    )
    levels = (Coded("region", ("north", "NA", "süd")), Coded("smoker", (0, 1)))
    return SumPlan(
        (
            ProductSums(boxes, Gram(NUMBERS, count=True).products),
            ProductSums(more, ((0,), (0, 0), (1,))),
            CellCounts(levels, ((0, 1), (0,))),
            Histogram(boxed("share", BOUNDS["share"], bits=5)),
            Histogram(Outward("income", (-8.0, -1.0, 0.0, 0.5, 2.0, 64.0), 2)),
        ),
        Coded("tract", (2, 0, 1, 9)),
    )


TABLE = table()
PLAN = plan()
EXPECTED = reference_sums(TABLE.to_pylist(), PLAN)


def assert_equal(found: Sums, expected: Sums = EXPECTED) -> None:
    for mine, theirs in zip(found.parts, expected.parts, strict=True):
        assert mine.dtype == np.int64
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(found.sizes, expected.sizes)
    assert (found.missing, found.unlisted) == (expected.missing, expected.unlisted)


def summed(source: Any, **more: Any) -> Sums:
    reader = open_source(source)
    reader.check(NUMBERS, ("region", "tract", "smoker"))
    return reader.sum(PLAN, **more)


def test_the_table_has_what_it_takes() -> None:
    assert EXPECTED.missing == ("income", "region", "visits")
    assert EXPECTED.sizes.min() == 0  # a listed group without records
    assert 0 < EXPECTED.sizes.sum() < ROWS
    assert all(part.any() for part in EXPECTED.parts)


# -- files -----------------------------------------------------------------------------------------


def as_csv(folder: Path) -> str:
    pyarrow.csv.write_csv(TABLE, folder / "people.csv")
    return str(folder / "people.csv")


def as_parquet(folder: Path) -> Path:
    pq.write_table(TABLE, folder / "people.parquet", row_group_size=37)
    return folder / "people.parquet"


def as_feather(folder: Path) -> str:
    pyarrow.feather.write_feather(TABLE, folder / "people.feather")
    return str(folder / "people.feather")


def as_parts(folder: Path) -> str:
    for i, start in enumerate(range(0, ROWS, 70)):
        pq.write_table(TABLE.slice(start, 70), folder / f"part-{i}.parquet")
    return str(folder / "part-*.parquet")


def as_folder(folder: Path) -> Path:
    as_parts(folder)
    (folder / "readme.txt").write_text("not a table")
    return folder


def as_csv_parts(folder: Path) -> str:
    """Parts whose columns stand in different orders."""
    first, second = TABLE.slice(0, 100), TABLE.slice(100).select(TABLE.column_names[::-1])
    pyarrow.csv.write_csv(first, folder / "a.csv")
    pyarrow.csv.write_csv(second, folder / "b.csv")
    return str(folder / "*.csv")


def as_parts_of_many_types(folder: Path) -> str:
    """Each file by its own schema: a part without NULLs in integers, the next with floats."""
    wide = {"visits": pa.float64(), "smoker": pa.int8(), "tract": pa.int16(), "price": pa.float64()}
    other = TABLE.slice(100)
    for name, kind in wide.items():
        place = other.column_names.index(name)
        other = other.set_column(place, name, pc.cast(other[name], kind))
    other = other.set_column(5, "region", other["region"].dictionary_encode())
    pq.write_table(TABLE.slice(0, 100), folder / "0.parquet")
    pq.write_table(other, folder / "1.parquet")
    return str(folder / "?.parquet")


# -- in memory -------------------------------------------------------------------------------------


def as_pandas(_: Path) -> pd.DataFrame:
    frame: pd.DataFrame = TABLE.to_pandas()
    return frame


def as_nullable_pandas(_: Path) -> pd.DataFrame:
    """Int64, Float64, boolean and string with NA; in an index that is not 0, 1, 2."""
    frame = as_pandas(_).convert_dtypes()
    assert str(frame["visits"].dtype) == "Int64"
    return frame.set_index(pd.Index(range(ROWS, 0, -1)))


def as_arrow_backed_pandas(_: Path) -> pd.DataFrame:
    frame: pd.DataFrame = TABLE.to_pandas(types_mapper=pd.ArrowDtype)
    return frame


def as_object_pandas(_: Path) -> pd.DataFrame:
    return pd.DataFrame(TABLE.to_pylist()).astype(object)


def as_categorical_pandas(_: Path) -> pd.DataFrame:
    """Categories of text, and of numbers that are summed."""
    frame = as_pandas(_)
    return frame.astype({"region": "category", "tract": "category", "smoker": "category"})


def as_polars(_: Path) -> pl.DataFrame:
    frame = pl.from_arrow(TABLE)
    assert isinstance(frame, pl.DataFrame)
    return frame


def as_categorical_polars(_: Path) -> pl.DataFrame:
    """With a column of a type that Arrow does not know, which nobody asks for."""
    frame = as_polars(_).with_columns(pl.col("region").cast(pl.Categorical))
    return frame.with_columns(pl.lit(1).cast(pl.Int128).alias("huge"))


def as_lazy_polars(_: Path) -> pl.LazyFrame:
    return as_polars(_).lazy().with_columns(pl.col("tract") * 1)


def as_dictionaries(_: Path) -> pa.Table:
    encoded = TABLE
    for name in ("region", "tract", "visits", "share"):
        place = encoded.column_names.index(name)
        encoded = encoded.set_column(place, name, encoded[name].dictionary_encode())
    return encoded


def as_chunks(_: Path) -> pa.Table:
    return pa.concat_tables(
        [TABLE.slice(0, 1), TABLE.slice(1, 0), TABLE.slice(1, 200), TABLE[201:]]
    )


def as_record_batch(_: Path) -> pa.RecordBatch:
    (batch,) = TABLE.combine_chunks().to_batches()
    return batch


def as_dataset(folder: Path) -> ds.Dataset:
    as_parts(folder)
    return ds.dataset(folder, format="parquet")


def as_memory_dataset(_: Path) -> ds.Dataset:
    return ds.dataset(TABLE)


FORMS: list[Callable[[Path], Any]] = [
    as_csv,
    as_parquet,
    as_feather,
    as_parts,
    as_folder,
    as_csv_parts,
    as_parts_of_many_types,
    as_pandas,
    as_nullable_pandas,
    as_arrow_backed_pandas,
    as_object_pandas,
    as_categorical_pandas,
    as_polars,
    as_categorical_polars,
    as_lazy_polars,
    as_dictionaries,
    as_chunks,
    as_record_batch,
    as_dataset,
    as_memory_dataset,
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__.removeprefix("as_"))
def test_every_form_gives_the_same_sums(form: Callable[[Path], Any], tmp_path: Path) -> None:
    assert_equal(summed(form(tmp_path)))


def test_a_subclass_of_a_data_frame_is_one() -> None:
    class Survey(pd.DataFrame):
        pass

    assert_equal(summed(Survey(as_pandas(Path()))))


# -- what must not matter --------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 7, ROWS, 10 * ROWS])
def test_the_size_of_batches_does_not_matter(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_equal(ArrowSource(TableBatches(TABLE, rows)).sum(PLAN))
    for module in (arrow, arrow_datasets, "noisewise.privacy.sources.data_frames"):
        where = module if isinstance(module, str) else module.__name__
        monkeypatch.setattr(f"{where}.BATCH_ROWS", rows)
    assert_equal(summed(as_pandas(tmp_path)))
    assert_equal(summed(as_polars(tmp_path)))
    assert_equal(summed(as_parquet(tmp_path)))


@pytest.mark.parametrize("seed", [0, 1])
def test_the_order_of_rows_does_not_matter(seed: int, tmp_path: Path) -> None:
    order = np.random.default_rng(seed).permutation(ROWS)
    shuffled = TABLE.take(pa.array(order))
    assert_equal(summed(shuffled))
    pyarrow.csv.write_csv(shuffled, tmp_path / "shuffled.csv")
    assert_equal(summed(tmp_path / "shuffled.csv"))


@pytest.mark.parametrize("form", [as_csv, as_parquet, as_parts, as_pandas, as_polars])
def test_progress_ends_at_the_last_row(form: Callable[[Path], Any], tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    assert_equal(summed(form(tmp_path), progress=lambda *rows: told.append(rows)))
    assert told[-1][0] == ROWS
    assert told[-1][1] in (ROWS, None)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_table_can_be_read_twice(tmp_path: Path) -> None:
    for form in (as_csv, as_parts, as_lazy_polars, as_dataset):
        folder = tmp_path / form.__name__
        folder.mkdir()
        reader = open_source(form(folder))
        assert_equal(reader.sum(PLAN))
        assert_equal(reader.sum(PLAN))


# -- how text is read ------------------------------------------------------------------------------


def counted(path: Path, *levels: str | int) -> list[int]:
    code = Coded("a", levels)
    sums = open_source(path).sum(SumPlan((CellCounts((code,), ((0,),)),)))
    assert not sums.unlisted
    return [int(n) for n in sums.parts[0][:, 0]]


@pytest.mark.parametrize(
    ("lines", "levels", "counts"),
    [
        (["1", "0", "1"], (0, 1), [1, 2]),
        (["1.0", "0.0", "1"], (0, 1), [1, 2]),
        (["True", "false", "TRUE"], (0, 1), [1, 2]),
        (["01", "02", "01"], ("01", "02"), [2, 1]),
        (["NA", "EU", "NA"], ("NA", "EU"), [2, 1]),
        (["NA", "1", "0"], (0, 1), [1, 1]),
        (['"a,b"', "c", '"a,b"'], ("a,b", "c"), [2, 1]),
        (["nan", "x", "null"], ("x", "y"), [1, 0]),
    ],
)
def test_levels_in_csv(
    lines: list[str], levels: tuple[Any, ...], counts: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "levels.csv"
    path.write_text("\n".join(["a", *lines, ""]))
    assert counted(path, *levels) == counts


def test_numbers_in_csv(tmp_path: Path) -> None:
    """Spellings of numbers and of nothing, a byte-order mark, Windows line ends, an odd column."""
    path = tmp_path / "numbers.csv"
    lines = ["x,odd", "1,a", "2.5,b", "1e1,", "NA,1", ",2", "nan,3", "inf,4", "-inf,5", ""]
    path.write_text("\ufeff" + "\r\n".join(lines), encoding="utf-8")
    feature = scaled("x", Bounds(0, 16), bits=1, origin=0.0, scale=1.0)
    sums = open_source(path).sum(SumPlan((ProductSums((feature,), ((0,), ())),)))
    assert sums.parts[0][:, 0].tolist() == [2 + 5 + 20 + 32 + 0, 5]
    assert sums.missing == ("x",)


def test_levels_held_as_floats() -> None:
    """Zero has two signs, and is one level; NaN is missing."""
    held = pa.table({"a": [-0.0, 0.0, 1.0, float("nan"), None]})
    sums = open_source(held).sum(SumPlan((CellCounts((Coded("a", (1, 0)),), ((0,),)),)))
    assert sums.parts[0][:, 0].tolist() == [1, 2]
    assert (sums.missing, sums.unlisted) == (("a",), ())


def test_decimals_are_rounded_correctly() -> None:
    rng = np.random.default_rng(4)
    values = [Decimal(int(u)).scaleb(-4) for u in rng.integers(-(10**12), 10**12, 2000)]
    decimals = pa.table({"x": pa.array(values, pa.decimal128(20, 4))})
    feature = boxed("x", Bounds(-1e9, 1e9), bits=15)
    ((batch, _),) = open_source(decimals).stream(SumPlan((ProductSums((feature,), ((0,),)),)))
    assert batch["x"].tolist() == [float(value) for value in values]


def test_a_path_may_start_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_parquet(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert_equal(summed("~/people.parquet"))

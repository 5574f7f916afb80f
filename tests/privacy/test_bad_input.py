"""Data that do not fit are refused by column, before any spend, without quoting a record."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import noisewise as nw
from tests.privacy.refusals import (
    GOOD,
    NUMBER,
    SECRET,
    everything_said,
    family,
    people,
    regression,
    tables,
)

Refused = Callable[..., str]


def test_the_search_for_secrets_finds_them() -> None:
    """In the context too, though "from None" hides it from a traceback."""

    def careless() -> None:
        try:
            float(SECRET)
        except ValueError:
            raise nw.DataError("a value is not a number") from None

    with pytest.raises(nw.DataError) as caught:
        careless()
    assert SECRET in everything_said(caught.value)


def test_the_good_table_is_released() -> None:
    assert regression(people()).n == 3
    assert family(people()).n == 3
    assert tables(people()).n == 3


# -- columns that do not fit -----------------------------------------------------------------------


class Revealing:
    """An object whose representation is a secret."""

    def __repr__(self) -> str:
        return SECRET


def test_a_missing_column_is_named(refused: Refused) -> None:
    message = refused(nw.DataError, regression, people().drop(columns="y"))
    assert "'y' is not in the data frame; it has: 'x', 'g', 't'" in message


def test_columns_without_a_text_for_a_name(refused: Refused) -> None:
    frame = pd.DataFrame({0: [0.5], 1: [NUMBER]})
    bounds = {"0": (0, 1), "1": (0, 1)}
    message = refused(nw.DataError, regression, frame, x="0", y="1", bounds=bounds)
    assert "no column is named by a text" in message


def test_a_wide_table_does_not_fill_the_screen(refused: Refused) -> None:
    wide = pd.DataFrame(np.zeros((1, 500)), columns=[f"c{i}" for i in range(500)])
    assert refused(nw.DataError, regression, wide).endswith("'c19' and 480 more")


def test_a_column_that_stands_twice(refused: Refused) -> None:
    frame = pd.DataFrame([[0.5, 0.5, NUMBER]], columns=["x", "x", "y"])
    arrays = [pa.array([0.5]), pa.array([0.5]), pa.array([NUMBER])]
    table = pa.Table.from_arrays(arrays, names=["x", "x", "y"])
    for source in (frame, table):
        assert "'x' stands twice" in refused(nw.DataError, regression, source)


UNREADABLE: dict[str, Any] = {
    "str": pd.Series(["1", SECRET, "2"]),
    "object of text": pd.Series(["1", SECRET, "2"], dtype=object),
    "object mixed": pd.Series([1.0, SECRET, NUMBER], dtype=object),
    "object text first": pd.Series([SECRET, 1, NUMBER], dtype=object),
    "object of objects": pd.Series([Revealing(), Revealing(), 1], dtype=object),
    "object of sets": pd.Series([{SECRET}, {1}, {NUMBER}], dtype=object),
    "object of bytes": pd.Series([SECRET.encode(), b"", b""], dtype=object),
    "lone surrogate": pd.Series(["\ud800" + SECRET, "a", "b"], dtype=object),
    "integers too large": pd.Series([1, 7291 * 10**30, 2], dtype=object),
    "decimals and floats": pd.Series([Decimal("7291.125"), 0.5, 1], dtype=object),
    "complex": pd.Series([NUMBER + 1j, 0, 1]),
    "time of a zone": pd.to_datetime(["7291-01-01", "2000-01-01", "2001-01-01"], utc=True),
    "length of time": pd.to_timedelta([NUMBER, 1, 2], unit="s"),
    "categories of text": pd.Categorical(["a", SECRET, "a"]),
    "sparse": pd.arrays.SparseArray([NUMBER, 0.0, 0.0]),
}


@pytest.mark.parametrize("column", UNREADABLE.values(), ids=UNREADABLE)
def test_a_pandas_column_that_is_not_numeric(column: Any, refused: Refused) -> None:
    assert "column 'y'" in refused(nw.DataError, regression, people(y=column))


@pytest.mark.parametrize("name", ["complex", "sparse", "object mixed", "lone surrogate"])
def test_a_column_that_nobody_asks_for_may_hold_anything(name: str) -> None:
    assert regression(people(z=UNREADABLE[name])).n == 3


def arrow_text() -> pa.Table:
    return pa.table({**GOOD, "y": ["1", SECRET, "2"]})


def arrow_lists() -> pa.Table:
    return pa.table({**GOOD, "y": [[NUMBER], [1.0], []]})


def polars_text() -> pl.DataFrame:
    return pl.DataFrame({**GOOD, "y": ["1", SECRET, "2"]})


def polars_objects() -> pl.DataFrame:
    return pl.DataFrame({**GOOD, "y": pl.Series([Revealing()] * 3, dtype=pl.Object)})


@pytest.mark.parametrize("table", [arrow_text, arrow_lists, polars_text, polars_objects])
def test_an_arrow_or_polars_column_that_is_not_numeric(
    table: Callable[[], Any], refused: Refused
) -> None:
    assert "column 'y' must be numeric" in refused(nw.DataError, regression, table())


def failing_cast() -> pl.LazyFrame:
    return polars_text().lazy().with_columns(pl.col("y").cast(pl.Float64))


def failing_function() -> pl.LazyFrame:
    def fail(_: pl.DataFrame) -> pl.DataFrame:
        raise ValueError(SECRET)

    return pl.LazyFrame(GOOD).map_batches(fail)


def failing_plan() -> pl.LazyFrame:
    return pl.LazyFrame(GOOD).with_columns(pl.col(SECRET))


@pytest.mark.parametrize("frame", [failing_cast, failing_plan])
def test_a_lazy_frame_that_fails(frame: Callable[[], pl.LazyFrame], refused: Refused) -> None:
    message = refused(nw.SourceError, regression, frame())
    assert "what Polars said is withheld" in message


def test_a_lazy_frame_with_a_function_of_its_owners(refused: Refused) -> None:
    message = refused(nw.ArgumentError, regression, failing_function())
    assert "cannot be looked into (`.collect()` it first)" in message


NO_SOURCES = [
    *[None, 5, b"people.csv", [1], {"x": [1]}, np.ones((2, 2)), pd.Series([NUMBER])],
    *[pa.array([NUMBER]), pl.Series([NUMBER]), pl.col("x"), pa.table(GOOD).to_reader()],
    *[people().groupby("g"), pl.LazyFrame(GOOD).group_by("g")],
]


@pytest.mark.parametrize("source", NO_SOURCES, ids=lambda source: type(source).__name__)
def test_sources_of_no_known_kind(source: Any, refused: Refused) -> None:
    message = refused(nw.ArgumentError, regression, source)
    assert message.startswith(f"source: {type(source).__name__} is not accepted; give a path")


# -- missing values and values outside a public list -----------------------------------------------


@pytest.mark.parametrize("hole", [None, np.nan], ids=["NULL", "NaN"])
def test_missing_numbers(hole: Any, refused: Refused) -> None:
    frame = people(x=[0.25, hole, NUMBER])
    assert "'x' has missing values" in refused(nw.DataError, regression, frame)
    assert "'x' has missing values" in refused(nw.DataError, family, frame)
    assert regression(frame, fill={"x": 0.5}).n == 3
    assert family(frame, fill=0.5).n == 3
    assert regression(frame, neighbours="add-remove").n is None


def test_missing_levels(refused: Refused) -> None:
    frame = people(t=["a", None, "b"])
    message = refused(nw.DataError, tables, frame)
    assert "'t' has missing values" in message
    assert "name a public fill, or use neighbours='add-remove'" in message
    assert tables(frame, fill={"t": "a"}).n == 3
    assert tables(frame, neighbours="add-remove").n is None


def test_a_missing_group_has_another_remedy(refused: Refused) -> None:
    frame, groups = people(g=[0.0, np.nan, 1.0]), {"g": [0, 1]}
    for words in ({}, {"sizes": "public"}):
        message = refused(nw.DataError, regression, frame, groups=groups, **words)
        assert "'g' has missing values" in message
        assert "put such records into a group of the list" in message
    assert regression(frame, groups=groups, neighbours="add-remove").n is None


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_values_outside_a_public_list(neighbours: str, refused: Refused) -> None:
    """Under either relation: a list that misses records would be a quiet loss."""
    words = {"neighbours": neighbours}
    text, whole = people(t=["a", SECRET, "b"]), people(g=[0, 7291, 1])
    assert "'t' holds a value outside its public list" in refused(
        nw.DataError, tables, text, **words
    )
    assert "'g' holds a value outside its public list" in refused(
        nw.DataError, regression, whole, groups={"g": [0, 1]}, **words
    )
    assert "'t' holds a value outside its public list" in refused(
        nw.DataError, regression, text, groups={"t": ["a", "b"]}, **words
    )
    levels = {"family": "categorical", "column": "t", "levels": ["a", "b"], "bounds": None}
    assert "'t' holds a value outside" in refused(nw.DataError, family, text, **levels, **words)
    fractions = people(g=[0.0, 0.5, NUMBER])
    assert "'g' holds a value outside" in refused(
        nw.DataError, regression, fractions, groups={"g": [0, 1]}, **words
    )


def test_a_list_of_another_type_than_the_column(refused: Refused) -> None:
    frame = people(t=["a", SECRET, "b"], g=[0, 7291, 1])
    message = refused(nw.DataError, tables, frame, levels={"t": [0, 1]}, other={"t": 1})
    assert message == "column 't' holds text, but its public list is of whole numbers"
    message = refused(nw.DataError, regression, frame, groups={"g": ["a", "b"]})
    assert message == "column 'g' holds numbers, but its public list is of text"
    for words in ({"levels": {"t": [0, 1]}}, {"levels": {"g": ["0", "1"]}, "cliques": ["g"]}):
        message = refused(nw.DataError, tables, frame, **words)
        assert "holds a value outside its public list" in message
    mixed = people(t=pd.Series(["a", 7291, SECRET], dtype=object))
    assert "column 't'" in refused(nw.DataError, tables, mixed)


def test_whole_numbers_beyond_64_bits_are_not_on_the_list(refused: Refused) -> None:
    huge = pa.table({"t": pa.array([0, 2**64 - 7291], pa.uint64())})
    assert "column 't'" in refused(nw.DataError, tables, huge, levels={"t": [0, 1]})


# -- rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [regression, family, tables])
def test_an_empty_table(make: Callable[..., nw.Release], refused: Refused) -> None:
    nobody = people().iloc[:0].astype({"t": str})
    assert "no rows" in refused(nw.DataError, make, nobody)
    assert make(nobody, neighbours="add-remove").n is None


def test_more_rows_than_the_lattice_allows(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noisewise.privacy.sums.MAX_ROWS", 2)
    assert "more than 2 rows" in refused(nw.DataError, regression, people())
    incomplete = people(x=[np.nan] * 3)
    assert "more than 2 rows" in refused(
        nw.DataError, regression, incomplete, neighbours="add-remove"
    )

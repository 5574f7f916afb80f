"""Every engine, and the local path, gives the very integers of the one-record-at-a-time oracle."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noisewise import datasets
from noisewise.artifact import Bounds, DataError
from noisewise.privacy import sum_plan
from noisewise.privacy.lattice import Coded, Multiplicand, Outside, Scaled, ScaledProduct, boxed
from noisewise.privacy.sources import open_source, pushdown
from noisewise.privacy.sources.arrow import ArrowSource, TableBatches
from noisewise.privacy.sum_plan import CellCounts, ProductSums, SumPlan, Sums
from tests.documents import ROOT, run
from tests.engines.engines import ENGINES
from tests.engines.plans import PLANS, assert_same, cells, gram, histogram
from tests.engines.table import CITIES, CODES, TRACTS, nasty, shuffled
from tests.reference.sums_reference import reference_sums

# Spark's own Python never closes the sockets its answers come through.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.*127.0.0.1:ResourceWarning")

ROWS = 3_000
PATHS = ("arrow", *ENGINES)
# Spark takes seconds over what the others do at once: a few plans show that it agrees, `make
# evidence` shows it for all.
QUICK = (*PATHS[:-1], pytest.param("spark", marks=pytest.mark.evidence))
QUICK_ON_SPARK = ("edges", "all, grouped", "all, filled", "interactions, grouped")
CASES = [
    pytest.param(name, path, marks=[pytest.mark.evidence] * slow)
    for name in PLANS
    for path in PATHS
    for slow in [path == "spark" and name not in QUICK_ON_SPARK]
]
EMPTY = nasty(1).slice(0, 0)
PRICES = pa.array([f"1.6{i:016d}" for i in range(0, 360_000, 997)])
DECIMALS = pa.table({"price": PRICES.cast(pa.decimal128(18, 17))})
DAYS = np.random.default_rng(6).integers(-40_000, 40_000, 400) * 86_400_000_000
TIMES = pa.array(np.random.default_rng(7).integers(-10 * 86_400 * 10**6, 10 * 86_400 * 10**6, 400))
DATES = pa.table(
    {
        "born": pa.array(DAYS, mask=DAYS % 7 == 1).cast(pa.timestamp("us")).cast(pa.date32()),
        "seen": pa.concat_arrays([pa.array([None, 0, -1, 1]), TIMES[4:]]).cast(pa.timestamp("us")),
        "zoned": TIMES.cast(pa.timestamp("us", "UTC")),
    }
)


@cache
def table(*, mixed: bool = False, unlisted: bool = False) -> pa.Table:
    made = nasty(ROWS, unlisted=unlisted)
    return shuffled(made) if mixed else made


@cache
def oracle(name: str) -> Sums:
    return reference_sums(table().to_pylist(), PLANS[name])


@pytest.mark.parametrize(("name", "path"), CASES)
def test_integers_are_the_oracles(load: Any, name: str, path: str) -> None:
    assert oracle(name).sizes.sum() > ROWS / 10  # the plan is not empty of records
    assert_same(load(path, table()).sum(PLANS[name]), oracle(name))


@pytest.mark.parametrize("path", QUICK)
def test_the_order_of_records_does_not_matter(load: Any, path: str) -> None:
    name = "all, grouped"
    assert_same(load(path, table(mixed=True)).sum(PLANS[name]), oracle(name))


@pytest.mark.parametrize("path", QUICK)
def test_unlisted_values_drop_the_record_and_name_the_column(load: Any, path: str) -> None:
    source = load(path, table(unlisted=True))
    plan = SumPlan((gram(fill=True), cells(fill=False)), Coded("tract", TRACTS))
    expected = reference_sums(table(unlisted=True).to_pylist(), plan)
    assert expected.unlisted == ("city", "code", "grade", "tract")
    assert_same(source.sum(plan), expected)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", [pytest.param(int, marks=pytest.mark.evidence), str])
def test_more_groups_than_the_list_knows(load: Any, path: str, kind: type) -> None:
    """Then the keys are not all fetched: the list goes to the engine instead."""
    records = crowd(kind)
    listed = tuple(kind(key) for key in range(0, 300, 2))
    plan = SumPlan((gram(fill=False), histogram()), Coded("crowd", listed))
    expected = reference_sums(records.to_pylist(), plan)
    assert expected.unlisted == ("crowd",)
    assert len(expected.missing) > 2
    assert_same(load(path, records).sum(plan), expected)


@pytest.mark.parametrize("path", QUICK)
def test_a_long_list_of_categories(load: Any, path: str) -> None:
    records = crowd(str)
    code = Coded("crowd", tuple(str(key) for key in range(400)), fill="0")
    plan = SumPlan((gram(fill=False), CellCounts((code,), ((0,),))))
    expected = reference_sums(records.to_pylist(), plan)
    assert_same(load(path, records).sum(plan), expected)


@cache
def crowd(kind: type) -> pa.Table:
    """The table with a further key of a thousand values."""
    keys = np.random.default_rng(2).integers(0, 1000, ROWS)
    column = pa.array([None if key == 999 else kind(key) for key in keys])
    return nasty(ROWS).append_column("crowd", column)


@pytest.mark.parametrize("name", ["all, grouped", "interactions, grouped"])
def test_more_sums_than_fit_into_one_answer(
    load: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(pushdown, "MAX_SUMS_PER_QUERY", 4)
    assert_same(load("duckdb", table()).sum(PLANS[name]), oracle(name))


@pytest.mark.parametrize("path", PATHS[:-1])
def test_cells_too_many_to_be_summed_all_together(
    load: Any, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(sum_plan, "MAX_JOINT_CELLS", 0)
    for name in ("three factors", "interactions, filled", "interactions, grouped"):
        assert_same(load(path, table()).sum(PLANS[name]), oracle(name))


@pytest.mark.parametrize("path", PATHS)
def test_a_filled_column_counts_every_record(load: Any, path: str) -> None:
    """From which the number of records left out follows."""
    gaps = pa.table({"x": pa.array([1.5, None, 7.0, None, None]), "y": [1.0, None, 2.0, 3.0, 4.0]})
    everyone = SumPlan((ProductSums((Outside("x", 0.0, 1.0, 0.0),), ((),)),))
    complete = SumPlan((ProductSums((Outside("x", 0.0, 1.0), Outside("y", 0.0, 1.0)), ((),)),))
    source = load(path, gaps)
    assert [source.sum(p).sizes.tolist() for p in (everyone, complete)] == [[5], [2]]


@pytest.mark.parametrize("path", QUICK)
def test_an_empty_table_sums_to_zero(load: Any, path: str) -> None:
    found = load(path, EMPTY).sum(PLANS["all, grouped"])
    assert not found.sizes.any()
    assert not any(part.any() for part in found.parts)
    assert found.missing == found.unlisted == ()


@pytest.mark.parametrize("path", QUICK)
def test_decimals_are_rounded_once(load: Any, path: str) -> None:
    """On a lattice as fine as the floats themselves, one ulp more or less is one step."""
    feature = Scaled("price", 1.6, 1.6 + 2.0**-38, 1.6, 2.0**52, 0, 2**14)
    plan = SumPlan((ProductSums((feature,), ((0,),)),))
    assert_same(load(path, DECIMALS).sum(plan), reference_sums(DECIMALS.to_pylist(), plan))


@pytest.mark.parametrize("path", QUICK)
def test_dates_are_days(load: Any, path: str) -> None:
    features = (
        boxed("born", Bounds(-20_000, 12_000), bits=15),
        boxed("seen", Bounds(-9, 9), bits=15),
    )
    days = ScaledProduct(
        (Multiplicand("born", -20_000, 12_000), Multiplicand("seen", -9, 9)),
        boxed("", Bounds(-180_000, 180_000), bits=15),
    )
    plan = SumPlan((ProductSums((*features, days), ((0,), (1,), (0, 1), (1, 1), (2, 2))),))
    assert_same(load(path, DATES).sum(plan), reference_sums(DATES.to_pylist(), plan))
    dated = dataclasses.replace(plan, dated=dict.fromkeys(plan.numeric, True))
    assert_same(load(path, DATES).sum(dated), reference_sums(DATES.to_pylist(), plan))
    with pytest.raises(DataError, match="'seen' holds dates, but its bounds are numbers"):
        load(path, DATES).sum(dataclasses.replace(plan, dated={"seen": False}))
    numbers = SumPlan((gram(fill=True),), dated={"height": True})
    with pytest.raises(DataError, match="'height' holds numbers, but its bounds are dates"):
        load(path, table()).sum(numbers)
    if path != "spark":  # there a time of a zone has the day of the session's zone
        with pytest.raises(
            DataError, match="'zoned' must be numeric, but holds dates and times of"
        ):
            load(path, DATES).check(("zoned",), ())
    with pytest.raises(DataError, match="'born' must hold text or whole numbers, but holds dates"):
        load(path, DATES).check((), ("born",))


def spelt(value: Any) -> Any:
    """A number as the text that names it; NaN and NULL are missing, other fractions no level."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool | str):
        return str(value)
    return str(int(value)) if math.isfinite(value) and value == int(value) else "no level"


@pytest.mark.parametrize("unlisted", [False, True])
@pytest.mark.parametrize("path", [*QUICK, "parquet"])
def test_levels_match_as_text_and_as_numbers(
    load: Any, path: str, unlisted: bool, tmp_path: Path
) -> None:
    """A list of texts with columns of numbers, and a list of numbers with a column of texts."""
    records = table(unlisted=unlisted)
    records = records.append_column("digits", records["code"].cast(pa.string()))
    if path == "parquet":
        pq.write_table(records, tmp_path / "table.parquet")
        source = open_source(tmp_path / "table.parquet")
    else:
        source = load(path, records)
    codes = (
        Coded("code", tuple(map(str, CODES)), other="7"),
        Coded("grade", ("gone", "2", "1", "0"), fill="gone", other="1"),
        Coded("smoker", ("False", "True"), fill="True"),
        Coded("tract", (*map(str, TRACTS), "x")),
    )
    numbers = Coded("digits", CODES, fill=CODES[0])
    parts = (CellCounts(codes, ((0, 1), (2, 3))), CellCounts((numbers,), ((0,),)))
    texts = Coded("digits", tuple(map(str, CODES)), fill=str(CODES[0]))
    oracle = (parts[0], CellCounts((texts,), ((0,),)))
    rows = [{c: spelt(v) for c, v in row.items()} for row in records.to_pylist()]
    for group, same_group in ((None, None), (numbers, texts)):
        expected = reference_sums(rows, SumPlan(oracle, same_group))
        assert expected.sizes.sum() > ROWS / 4
        assert_same(source.sum(SumPlan(parts, group)), expected)


@pytest.mark.parametrize("path", QUICK)
def test_streamed_columns_are_the_tables(load: Any, path: str) -> None:
    plan = PLANS["gram"]
    batches = [batch for batch, _ in load(path, table()).stream(plan)]
    for column in plan.numeric:
        found = np.concatenate([batch[column] for batch in batches])
        expected = table()[column].cast(pa.float64(), safe=False).to_numpy()
        assert found.dtype == np.float64
        np.testing.assert_array_equal(np.sort(found), np.sort(expected))


@pytest.mark.parametrize("path", PATHS)
def test_columns_are_checked(load: Any, path: str) -> None:
    source = load(path, table())
    source.check(("height", "age", "share", "flag"), ("city", "code", "grade", "smoker"))
    with pytest.raises(
        DataError, match="'nothing' is not in the table; it has: 'height', 'weight'"
    ):
        source.check(("nothing",), ())
    with pytest.raises(DataError, match="'city' must be numeric"):
        source.check(("city",), ())
    numbers = Coded("city", (1, 2), other=2)
    with pytest.raises(DataError, match="'city' holds text, but its public list is of whole"):
        source.sum(SumPlan((CellCounts((numbers,), ((0,),)),)))
    words = Coded("code", CITIES)
    with pytest.raises(DataError, match="'code' holds numbers, but its public list is of text"):
        source.sum(SumPlan((CellCounts((words,), ((0,),)),)))


@pytest.mark.evidence
def test_a_million_records_on_every_engine(load: Any) -> None:
    """All engines against the local path, which must not care about batches or order."""
    records = nasty(1_000_000, seed=4)
    for plan in PLANS.values():
        expected = ArrowSource(TableBatches(records)).sum(plan)
        for rows in (1_000, 2**17, 2**21):
            assert_same(ArrowSource(TableBatches(shuffled(records), rows)).sum(plan), expected)
        for engine in ENGINES:
            assert_same(load(engine, records).sum(plan), expected)


def test_the_guide_to_engines(
    postgres: Any, postgres_url: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/howto-engines.md, verbatim, against a real PostgreSQL and a real Spark."""
    people = datasets.social_mobility(tracts=3).select(["pir", "kir"])
    monkeypatch.chdir(tmp_path)
    pq.write_table(people, "people.parquet")
    visits: dict[str, Any] = {
        "user": [1, 1, 2],
        "place": ["café"] * 3,
        "device": ["phone", "kettle", "laptop"],
    }
    visits |= {"minutes": [5, 10, 600]}
    pq.write_table(pa.table(visits), "visits.parquet")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE guide_people (pir double precision, kir double precision)")
        with connection.cursor() as cursor:
            rows = zip(*(people[c].to_pylist() for c in ("pir", "kir")), strict=True)
            cursor.executemany("INSERT INTO guide_people VALUES (%s, %s)", list(rows))
    monkeypatch.setenv("PEOPLE_URL", f"{postgres_url}#guide_people")
    assert run(ROOT / "docs" / "howto-engines.md") == 5

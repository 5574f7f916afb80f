"""Filters, joins and the like: refused, or of every neighbour equal in what is public.

Finding 5 of the audit. For every way of deriving a table, on DuckDB and Polars by Ibis and on lazy
frames: either the release is refused, or over all neighbouring small tables the public parts are
equal and the exact sums differ by no more than the claimed sensitivity.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, Neighbours, Tables
from noisewise.artifact.sensitivity import sensitivity
from noisewise.privacy.lattice import Coded
from noisewise.privacy.selection import refuse_kept_records
from noisewise.privacy.sources import open_source
from noisewise.privacy.sum_plan import CellCounts, SumPlan

LEVELS = ("a", "b", "z")
PLAN = SumPlan((CellCounts((Coded("word", LEVELS, "z"),), ((0,),)),))
TABLES = Tables((("word",),), {"word": LEVELS})
RECORDS = tuple(itertools.product(("a", "b"), (0.0, 1.0)))
BOTH: tuple[Neighbours, ...] = ("replace-one", "add-remove")

Rows = tuple[tuple[str, float], ...]
Derive = Callable[[Any], Any]

WHOLE: dict[str, Derive] = {
    "itself": lambda t: t,
    "select": lambda t: t.select("word"),
    "mutate": lambda t: t.mutate(word=t.word.upper().lower(), y=t.x * 2),
    "rename": lambda t: t.rename(w="word").rename(word="w"),
    "cast": lambda t: t.cast({"x": "int64"}),
    "drop": lambda t: t.drop("x"),
    "fill_null": lambda t: t.fill_null({"word": "z"}),
    "order_by": lambda t: t.order_by("x"),
    "case": lambda t: t.mutate(word=ibis.ifelse(t.x > 0, t.word, "b")),
}
FILTERED: dict[str, Derive] = {
    "filter": lambda t: t.filter(t.x > 0),
    "filters": lambda t: t.filter(t.x > 0).select("word").filter(lambda u: u.word != "b"),
    "isin": lambda t: t.filter(t.word.isin(["a"])),
    "drop_null": lambda t: t.drop_null(),
}
UNSAFE: dict[str, Derive] = {
    "limit": lambda t: t.limit(2),
    "distinct": lambda t: t.distinct(),
    "sample": lambda t: t.sample(0.5),
    "union": lambda t: t.union(t),
    "intersect": lambda t: t.intersect(t.filter(t.x > 0)),
    "difference": lambda t: t.difference(t.filter(t.x > 0)),
    "join": lambda t: t.join(t.view(), "word"),
    "semi join": lambda t: t.semi_join(t.view(), "word"),
    "cross join": lambda t: t.cross_join(t.view()),
    "aggregate": lambda t: t.group_by("word").aggregate(n=t.count()),
    "window": lambda t: t.filter(t.x >= t.x.mean()),
    "window column": lambda t: t.mutate(r=ibis.row_number()),
    "lag": lambda t: t.mutate(word=t.word.lag()),
    "subquery": lambda t: t.filter(t.word.isin(t.view().word)),
    "scalar subquery": lambda t: t.filter(t.x > t.view().x.max()),
    "unnest": lambda t: t.mutate(u=ibis.array([1, 2]).unnest()),
    "random": lambda t: t.filter(ibis.random() > 0.5),
    "top": lambda t: t.order_by("x").limit(2),
    "below a filter": lambda t: t.distinct().filter(lambda u: u.x > 0),
    "random column": lambda t: t.mutate(x=ibis.random()),
}


def arrow(rows: Rows) -> pa.Table:
    words, numbers = [r[0] for r in rows], [r[1] for r in rows]
    return pa.table({"word": pa.array(words, pa.string()), "x": pa.array(numbers, pa.float64())})


def on_duckdb(rows: Rows) -> Any:
    return ibis.duckdb.connect().create_table("records", arrow(rows))


def on_polars(rows: Rows) -> Any:
    return ibis.polars.connect({"records": pl.from_arrow(arrow(rows))}).table("records")


def in_memory(rows: Rows) -> Any:
    return ibis.memtable(arrow(rows))


ENGINES = {"duckdb": on_duckdb, "polars": on_polars}


@functools.cache
def stored(engine: str, rows: Rows) -> Any:
    """A table that is only read, and so made once for all queries."""
    return ENGINES[engine](rows)


SMALL: tuple[Rows, ...] = ((), *((r,) for r in RECORDS), *itertools.product(RECORDS, RECORDS))


def refused(source: Any, neighbours: Neighbours) -> str:
    """The refusal, or nothing."""
    try:
        refuse_kept_records(open_source(source).kept_records(), neighbours)
    except ArgumentError as error:
        return str(error)
    return ""


def sums(source: Any) -> tuple[list[int], int]:
    found = open_source(source).sum(PLAN)
    return found.parts[0][:, 0].tolist(), int(found.sizes.sum())


def pairs(neighbours: Neighbours) -> list[tuple[Rows, Rows]]:
    """All neighbours of up to two records."""
    if neighbours == "add-remove":
        return [(t[:i] + t[i + 1 :], t) for t in SMALL for i in range(len(t))]
    return [
        (t, (*t[:i], other, *t[i + 1 :])) for t in SMALL for i in range(len(t)) for other in RECORDS
    ]


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_not_refused_is_stable(engine: str, neighbours: Neighbours) -> None:
    claim = sensitivity(TABLES, neighbours)
    for name, derive in {**WHOLE, **FILTERED, **UNSAFE}.items():
        if refused(derive(stored("duckdb", ())), neighbours):
            continue
        found = {t: sums(derive(stored(engine, t))) for t in SMALL}
        for one, other in pairs(neighbours):
            (cells, n), (others, m) = found[one], found[other]
            moved = sum(abs(a - b) for a, b in zip(cells, others, strict=True))
            assert moved <= claim.l1, name
            assert neighbours == "add-remove" or n == m, name


@pytest.mark.parametrize("make", [on_duckdb, on_polars, in_memory])
@pytest.mark.parametrize("name", [*WHOLE, *FILTERED, *UNSAFE])
def test_each_operation_is_told_by_its_kind(make: Callable[[Rows], Any], name: str) -> None:
    source = {**WHOLE, **FILTERED, **UNSAFE}[name](make(RECORDS))
    said = [refused(source, neighbours) for neighbours in BOTH]
    if name in WHOLE:
        assert said == ["", ""]
    elif name in FILTERED:
        assert "neighbours='add-remove'" in said[0]
        assert "secret" in said[0]
        assert said[1] == ""
    else:
        assert all("one row per record" in each for each in said)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # what Ibis calls of DuckDB
def test_a_query_in_sql_is_refused() -> None:
    table = on_duckdb(RECORDS)
    backend = table.get_backend()
    for source in (backend.sql("SELECT * FROM records"), table.sql("SELECT * FROM records")):
        assert "a query in SQL" in refused(source, "add-remove")


# -- views -------------------------------------------------------------------------------------

VIEWS = {
    "SELECT * FROM records": "all",
    "SELECT word, x::INTEGER AS x FROM main.records AS r": "all",
    "SELECT word FROM (SELECT word FROM records) AS inside": "all",
    "SELECT * FROM records WHERE x > 0 AND word IS NOT NULL": "some",
    "SELECT * FROM kept": "some",
    "SELECT * FROM few": "unknown",
    "SELECT * FROM records LIMIT 2": "unknown",
    "SELECT DISTINCT * FROM records": "unknown",
    "SELECT r.* FROM records r, records s": "unknown",
    "SELECT r.* FROM records r JOIN records s USING (word)": "unknown",
    "SELECT * FROM records UNION ALL SELECT * FROM records": "unknown",
    "SELECT word, count(*) AS x FROM records GROUP BY word": "unknown",
    "SELECT word, sum(x) OVER () AS x FROM records": "unknown",
    "SELECT * FROM records WHERE x > (SELECT avg(x) FROM records)": "unknown",
    "SELECT * FROM records WHERE rowid < 2": "unknown",
    "SELECT * FROM records USING SAMPLE 2": "unknown",
    "WITH c AS (SELECT * FROM records) SELECT * FROM c": "unknown",
    "SELECT word, random() AS x FROM records": "unknown",
    "SELECT unnest([1, 2]) AS x, word FROM records": "unknown",
    "SELECT * FROM range(3)": "unknown",
    "SELECT * FROM records ORDER BY x LIMIT 1": "unknown",
}


@pytest.mark.parametrize(("query", "kept"), VIEWS.items())
def test_a_view_of_duckdb_is_known_by_its_definition(query: str, kept: str) -> None:
    backend = on_duckdb(RECORDS).get_backend()
    backend.raw_sql("CREATE VIEW kept AS SELECT * FROM records WHERE x > 0")
    backend.raw_sql("CREATE VIEW few AS SELECT * FROM records LIMIT 2")
    backend.raw_sql(f"CREATE VIEW made AS {query}")
    assert open_source(backend.table("made")).kept_records().kept == kept


def test_files_and_objects_in_duckdb(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(arrow(RECORDS), path)
    backend = ibis.duckdb.connect()
    backend.raw_sql(f"CREATE VIEW quoted AS FROM '{path}'")
    backend.con.register("opaque", arrow(RECORDS))
    assert refused(backend.read_parquet(path), "replace-one") == ""
    assert refused(backend.table("quoted"), "replace-one") == ""
    assert "does not tell" in refused(backend.table("opaque"), "add-remove")


def test_text_files_read_by_duckdb_are_refused(tmp_path: Path) -> None:
    csv, json = tmp_path / "t.csv", tmp_path / "t.json"
    csv.write_text("word,x\na,1\n")
    json.write_text('{"word": "a", "x": 1}\n')
    backend = ibis.duckdb.connect()
    backend.raw_sql(f"CREATE VIEW scanned AS FROM '{csv}'")
    backend.raw_sql(f"CREATE VIEW scanned_json AS FROM '{json}'")
    backend.raw_sql(f"CREATE VIEW guessed AS FROM read_csv_auto('{csv}', ignore_errors=true)")
    backend.raw_sql(f"CREATE VIEW lines AS FROM read_ndjson('{json}')")
    backend.raw_sql(f"CREATE TABLE loaded AS FROM '{csv}'")
    views = [backend.table(name) for name in ("scanned", "scanned_json", "guessed", "lines")]
    for source in [*views, backend.read_csv(csv), backend.read_json(json)]:
        for neighbours in BOTH:
            assert "give noisewise the path of the CSV file" in refused(source, neighbours)
    assert refused(backend.table("loaded"), "replace-one") == ""


PARQUET_ARGUMENTS = {
    "'{0}'": "all",
    "['{0}']": "all",
    "['{0}', '{1}']": "all",
    "'{0}', binary_as_string=true": "all",
    "['{0}', '{0}']": "unknown",
    "['{0}', '{1}', '{2}/*.parquet']": "unknown",
    "'{0}', file_row_number=true": "unknown",
    "['{0}', '{1}'], union_by_name=true": "unknown",
}


@pytest.mark.parametrize("function", ["read_parquet", "parquet_scan"])
@pytest.mark.parametrize(("arguments", "kept"), PARQUET_ARGUMENTS.items())
def test_parquet_files_read_by_duckdb(
    function: str, arguments: str, kept: str, tmp_path: Path
) -> None:
    paths = [tmp_path / "one.parquet", tmp_path / "other.parquet"]
    for path in paths:
        pq.write_table(arrow(RECORDS), path)
    backend = ibis.duckdb.connect()
    backend.raw_sql(f"CREATE VIEW made AS FROM {function}({arguments.format(*paths, tmp_path)})")
    assert open_source(backend.table("made")).kept_records().kept == kept


def test_a_view_named_by_a_url(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE people AS SELECT 'a' AS word, 0.5 AS x")
        connection.execute("CREATE VIEW rich AS SELECT * FROM people WHERE x > 0.1")
    assert refused(f"duckdb://{path}#people", "replace-one") == ""
    assert "the view 'rich'" in refused(f"duckdb://{path}#rich", "replace-one")
    assert refused(f"duckdb://{path}#rich", "add-remove") == ""


def test_a_lazy_frame_behind_ibis() -> None:
    lazy = pl.DataFrame(pl.from_arrow(arrow(RECORDS))).lazy()
    backend = ibis.polars.connect({"rich": lazy.filter(pl.col("x") > 0), "few": lazy.head(2)})
    assert "a filter" in refused(backend.table("rich"), "replace-one")
    assert "one row per record" in refused(backend.table("few"), "add-remove")


# -- frames and datasets -----------------------------------------------------------------------

WORD, X = pl.col("word"), pl.col("x")
LAZY: dict[str, tuple[Callable[[pl.LazyFrame], pl.LazyFrame], str]] = {
    "itself": (lambda f: f, "all"),
    "select": (lambda f: f.select("word"), "all"),
    "with_columns": (lambda f: f.with_columns(X * 2, WORD.str.to_lowercase()), "all"),
    "rename": (lambda f: f.rename({"x": "z"}), "all"),
    "cast": (lambda f: f.cast({"x": pl.Int64}), "all"),
    "fill_null": (lambda f: f.with_columns(X.fill_null(0)), "all"),
    "when": (lambda f: f.with_columns(pl.when(X > 0).then(WORD).otherwise(pl.lit("b"))), "all"),
    "filter": (lambda f: f.filter(X > 0), "some"),
    "is_in": (lambda f: f.filter(WORD.is_in(["a"])), "some"),
    "drop_nulls": (lambda f: f.drop_nulls(), "some"),
    "head": (lambda f: f.head(2), "unknown"),
    "unique": (lambda f: f.unique(), "unknown"),
    "join": (lambda f: f.join(f, on="word"), "unknown"),
    "concat": (lambda f: pl.concat([f, f]), "unknown"),
    "group_by": (lambda f: f.group_by("word").len(), "unknown"),
    "over": (lambda f: f.with_columns(X.sum().over("word")), "unknown"),
    "sum": (lambda f: f.select(X.sum()), "unknown"),
    "constant": (lambda f: f.select(pl.lit("a").alias("word")), "unknown"),
    "shift": (lambda f: f.with_columns(WORD.shift()), "unknown"),
    "above average": (lambda f: f.filter(X.mean() < X), "unknown"),
    "is_unique": (lambda f: f.filter(WORD.is_unique()), "unknown"),
    "is_first_distinct": (lambda f: f.filter(WORD.is_first_distinct()), "unknown"),
    "beside": (lambda f: f.with_columns(pl.Series("y", [1, 2, 3, 4])), "unknown"),
    "row index": (lambda f: f.with_row_index(), "unknown"),
    "a function": (lambda f: f.map_batches(lambda d: d.head(1)), "unknown"),
    "forward": (lambda f: f.with_columns(X.fill_null(strategy="forward")), "unknown"),
    "member of a column": (lambda f: f.filter(WORD.is_in(WORD.implode())), "unknown"),
}


@pytest.mark.parametrize("name", LAZY)
def test_a_lazy_frame_is_known_by_its_plan(name: str) -> None:
    derive, kept = LAZY[name]
    frame = pl.DataFrame(pl.from_arrow(arrow(RECORDS)))
    assert open_source(derive(frame.lazy())).kept_records().kept == kept
    assert open_source(derive(frame.lazy()).collect()).kept_records().kept == "all"


def test_a_scan_by_polars(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(arrow(RECORDS), path)
    scan = pl.scan_parquet(path)
    found = [scan, scan.filter(X > 0), scan.head(1), pl.scan_parquet(path, n_rows=1)]
    kept = [open_source(frame).kept_records().kept for frame in found]
    assert kept == ["all", "some", "unknown", "unknown"]


def test_a_filter_over_a_dataset(tmp_path: Path) -> None:
    pq.write_table(arrow(RECORDS), tmp_path / "t.parquet")
    for whole in (ds.dataset(tmp_path / "t.parquet"), ds.dataset(arrow(RECORDS))):
        kept = whole.filter(pc.field("x") > 0)
        assert open_source(whole).kept_records().kept == "all"
        other = ds.dataset(arrow(RECORDS[:1]))
        assert open_source(ds.dataset([whole, other])).kept_records().kept == "all"
        assert "a filter" in refused(kept, "replace-one")
        assert refused(kept, "add-remove") == ""


def test_a_choice_of_row_groups(tmp_path: Path) -> None:
    """Whether a group is chosen depends on all of its records, by their statistics."""
    pq.write_table(arrow(RECORDS), tmp_path / "t.parquet", row_group_size=1)
    whole = ds.dataset(tmp_path / "t.parquet")
    fragment = next(whole.get_fragments())
    files = (whole.schema, whole.format, whole.filesystem)
    for part in (fragment.subset(pc.field("x") > 0), fragment.subset(row_group_ids=[0])):
        chosen = ds.FileSystemDataset([part], *files)
        assert "row groups" in refused(chosen, "add-remove")
        assert "row groups" in refused(ds.UnionDataset(whole.schema, [chosen]), "add-remove")
    assert refused(ds.FileSystemDataset([fragment], *files), "replace-one") == ""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # what Ibis asks of pandas
def test_a_query_behind_a_memtable(tmp_path: Path) -> None:
    """Ibis keeps a dataset as it is, and computes a lazy frame."""
    whole = ds.dataset(arrow(RECORDS))
    assert refused(ibis.memtable(whole), "replace-one") == ""
    kept = ibis.memtable(whole.filter(pc.field("x") > 0))
    assert "a filter" in refused(kept, "replace-one")
    assert refused(kept, "add-remove") == ""
    (tmp_path / "t.csv").write_text("word,x\na,1\n")
    text = ibis.memtable(ds.dataset(tmp_path / "t.csv", format="csv"))
    assert "CSV or JSON" in refused(text, "add-remove")
    frame = pl.DataFrame(pl.from_arrow(arrow(RECORDS)))
    for computed in (frame, frame.to_pandas(), arrow(RECORDS), {"x": [1.0]}):
        assert refused(ibis.memtable(computed), "replace-one") == ""


# -- releases ----------------------------------------------------------------------------------


def test_the_guides_filter_made_n_move_with_one_record() -> None:
    """Version 0.1 released both, with n = 1 and n = 2 in public."""
    for rows in ((("a", 1.0), ("a", 0.0)), (("a", 1.0), ("a", 1.0))):
        table = on_duckdb(rows)
        with pytest.raises(ArgumentError, match=r"number of records kept is a secret"):
            nw.release.exponential_family(
                table.filter(table.x > 0), column="x", family="bernoulli", epsilon=1.0
            )
    released = nw.release.exponential_family(
        table.filter(table.x > 0),
        column="x",
        family="bernoulli",
        epsilon=1.0,
        neighbours="add-remove",
    )
    assert released.population.policy == "noisy"


@pytest.mark.parametrize("unit", [None, "user"])
def test_people_and_groups(unit: str | None) -> None:
    visits = pa.table({"user": [1, 1, 2], "place": ["a", "b", "a"]})
    table = ibis.duckdb.connect().create_table("visits", visits)
    order: dict[str, Any] = {"cliques": [("place",)], "levels": {"place": ["a", "b"]}}
    order |= {"unit": unit, "epsilon": 1.0}
    chosen = table.filter(table.place == "a")
    with pytest.raises(ArgumentError, match="add-remove"):
        nw.release.graphical_model(chosen, **order)
    nw.release.graphical_model(chosen, **order, neighbours="add-remove")
    with pytest.raises(ArgumentError, match="distinct rows"):
        nw.release.graphical_model(table.distinct(), **order, neighbours="add-remove")


def test_partitions() -> None:
    table = ibis.duckdb.connect().create_table(
        "t",
        pa.table({"x": [float(i % 7) for i in range(200)], "y": [float(i) for i in range(200)]}),
    )
    order: dict[str, Any] = {"x": ["x"], "y": "y", "coefficient": "x", "partitions": 5}
    with pytest.raises(ArgumentError, match="number of records kept is a secret"):
        nw.release.posterior_probability(table.filter(table.x > 0), **order, at=0.0, epsilon=1.0)
    with pytest.raises(ArgumentError, match="a limit"):
        nw.release.posterior_probability(table.limit(150), **order, at=0.0, epsilon=1.0)


def test_a_dataset_that_names_a_file_twice(tmp_path: Path) -> None:
    """Each of its records would count twice, under either relation."""
    path, link = tmp_path / "t.parquet", tmp_path / "also.parquet"
    pq.write_table(arrow(RECORDS), path)
    link.symlink_to(path)
    other = tmp_path / "u.parquet"
    pq.write_table(arrow(RECORDS), other)
    for files in ([path, path], [path, link]):
        listed = ds.dataset([str(file) for file in files])
        union = ds.dataset([ds.dataset(str(file)) for file in files])
        for dataset in (listed, union, listed.filter(pc.field("x") > 0)):
            for neighbours in BOTH:
                assert "names a file twice" in refused(dataset, neighbours)
    assert refused(ds.dataset([str(path), str(other)]), "replace-one") == ""


def test_sqlite_is_refused_before_it_is_asked() -> None:
    table = ibis.sqlite.connect().create_table("records", arrow(RECORDS))
    with pytest.raises(ArgumentError, match="SQLite behind Ibis cannot form the sums; write the"):
        nw.release.exponential_family(
            table, column="x", family="normal", bounds=(0, 1), epsilon=1.0
        )

"""Neighbours at the level of files: one record changed, written by many tools, read by us.

A table is a dictionary of columns of plain Python values. `pair` makes a nasty one and a copy in
which one record differs; `WRITERS` put a table into a file, folder or frame; `compare` reads both
and checks that the public part is equal and the exact sums are within the claimed sensitivity.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

from noisewise.artifact import Bounds, Gram, NoisewiseError
from noisewise.privacy.lattice import Coded, boxed
from noisewise.privacy.sources import open_source
from noisewise.privacy.sum_plan import CellCounts, ProductSums, SumPlan, Sums
from tests.reference.csv_reference import reference_records
from tests.reference.sums_reference import reference_sums

Values = dict[str, list[Any]]
Writer = Callable[[Values, Path], Any]

BIG = 2**53
TRACTS = (7, 1, 0, BIG, BIG + 1, BIG + 2, -BIG - 1, 2**62 + 1)
SMALL = (0, 1, 2, -3)
TOWNS = ("a", "b,c", 'd"e', "f\ng", "süd", "h\u2028i", "1", "01", "j\r\nk", "\\", " l ")
BITS = 4
FILLER = {"x": "0.5", "tract": "0", "town": "a", "flag": "1", "code": "0", "note": "x"}
NOTES = (
    "",
    "x",
    "a,b",
    'say "hi"',
    "\n",
    "\r\n",
    "\n\n",
    '"',
    "\u2028\u0085\x0b",
    "日本\U0001f600",
)


def pair(rng: np.random.Generator, *, long: bool) -> tuple[Values, Values, SumPlan]:
    """Return a table, a neighbour of it, and what to sum."""
    columns = _columns(rng)
    rows = int(rng.integers(20, 60) if long else rng.integers(1, rng.choice([9, 9, 40])))
    # Where a reader splits a note, its lines pass for records.
    filler = ",".join(FILLER[name] for name in columns)
    records = [_record(rng, columns, filler, long) for _ in range(rows)]
    others, place = list(records), int(rng.integers(rows))
    others[place] = _record(rng, columns, filler, long)
    if "note" in columns and rng.random() < 0.5:  # a note alone is changed
        note = columns.index("note")
        others[place] = [*records[place][:note], others[place][note], *records[place][note + 1 :]]
    if "tract" in columns and rng.random() < 0.2:  # a whole number as a float
        others[place] = [
            1.0 if c == "tract" else v for c, v in zip(columns, others[place], strict=True)
        ]
    plan = _plan(rng, columns)
    return _turned(columns, records), _turned(columns, others), plan


def _columns(rng: np.random.Generator) -> tuple[str, ...]:
    alone = ("x", "tract", "town", "flag", "code")
    if rng.random() < 0.25:
        return (alone[int(rng.integers(len(alone)))],)
    some = rng.permutation([*alone[: int(rng.integers(1, 6))], "note"]).tolist()
    return tuple(sorted(some, key=lambda name: name == "note") if rng.random() < 0.5 else some)


def _turned(columns: tuple[str, ...], records: list[list[Any]]) -> Values:
    return {name: [record[i] for record in records] for i, name in enumerate(columns)}


def _record(
    rng: np.random.Generator, columns: tuple[str, ...], filler: str, long: bool
) -> list[Any]:
    def pick(values: tuple[Any, ...]) -> Any:
        return values[int(rng.integers(len(values)))]

    def note() -> str:
        if long and rng.random() < 0.7:
            lines = int(rng.integers(2**10, 2**16) // len(filler))
            return "\n".join([filler] * lines)
        return "".join(pick(NOTES) for _ in range(int(rng.integers(4))))

    values = {
        "x": lambda: pick((0.25, 0.5, 1, 0, -7.5, 1e-9, 0.1, BIG + 1)),
        "tract": lambda: 1.0 if rng.random() < 0.003 else pick(TRACTS),
        "town": lambda: pick(TOWNS),
        "flag": lambda: bool(rng.random() < 0.5),
        "code": lambda: pick((*SMALL, 1.0, 2.0)) if rng.random() < 0.1 else pick(SMALL),
        "note": note,
    }
    holes = 0.04 if len(columns) > 1 else 0.15
    return [None if name != "note" and rng.random() < holes else values[name]() for name in columns]


def _plan(rng: np.random.Generator, columns: tuple[str, ...]) -> SumPlan:
    filled, other = rng.random() < 0.6, rng.random() < 0.2
    last = -1 if rng.random() < 0.3 else None  # else every value is on its list
    lists: dict[str, Any] = {"tract": TRACTS, "town": TOWNS, "flag": (1, 0), "code": SMALL}
    codes = tuple(
        Coded(name, levels[:last], levels[0] if filled else None, levels[1] if other else None)
        if name != "flag"
        else Coded(name, levels, levels[0] if filled else None)
        for name, levels in lists.items()
        if name in columns
    )
    parts: list[Any] = []
    if codes:
        parts.append(CellCounts(codes, tuple((i,) for i in range(len(codes)))))
    if "x" in columns:
        feature = boxed("x", Bounds(-1, 2), bits=BITS, fill=0.5 if filled else None)
        parts.append(ProductSums((feature,), Gram(("x",), count=False).products))
    return SumPlan(tuple(parts))


# -- writers ---------------------------------------------------------------------------------------


def _cells(values: Values) -> list[list[str]]:
    """Each value as text; a number in one of its spellings, by turns."""
    return [
        [_spelt(v, 0 if name == "tract" else row) for name, v in zip(values, record, strict=True)]
        for row, record in enumerate(zip(*values.values(), strict=True))
    ]


def _spelt(value: Any, row: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return (str(value), str(int(value)), str(value).lower())[row % 3]
    if isinstance(value, int) and abs(value) < 10:
        return (str(value), f"{value}.0", f"{value:03d}", f"{value}e0")[row % 4]
    return str(value)


def by_csv(values: Values, folder: Path, **dialect: Any) -> Path:
    path = folder / "people.csv"
    with path.open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, **dialect)
        writer.writerow(values)
        writer.writerows(_cells(values))
    return path


def by_csv_with_feeds(values: Values, folder: Path) -> Path:
    return by_csv(values, folder, lineterminator="\n", quoting=csv.QUOTE_ALL)


def by_bare_csv(values: Values, folder: Path) -> Path:
    """A record without a value, in a table of one column, as an empty line; no last line end."""
    path = by_csv(values, folder, lineterminator="\n")
    if len(values) == 1:
        lines = path.read_bytes().replace(b'\n""', b"\n")
        path.write_bytes(b"\xef\xbb\xbf" + lines)
    else:
        path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    return path


def by_pandas(values: Values, folder: Path) -> Path:
    pd.DataFrame(values).to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def as_pandas(values: Values, _: Path) -> pd.DataFrame:
    return pd.DataFrame(values)


def as_pandas_objects(values: Values, _: Path) -> pd.DataFrame:
    return pd.DataFrame(values, dtype=object)


def as_polars(values: Values, _: Path) -> pl.DataFrame:
    return pl.DataFrame(values, strict=False)


def by_polars(values: Values, folder: Path) -> Path:
    as_polars(values, folder).write_csv(folder / "people.csv")
    return folder / "people.csv"


def as_arrow(values: Values, _: Path) -> pa.Table:
    return pa.table({name: _column(name, column) for name, column in values.items()})


def _column(name: str, column: list[Any]) -> pa.Array:
    """With the type that the owner's table has, or a float where a value needs one."""
    kinds = {"tract": pa.int64(), "code": pa.int64(), "flag": pa.bool_(), "x": pa.float64()}
    if name == "x" or any(isinstance(value, float) for value in column):
        return pa.array([None if v is None else float(v) for v in column], pa.float64())
    return pa.array(column, kinds.get(name, pa.string()))


def by_arrow_csv(values: Values, folder: Path) -> Path:
    pyarrow.csv.write_csv(as_arrow(values, folder), folder / "people.csv")
    return folder / "people.csv"


def by_parquet(values: Values, folder: Path) -> Path:
    pq.write_table(as_arrow(values, folder), folder / "people.parquet", row_group_size=3)
    return folder / "people.parquet"


def by_feather(values: Values, folder: Path) -> Path:
    pyarrow.feather.write_feather(as_arrow(values, folder), folder / "people.feather")
    return folder / "people.feather"


def by_pandas_parquet(values: Values, folder: Path) -> Path:
    pd.DataFrame(values).to_parquet(folder / "people.parquet")
    return folder / "people.parquet"


def by_duckdb(values: Values, folder: Path) -> Path:
    people = as_arrow(values, folder)  # noqa: F841  # DuckDB finds it by its name
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM people) TO '{folder}/people.csv' (HEADER)")
    return folder / "people.csv"


def by_folder(values: Values, folder: Path) -> Path:
    """Parts as Spark leaves them: with what was begun and not finished, and a mark of success."""
    half = len(next(iter(values.values()))) // 2
    halves = ({c: v[:half] for c, v in values.items()}, {c: v[half:] for c, v in values.items()})
    top = folder / "_people"
    for number, part in enumerate(halves):
        for place in (top / f"part={number}", top / "_temporary" / "0" / f"{number}"):
            place.mkdir(parents=True, exist_ok=True)
            by_csv(part, place)
    (top / "_SUCCESS").touch()
    return top


WRITERS: dict[str, Writer] = {
    function.__name__: function
    for function in (
        *(by_csv, by_csv_with_feeds, by_bare_csv, by_pandas, by_polars, by_arrow_csv, by_duckdb),
        *(by_parquet, by_feather, by_pandas_parquet, by_folder),
        *(as_pandas, as_pandas_objects, as_polars, as_arrow),
    )
}


# -- reading and comparing -------------------------------------------------------------------------


def read(source: Any, plan: SumPlan) -> Sums | None:
    """Return the exact sums; None where the table is refused under either relation."""
    try:
        reader = open_source(source)
        reader.check(tuple(plan.numeric), tuple(code.column for code in plan.codes))
        sums = reader.sum(plan)
    except NoisewiseError:
        return None
    return None if sums.unlisted else sums


def compare(one: Sums, other: Sums, plan: SumPlan) -> None:
    """Fail unless two tables' sums are those of neighbours."""
    if not one.missing and not other.missing:  # else they are released with a secret n
        assert one.sizes.sum() == other.sizes.sum(), "the public number of records differs"
    for part, mine, theirs in zip(plan.parts, one.parts, other.parts, strict=True):
        moved = int(np.abs(mine - theirs).sum())
        assert moved <= _most(part), f"L1 is {moved}, the claim {_most(part)}"


def _most(part: Any) -> int:
    """Return the claimed L1: two cells of each table; 9/4 F² for (F u, u²), as section 3 proves."""
    return 2 * len(part.cliques) if isinstance(part, CellCounts) else 9 * 4**BITS // 4


def check_reference(source: Any, plan: SumPlan, found: Sums) -> None:
    """Fail unless a file's sums are those of the plain reader."""
    expected = reference_sums(reference_records(source, plan), plan)
    for mine, theirs in zip(found.parts, expected.parts, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(found.sizes, expected.sizes)
    assert found.missing == expected.missing


def _is_csv(source: Any) -> bool:
    return isinstance(source, Path) and source.suffix == ".csv" and source.is_file()


def attack(
    name: str, seed: int, folder: Path, *, long: bool, writers: dict[str, Writer] = WRITERS
) -> bool:
    """Write and read one pair of neighbours; return whether both were accepted."""
    rng = np.random.default_rng([seed, int(long)])
    one, other, plan = pair(rng, long=long)
    found: list[Sums | None] = []
    for number, values in enumerate((one, other)):
        place = folder / f"{name}-{seed}-{int(long)}-{number}"
        place.mkdir()
        source = writers[name](values, place)
        found.append(sums := read(source, plan))
        if sums is not None and _is_csv(source):
            check_reference(source, plan, sums)
    if found[0] is None or found[1] is None:
        return False
    compare(found[0], found[1], plan)
    return True

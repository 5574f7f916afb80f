"""Files that are missing, damaged or of the wrong kind; and what they hold stays in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import noisewise as nw
from tests.privacy.refusals import GOOD, NUMBER, SECRET, regression, tables

Refused = Callable[..., str]


LINES = ["x,y,t,g", "0.25,1,a,0", "0.5,2,b,1"]


def written(folder: Path, *lines: str, name: str = "people.csv") -> str:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*LINES, *lines, ""]), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("before", [0, 300_000], ids=["at once", "in a later block"])
def test_text_in_a_numeric_csv_column(before: int, tmp_path: Path, refused: Refused) -> None:
    path = written(tmp_path, *["0.5,1,a,0"] * before, f"0.5,{SECRET},a,0")
    message = refused(nw.DataError, regression, path)
    assert message == "column 'y' holds something that is not a number"


@pytest.mark.parametrize("before", [0, 300_000], ids=["at once", "in a later block"])
@pytest.mark.parametrize("line", [f"0.5,{SECRET},a,0,1", f"0.5,{NUMBER}"], ids=["long", "short"])
def test_ragged_csv(line: str, before: int, tmp_path: Path, refused: Refused) -> None:
    path = written(tmp_path, *["0.5,1,a,0"] * before, line)
    message = refused(nw.SourceError, regression, path)
    assert "people.csv' is empty or damaged" in message
    assert "as many values in every line" in message


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", "x,y\n0.5,1\n".encode("utf-16"), b"x,x,y\n0.5,0.5,7291.125\n"],
    ids=["empty", "blank", "UTF-16", "a name twice"],
)
def test_csv_that_is_none(content: bytes, tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    assert "empty or damaged" in refused(nw.SourceError, regression, path)


def test_csv_in_another_encoding(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes("\n".join([*LINES, f"0.5,1,é{SECRET},0", ""]).encode("latin-1"))
    assert "column 't'" in refused(nw.DataError, tables, path)


def test_csv_without_a_header_does_not_betray_its_first_record(
    tmp_path: Path, refused: Refused
) -> None:
    path = tmp_path / "people.csv"
    path.write_text(f"{SECRET},{NUMBER}\n0.5,1\n")
    message = refused(nw.DataError, regression, path)
    assert "names are read from its first line" in message


def test_csv_values_outside_a_list(tmp_path: Path, refused: Refused) -> None:
    path = written(tmp_path, f"0.5,1,{SECRET},7291")
    assert "'t' holds a value outside" in refused(nw.DataError, tables, path)
    assert "'g' holds a value outside" in refused(
        nw.DataError, regression, path, groups={"g": [0, 1]}
    )
    message = refused(nw.DataError, tables, path, levels={"t": [0, 1]})
    assert message == "column 't' holds something that is not a whole number, as its public list is"


def test_missing_values_in_csv(tmp_path: Path, refused: Refused) -> None:
    path = written(tmp_path, ",1,a,0", f"{NUMBER},NA,b,1")
    assert "'x' has missing values" in refused(nw.DataError, regression, path)
    assert regression(path, fill={"x": 0.5, "y": 1}).n == 4
    assert regression(path, neighbours="add-remove").n is None


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    numbers = np.full(20_000, NUMBER)
    text = [SECRET] * 20_000
    pq.write_table(pa.table({"x": numbers, "y": numbers, "t": text}), path, compression="none")
    assert SECRET.encode() in path.read_bytes()
    return path


def test_damaged_parquet(parquet: Path, tmp_path: Path, refused: Refused) -> None:
    whole = parquet.read_bytes()
    for content in (b"", SECRET.encode() * 99, whole[: len(whole) // 2], whole[:-4]):
        parquet.write_bytes(content)
        message = refused(nw.SourceError, regression, parquet)
        assert "people.parquet' is empty, damaged, or not what its ending says" in message


def test_parquet_with_a_damaged_page(parquet: Path, refused: Refused) -> None:
    """The footer is fine: it is found only while the sums are formed."""
    column = pq.ParquetFile(parquet).metadata.row_group(0).column(0)
    content = bytearray(parquet.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    content[start : start + 64] = (SECRET * 6).encode()[:64]
    parquet.write_bytes(content)
    message = refused(nw.SourceError, regression, parquet)
    assert "people.parquet' is damaged: it could not be read to its end" in message


def test_parquet_that_does_not_fit(parquet: Path, refused: Refused) -> None:
    words = {"y": "t", "bounds": {"x": (0, 1), "t": (0, 1)}}
    message = refused(nw.DataError, regression, parquet, **words)
    assert message == "column 't' must be numeric, but holds text"
    assert "'t' holds a value outside" in refused(nw.DataError, tables, parquet)


@pytest.mark.parametrize(
    ("second", "kind", "message"),
    [
        ({"x": [0.5]}, nw.DataError, "'y' is not in file"),
        ({"x": [0.5], "y": [SECRET]}, nw.DataError, "'y' must be numeric"),
        (None, nw.SourceError, "b.parquet' is empty, damaged"),
    ],
    ids=["lacks a column", "has text", "is damaged"],
)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_part_that_does_not_fit_the_others(
    second: Any, kind: Any, message: str, neighbours: str, tmp_path: Path, refused: Refused
) -> None:
    """Under add-remove too: a file whose every record is "incomplete" would be lost quietly."""
    pq.write_table(pa.table(GOOD), tmp_path / "a.parquet")
    if second is None:
        (tmp_path / "b.parquet").write_text(SECRET * 50)
    else:
        pq.write_table(pa.table(second), tmp_path / "b.parquet")
    for source in (str(tmp_path / "*.parquet"), tmp_path):
        assert message in refused(kind, regression, source, neighbours=neighbours)


def test_a_dataset_with_a_damaged_file(parquet: Path, tmp_path: Path, refused: Refused) -> None:
    pq.write_table(pa.table(GOOD), tmp_path / "a.parquet")
    dataset = ds.dataset([tmp_path / "a.parquet", parquet])
    parquet.write_text(SECRET * 50)
    assert "the dataset could not be read" in refused(
        nw.SourceError, regression, dataset, progress=lambda *_: None
    )


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("nowhere.csv", nw.SourceError, "no file matches 'nowhere.csv'"),
        ("nowhere/*.parquet", nw.SourceError, "no file matches"),
        ("", nw.ArgumentError, "the path is empty"),
        ("a\0b", nw.SourceError, "no file matches"),
        ("mysql://host/db#table", nw.ArgumentError, "mysql:// is not known"),
        ("duckdb://nowhere.db#people", nw.SourceError, "nowhere.db"),
    ],
)
def test_places_without_a_table(source: str, kind: Any, message: str, refused: Refused) -> None:
    assert message in refused(kind, regression, source)


def test_folders(tmp_path: Path, refused: Refused) -> None:
    assert "no file matches" in refused(nw.SourceError, regression, tmp_path)
    written(tmp_path, name="notes.txt")
    assert "no file matches" in refused(nw.SourceError, regression, tmp_path)
    written(tmp_path, "0.75,3,a,0")
    assert regression(tmp_path).n == 3
    pq.write_table(pa.table(GOOD), tmp_path / "people.parquet")
    assert "files of one kind" in refused(nw.ArgumentError, regression, tmp_path)
    assert "files of one kind" in refused(nw.ArgumentError, regression, str(tmp_path / "people.*"))


@pytest.mark.parametrize("name", ["people.txt", "people.csv.gz", "people"])
def test_files_of_an_unknown_kind(name: str, tmp_path: Path, refused: Refused) -> None:
    message = refused(nw.ArgumentError, regression, written(tmp_path, name=name))
    assert "ending in .parquet, .pq, .csv, .arrow, .feather, .ipc" in message

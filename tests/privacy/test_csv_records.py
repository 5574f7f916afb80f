"""CSV files: every record is one record, and each cell means what it says, whatever others say."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import noisewise as nw
from noisewise.artifact import Bounds
from noisewise.privacy.lattice import Coded, boxed
from noisewise.privacy.sources import csv_files, open_source
from noisewise.privacy.sum_plan import CellCounts, Person, ProductSums, SumPlan, Sums
from tests.privacy.refusals import SECRET, family, regression, tables
from tests.reference.csv_reference import reference_records
from tests.reference.sums_reference import reference_sums

Refused = Callable[..., str]
BIG = 2**53


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "people.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def counts(*levels: Any, column: str = "a", **more: Any) -> SumPlan:
    return SumPlan((CellCounts((Coded(column, levels, **more),), ((0,),)),))


def numbers(column: str = "a", fill: float | None = None) -> SumPlan:
    feature = boxed(column, Bounds(-64, 64), bits=15, fill=fill)
    return SumPlan((ProductSums((feature,), ((0,), (0, 0), ())),))


def summed(path: Path, plan: SumPlan) -> Sums:
    """Return the sums, which must be those of the plain reader."""
    found = open_source(path).sum(plan)
    expected = reference_sums(reference_records(path, plan), plan)
    for mine, theirs in zip(found.parts, expected.parts, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(found.sizes, expected.sizes)
    assert (found.missing, found.unlisted) == (expected.missing, expected.unlisted)
    return found


# -- the audit's findings --------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 10_000, 60_000, 110_000])
def test_line_breaks_in_cells_are_no_ends_of_records(length: int, tmp_path: Path) -> None:
    """Finding 1: only the length of one person's note differs, a column that is not released."""
    note = "\n".join(["1,x"] * length)
    other = "\n".join(["1,y"] * 500)
    others = f'0,"{other}"\n' * 600
    path = written(tmp_path, f'a,note\n{others}1,"{note}"\n{others}')
    assert summed(path, counts(0, 1)).parts[0][:, 0].tolist() == [1200, 1]


def test_an_empty_line_is_a_record_of_one_column(tmp_path: Path, refused: Refused) -> None:
    """Finding 2."""
    path = written(tmp_path, "x\n0.25\n\n0.5\n")
    assert "'x' has missing values" in refused(nw.DataError, family, path)
    assert family(path, fill=0).n == 3
    assert summed(path, numbers("x", 0.0)).sizes.tolist() == [3]


def test_the_spelling_of_one_cell_does_not_move_others(tmp_path: Path) -> None:
    """Finding 3."""
    levels = (1, BIG, BIG + 1)
    for spelling in ("1", "1.0", "01", "+1", "1e0", "true"):
        path = written(tmp_path, f"a,b\n{spelling},0\n" + f"{BIG},0\n" * 3 + f"{BIG + 1},0\n" * 5)
        assert summed(path, counts(*levels)).parts[0][:, 0].tolist() == [1, 3, 5]


@pytest.mark.parametrize("folder", ["people", "_people", ".people"])
def test_a_folder_is_read_without_what_is_not_data(folder: str, tmp_path: Path) -> None:
    """Finding 4."""
    top = tmp_path / folder
    for place in ("year=1", "_temporary/0", ".hidden", "year=1/_delta_log"):
        (top / place).mkdir(parents=True)
        (top / place / "part-0.csv").write_text("x,y\n0.25,1\n0.5,2\n0.75,3\n")
    for name in ("_metadata.csv", ".part-0.csv"):
        (top / name).write_text("x,y\n" + "0.5,2\n" * 4)
    assert regression(top).n == 3
    assert regression(str(top / "**" / "*.csv")).n == 3
    assert regression(str(top / "*" / "*.csv")).n == 3
    assert regression(str(top / "_temporary" / "*" / "*.csv")).n == 3
    assert regression(top / "_metadata.csv").n == 4
    assert regression(str(top / "_meta*.csv")).n == 4


def test_a_folder_with_the_ending_of_a_file_is_read_once(tmp_path: Path) -> None:
    """Spark makes a folder of that name."""
    (tmp_path / "people.csv").mkdir()
    (tmp_path / "people.csv" / "part-0.csv").write_text("x,y\n0.25,1\n0.5,2\n0.75,3\n")
    assert regression(tmp_path).n == 3


# -- where records end -----------------------------------------------------------------------------

WELL_FORMED = {
    "no last line end": "a,b\n1,x\n0,y",
    "Windows": "a,b\r\n1,x\r\n0,y\r\n",
    "byte-order mark": "\ufeffa,b\n1,x\n0,y\n",
    "byte-order mark and quotes": '\ufeff"a",b\n1,x\n0,y\n',
    "empty lines": "\n\na,b\n\n1,x\n\n\n0,y\n\n",
    "names with line breaks": 'a,"b\nc"\n1,x\n0,y\n',
    "doubled marks": 'a,b\n"1","x ""y"" """\n0,""""\n',
    "line breaks of all kinds": 'a,b\n1,"x\r\ny\rz\n\n"\n0,"\n"\n',
    "separators of Unicode": "a,b\n1,x\u2028y\u2029\u0085z\x0b\x0c\x1c\n0,y\n",
    "NUL": "a,b\n1,x\0y\n0,y\n",
    "empty cells in quotes": 'a,b\n1,""\n"0",\n',
    "one column": "a\n1\n0\n",
    "one column in quotes": '"a"\r\n"1"\r\n"0"',
}


@pytest.mark.parametrize("text", WELL_FORMED.values(), ids=WELL_FORMED)
@pytest.mark.parametrize("chunk", [1, 2, 3, 2**22])
def test_well_formed_files(
    text: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "CHUNK_BYTES", chunk)
    path = written(tmp_path, text)
    assert summed(path, counts(0, 1)).parts[0][:, 0].tolist() == [1, 1]


AMBIGUOUS = {
    "stray": ('a,b\n1,5" pipe\n0,y\n', "inside a cell"),
    "text behind": ('a,b\n1,"x"y\n0,y\n', "inside a cell"),
    "blank before": ('a,b\n1, "x"\n0,y\n', "inside a cell"),
    "unclosed": ('a,b\n1,x\n0,"y\n', "never closed"),
    "unclosed within": ('a,b\n1,"x\n0,y\n1,"z"\n', "inside a cell"),
    "backslash": ('a,b\n1,"x \\"y\\""\n0,y\n', "backslash"),
    "backslash at the end": ('a,b\n1,"x,\\"\n0,y\n', "backslash"),
    "lone return": ("a,b\n1,x\ry\n0,y\n", "carriage return"),
    "returns only": ("a\r1\r0\r", "carriage return"),
}


@pytest.mark.parametrize(("text", "why"), AMBIGUOUS.values(), ids=AMBIGUOUS)
@pytest.mark.parametrize("chunk", [1, 2, 2**22])
def test_files_whose_records_cannot_be_told_apart(
    text: str,
    why: str,
    chunk: int,
    tmp_path: Path,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(csv_files, "CHUNK_BYTES", chunk)
    path = written(tmp_path, text.replace("pipe", SECRET))
    message = refused(nw.SourceError, tables, path, cliques=[("a",)], levels={"a": [0, 1]})
    assert "cannot be told apart into records" in message
    assert why in message


@pytest.mark.parametrize("trailing", ["", "\n", "\n\n\n"])
def test_trailing_empty_lines_of_one_column_are_records(trailing: str, tmp_path: Path) -> None:
    path = written(tmp_path, f"a\n1\n0\n{trailing}")
    found = summed(path, counts(0, 1, fill=0))
    assert found.sizes.tolist() == [2 + len(trailing)]


@pytest.mark.parametrize("before", range(7))
def test_windows_line_ends_across_blocks(before: int, tmp_path: Path) -> None:
    """A line end of two bytes may lie on the border of two blocks: no empty record between."""
    path = written(tmp_path, b"a\r\n" + b"0" * before + b"1\r\n" + b"00001\r\n" * 350_000)
    assert open_source(path).sum(counts(0, 1)).parts[0][:, 0].tolist() == [0, 350_001]


def test_a_record_longer_than_a_block_and_more(tmp_path: Path, refused: Refused) -> None:
    note = "x\n" * 2**21
    path = written(tmp_path, f'a,b\n1,"{note}"\n0,y\n')
    message = refused(nw.SourceError, tables, path, cliques=[("a",)], levels={"a": [0, 1]})
    assert "of a mebibyte at most" in message


def test_one_column_by_spark_is_refused(tmp_path: Path, refused: Refused) -> None:
    """Spark writes nothing for a record whose only value is missing: no reader can know of it."""
    path = tmp_path / "people.csv" / "part-00000-1f3a-4c00-8000-2b-c000.csv"
    path.parent.mkdir()
    path.write_text("x\n0.25\n0.5\n")
    assert "Spark leaves out records" in refused(nw.SourceError, family, path.parent)
    path.write_text("x,y\n0.25,1\n,\n")
    assert "'x' has missing values" in refused(nw.DataError, family, path.parent)


def test_compressed_files_are_refused(tmp_path: Path, refused: Refused) -> None:
    written(tmp_path, "x,y\n" + "0.5,1\n" * 3)
    assert regression(tmp_path).n == 3
    (tmp_path / "more.csv.gz").write_bytes(b"")
    assert "compressed files" in refused(nw.ArgumentError, regression, tmp_path)
    message = refused(nw.ArgumentError, regression, tmp_path / "more.csv.gz")
    assert "unpack them first" in message


def test_datasets_of_csv_are_refused(tmp_path: Path, refused: Refused) -> None:
    path = written(tmp_path, "x,y\n0.5,1\n")
    memory = ds.dataset(pa.table({"x": [0.5], "y": [1.0]}))
    dataset = ds.dataset(path, format="csv")
    both = ds.dataset([dataset, memory]) if dataset.schema == memory.schema else dataset
    for source in (dataset, both):
        message = refused(nw.ArgumentError, regression, source)
        assert "give the path of the CSV files instead" in message


# -- what a cell means -----------------------------------------------------------------------------

SPELLINGS = ["1", "-1", "01", "+1", "1.0", "1.", ".5", "1e1", "1E+1", " 1 ", "\t2", "true", "FALSE"]
SPELLINGS += ["True", "inf", "-inf", "Infinity", "1e400", "1e-400", "0x10", "tRue", "x", "1_0", "٣"]
SPELLINGS += ["yes", "--1", "1 2", "-", "2.5", "1e-3", f"{BIG + 1}", f"{BIG}.0", "1e30", "9" * 30]


def meaning(folder: Path, cells: list[str], plan: SumPlan) -> Any:
    """Return what the last cell adds to those before it, None where the file is refused."""
    found = []
    for some in (cells[:-1], cells):
        try:
            sums = open_source(written(folder, "\n".join(["a", *some, ""]))).sum(plan)
        except nw.NoisewiseError:
            return None
        found.append(sums)
    before, after = found
    moved = tuple(map(int, after.parts[0][:, 0] - before.parts[0][:, 0]))
    return moved, after.unlisted if not before.unlisted else ()


@pytest.mark.parametrize("cell", SPELLINGS)
@pytest.mark.parametrize("plan", [numbers(), counts(0, 1, 2, 10, 16, -1)], ids=["sum", "count"])
def test_a_cell_means_the_same_beside_any_other(cell: str, plan: SumPlan, tmp_path: Path) -> None:
    """Alone, beside plain numbers, and beside spellings that need another way of reading."""
    alone = meaning(tmp_path, [cell], plan)
    for other in ("0", "1.0", "true", "+1"):
        assert meaning(tmp_path, [other, cell], plan) == alone


def test_a_late_cell_with_another_spelling(tmp_path: Path) -> None:
    """Rows that were read before it are not read again."""
    rows = "".join(f"{i % 3},0.5\n" for i in range(400_000))
    plan = SumPlan((*numbers("b").parts, *counts(0, 1, 2).parts))
    path = written(tmp_path, f"a,b\n{rows}2.0,true\n{rows}")
    found = open_source(path).sum(plan)
    assert found.sizes.tolist() == [800_001]
    assert found.parts[1][:, 0].tolist() == [266_668, 266_666, 266_667]
    half, one = 2**15 // 128, 2**15 // 64
    assert found.parts[0][0, 0] == 800_000 * half + one


def test_one_column_for_two_uses(tmp_path: Path) -> None:
    """As a number and as a level of whole numbers, each exactly."""
    plan = SumPlan((*numbers().parts, *counts(1, BIG + 1, 7, other=7).parts))
    path = written(tmp_path, f"a\n1.0\n2.5\n{BIG + 1}\n{BIG}\n")
    assert summed(path, plan).parts[1][:, 0].tolist() == [1, 1, 2]


def test_whole_numbers_that_were_written_as_floats(tmp_path: Path, refused: Refused) -> None:
    """pandas writes a column so where one value is missing: neighbours are one number then."""
    words = {"cliques": [("a",)], "levels": {"a": [1, BIG, BIG + 1]}, "fill": {"a": 1}}
    for cell in (f"{BIG}.0", "9.007199254740992e+15", "9007199254740992."):
        path = written(tmp_path, f"a,b\n1,0\n{cell},0\n")
        assert "'a' holds something" in refused(nw.DataError, tables, path, **words)
    assert tables(written(tmp_path, f"a,b\n1,0\n{BIG + 1},0\n"), **words).n == 2


@pytest.mark.parametrize("bits", [32, 64])
def test_floats_that_cannot_tell_levels_apart(bits: int, refused: Refused) -> None:
    """The list and the column's type decide, whatever the records are."""
    kind, most = (pa.float32(), 2**24) if bits == 32 else (pa.float64(), BIG)
    table = pa.table({"a": pa.array([0.0, 1.0], kind)})
    words = {"cliques": [("a",)]}
    message = refused(nw.DataError, tables, table, levels={"a": [0, 1, most]}, **words)
    assert "cannot tell the whole numbers of its public list apart" in message
    assert tables(table, levels={"a": [0, 1, most - 1]}, **words).n == 2


def test_levels_of_text_that_were_written_as_floats(tmp_path: Path) -> None:
    """With an "other" level, all records would move to it because one has a missing value."""
    path = written(tmp_path, "a,b\n7,0\n8.5,0\n9.0,0\n")
    assert summed(path, counts("7", "x", other="x")).parts[0][:, 0].tolist() == [1, 2]
    path = written(tmp_path, "a,b\n7.0,0\n,0\n")
    with pytest.raises(nw.DataError, match="as a floating-point number"):
        open_source(path).sum(counts("7", "x", other="x"))
    assert summed(path, counts("7", "7.0", "x", other="x")).parts[0][:, 0].tolist() == [0, 1, 0]


# -- whose record it is ----------------------------------------------------------------------------

PEOPLE = SumPlan(counts(0, 1).parts, person=Person("id", 1000))


@pytest.mark.parametrize("size", [1, -1])
def test_float_ids_that_cannot_tell_people_apart(size: int, tmp_path: Path) -> None:
    ids = [float(size * BIG), 1.0]
    table = pa.table({"a": [0, 1], "id": ids})
    path = written(tmp_path, f"a,id\n0,{ids[0]!r}\n1,1.0\n")
    for source in (table, path):
        with pytest.raises(nw.DataError, match="cannot tell people apart"):
            open_source(source).sum(PEOPLE)
    fine = written(tmp_path, f"a,id\n0,{BIG + 1}\n1,{BIG}\n0,12e4567\n")
    assert summed(fine, PEOPLE).sizes.tolist() == [3]


def test_ids_spelled_as_floats_in_one_of_two_files(tmp_path: Path) -> None:
    """A missing id makes floats of the others in its file: someone would be two people."""
    (tmp_path / "a.csv").write_text("a,id\n0,7\n1,8\n")
    (tmp_path / "b.csv").write_text("a,id\n0,7.0\n1,9.0\n")
    with pytest.raises(nw.DataError, match="floating-point numbers in another"):
        open_source(tmp_path).sum(PEOPLE)
    (tmp_path / "b.csv").write_text("a,id\n0,9.0\n1,10.0\n")
    assert open_source(tmp_path).sum(PEOPLE).sizes.tolist() == [4]
    (tmp_path / "b.csv").write_text("a,id\n0,7\n1,7.0\n")
    assert open_source(tmp_path).sum(PEOPLE).sizes.tolist() == [3]


def test_a_file_with_two_names_is_refused(tmp_path: Path, refused: Refused) -> None:
    """A link beside its file would count everybody twice, under the guarantee of one record."""
    for make in (os.symlink, os.link):
        folder = tmp_path / make.__name__
        folder.mkdir()
        (folder / "a.csv").write_text("x,y\n" + "0.5,1\n" * 3)
        make(folder / "a.csv", folder / "b.csv")
        for source in (folder, str(folder / "*.csv")):
            assert "names one file twice" in refused(nw.ArgumentError, regression, source)

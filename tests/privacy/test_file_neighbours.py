"""One record changed, the file written by each common tool: what is public stays, sums move little.

And when a mend is taken out, the same attack finds what it mended.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pytest

from noisewise.privacy.sources import arrow_columns, csv_files, files
from tests.privacy.file_neighbours import WRITERS, attack

SHORT, LONG = 60, 8
"""Pairs per writer: of a few records, and across the borders of Arrow's blocks (1 MiB)."""


def attack_all(name: str, folder: Path, short: range, long: range) -> tuple[int, int]:
    """Return the number of pairs, and of those in which both tables were accepted."""
    accepted = 0
    for seeds, is_long in ((short, False), (long, True)):
        for seed in seeds:
            accepted += attack(name, seed, folder, long=is_long)
            for made in folder.iterdir():
                shutil.rmtree(made)
    return len(short) + len(long), accepted


@pytest.mark.parametrize("name", WRITERS)
def test_neighbours_at_the_level_of_files(name: str, tmp_path: Path) -> None:
    pairs, accepted = attack_all(name, tmp_path, range(SHORT), range(LONG))
    assert pairs * len(WRITERS) >= 1000
    assert accepted > pairs / 5


@pytest.mark.evidence
@pytest.mark.parametrize("name", WRITERS)
def test_many_neighbours_at_the_level_of_files(name: str, tmp_path: Path) -> None:
    pairs, accepted = attack_all(name, tmp_path, range(1000, 2250), range(1000, 1100))
    assert pairs * len(WRITERS) >= 20_000
    print(f"{name}: {pairs} pairs, {accepted} of them accepted")


# -- without a mend --------------------------------------------------------------------------------

Patch = pytest.MonkeyPatch


def _parse(patch: Patch, **old: bool) -> None:
    real = pyarrow.csv.ParseOptions
    patch.setattr(pyarrow.csv, "ParseOptions", lambda **words: real(**{**words, **old}))


def without_line_breaks_in_cells(patch: Patch) -> None:
    _parse(patch, newlines_in_values=False)


def without_records_on_empty_lines(patch: Patch) -> None:
    _parse(patch, ignore_empty_lines=True)


def without_exact_levels(patch: Patch) -> None:
    """A column in which some cell is spelled as a float is compared as floats, as it was."""
    real = csv_files.CsvFile._usual

    def guessed(file: csv_files.CsvFile, plan: Any) -> dict[str, pa.DataType]:
        guess = ds.dataset(file._path, format="csv").schema
        planned = csv_files._planned(plan)
        return {
            c: guess.field(c).type
            if planned[c] == pa.int64() and pa.types.is_floating(guess.field(c).type)
            else kind
            for c, kind in real(file, plan).items()
        }

    patch.setattr(csv_files.CsvFile, "_usual", guessed)
    patch.setattr(arrow_columns, "check_floats", lambda *_: None)


def without_hidden_folders(patch: Patch) -> None:
    patch.setattr(files, "_is_hidden", lambda part: False)


OUT: list[tuple[Callable[[Patch], None], str, bool]] = [
    (without_line_breaks_in_cells, "by_csv", True),
    (without_records_on_empty_lines, "by_bare_csv", False),
    (without_exact_levels, "by_csv", False),
    (without_hidden_folders, "by_folder", False),
]


@pytest.mark.parametrize(
    ("without", "name", "long"), OUT, ids=[without.__name__ for without, _, _ in OUT]
)
def test_the_attack_finds_what_a_mend_mended(
    without: Callable[[Patch], None],
    name: str,
    long: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the neighbours alone, without a look at the plain reader."""
    without(monkeypatch)
    monkeypatch.setattr("tests.privacy.file_neighbours.check_reference", lambda *_: None)
    short, long_ones = (range(0), range(LONG)) if long else (range(SHORT), range(0))
    with pytest.raises(AssertionError):
        attack_all(name, tmp_path, short, long_ones)

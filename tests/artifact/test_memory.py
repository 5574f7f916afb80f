"""The memory that a large file takes: measured in a process of its own, for files good and bad."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from noisewise.artifact import Block, Bounds, Gram, Groups, Population, Release, Tables
from tests.artifact.factories import calibrated, guarantee

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc"
)

MEASURE = """
import sys
from noisewise import Release, models
from noisewise.artifact import ReleaseError

def peak():  # not getrusage, which begins with the peak of the parent
    (line,) = [n for n in open("/proc/self/status") if n.startswith("VmHWM")]
    return int(line.split()[1])

models.names()
before = peak()
try:
    Release.load(sys.argv[1])
except ReleaseError as error:
    print(error, file=sys.stderr)
print(peak() - before)
"""


def ratio(path: Path) -> float:
    """The memory by which a process grew that loaded the file, over the file's size."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    return int(done.stdout) * 1024 / path.stat().st_size


def grouped(groups: int, path: Path) -> Path:
    """A Gram matrix of two columns, for every group of a public list with public sizes."""
    rng = np.random.default_rng(0)
    gram = Gram(("pir", "kir"), count=False)
    values = rng.integers(-(2**44), 2**44, (5, groups))
    return Release(
        family="linear-regression",
        model={"x": ("pir",), "y": "kir"},
        guarantee=guarantee("laplace", 1.0, "replace-one", within="tract"),
        population=Population("public", tuple(rng.integers(3, 20_000, groups).tolist())),
        blocks=(Block(gram, calibrated(gram, "laplace", "replace-one", 1.0), values),),
        bounds={"pir": Bounds(0, 1), "kir": Bounds(0, 1)},
        groups=Groups("tract", tuple(f"{i:011d}" for i in range(groups))),
    ).save(path)


def crossed(levels: Mapping[str, tuple[str, ...] | tuple[int, ...]], path: Path) -> Path:
    """One table with very many cells."""
    table = Tables((tuple(levels),), levels)
    values = np.random.default_rng(0).integers(-5, 3000, (len(table.names), 1))
    return Release(
        family="graphical-model",
        model={},
        guarantee=guarantee("laplace", 1.0, "replace-one"),
        population=Population("public", (10**6,)),
        blocks=(Block(table, calibrated(table, "laplace", "replace-one", 1.0), values),),
    ).save(path)


def ages_and_places(ages: int, places: int) -> dict[str, tuple[str, ...] | tuple[int, ...]]:
    return {"age": tuple(range(ages)), "place": tuple(f"{i:05d}" for i in range(places))}


HOSTILE: dict[str, Callable[[int], str]] = {
    "whole numbers": lambda size: "[" + "300," * (size // 4) + "1]",
    "numbers": lambda size: "[" + "1.5," * (size // 4) + "1]",
    "empty lists": lambda size: "[" + "[]," * (size // 3) + "1]",
    "empty objects": lambda size: "[" + "{}," * (size // 3) + "1]",
    "texts": lambda size: "[" + ",".join(f'"{i:x}"' for i in range(size // 8)) + "]",
    "keys": lambda size: "{" + ",".join(f'"{i:x}":0' for i in range(size // 10)) + "}",
    "depth": lambda size: "[" * size,
    "an unclosed text": lambda size: '"' + '\\"' * (size // 2),
}


def hostile(which: str, size: int, path: Path) -> Path:
    start = '{"format": "noisewise-release", "version": 1, "x": '
    path.write_text(start + HOSTILE[which](size) + "}")
    return path


def test_a_large_release_takes_three_times_its_size(tmp_path: Path) -> None:
    assert ratio(grouped(150_000, tmp_path / "groups.json")) < 3


def test_a_table_of_many_cells_takes_three_times_its_size(tmp_path: Path) -> None:
    levels = ages_and_places(60, 3_000)
    assert ratio(crossed(levels, tmp_path / "cells.json")) < 3


@pytest.mark.parametrize("which", ["whole numbers", "empty lists"])
def test_a_large_file_that_is_no_release(which: str, tmp_path: Path) -> None:
    assert ratio(hostile(which, 2**24, tmp_path / "hostile.json")) < 3.5


@pytest.mark.evidence
def test_files_of_48_mebibytes(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    measured = {"500,000 groups": ratio(grouped(500_000, path))}
    path.unlink()
    measured["1,200,000 cells"] = ratio(crossed(ages_and_places(100, 12_000), path))
    path.unlink()
    three = {c: tuple(range(100)) for c in "abc"}
    measured["1,000,000 cells of three columns"] = ratio(crossed(three, path))
    path.unlink()
    levels = {"a": tuple(f"{i:07d}" for i in range(500_000))}
    alone = ratio(crossed(levels, path))
    others = {which: ratio(hostile(which, 48 * 2**20, path)) for which in HOSTILE}
    print({k: round(v, 2) for k, v in (measured | others).items()}, f"one column: {alone:.2f}")
    assert max(measured.values()) < 3
    assert max(others.values()) < 3.1  # a number of four bytes takes eight
    assert alone < 3.2  # a text of seven letters takes 64 bytes

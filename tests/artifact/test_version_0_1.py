"""Files that version 0.1 wrote: they load, and mean and say the same, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from noisewise.artifact import Release

FOLDER = Path(__file__).parents[1] / "fixtures" / "version_0_1"
RELEASES = [
    path
    for path in sorted(FOLDER.glob("*.json"))
    if json.loads(path.read_text()).get("format") == "noisewise-release"
]


def test_there_are_files_of_every_statistic() -> None:
    kinds = {b.statistic.kind for path in RELEASES for b in Release.load(path).blocks}
    assert kinds >= {"gram", "power-sums", "tables", "person-tables", "probability-sums"}


@pytest.mark.parametrize("path", RELEASES, ids=lambda path: path.stem)
def test_a_file_is_read_and_written_unchanged(path: Path) -> None:
    assert Release.load(path).to_json() == path.read_text()

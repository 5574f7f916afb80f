"""The README works: its Python blocks run, in order, in an empty folder; its commands exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from noisewise import datasets
from noisewise.cli.main import app

README = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_python_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    assert (tmp_path / "release.json").exists()


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    pq.write_table(datasets.social_mobility(tracts=5), "people.parquet")
    lines = "".join(blocks("console")).replace("\\\n", " ").splitlines()
    commands = [shlex.split(line) for line in lines if line.startswith("noisewise ")]
    assert len(commands) == 6
    for command in commands:
        result = CliRunner().invoke(app, command[1:], catch_exceptions=False)
        assert result.exit_code == 0, result.output

"""``noisewise``: the command as a person runs it, in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from noisewise.cli.main import run


@dataclass(frozen=True)
class Ended:
    """What a person is left with."""

    code: int
    out: str
    err: str


@pytest.fixture
def noisewise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Run the entry point itself, on a terminal of 80 columns without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def call(*arguments: str | Path) -> Ended:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["noisewise", *map(str, arguments)])
            with pytest.raises(SystemExit) as ended:
                run()
        said = capsys.readouterr()
        return Ended(int(ended.value.code or 0), said.out, said.err)

    return call

"""Pages of documentation as programs: their Python and their commands, in the order of the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from noisewise.cli.main import app

ROOT = Path(__file__).parents[1]
ELSEWHERE = ("make ", "pip ")
"""Commands that set up the machine; the tests run inside what they made."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, content) of every block that has a language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def run(page: Path) -> int:
    """Carry the page out in the current folder; how many blocks there were."""
    names: dict[str, object] = {}
    found = blocks(page)
    for language, content in found:
        if language == "python":
            exec(compile(content, page.name, "exec"), names)
        elif language == "console":
            for line in content.replace("\\\n", " ").splitlines():
                command(line)
        else:
            raise AssertionError(f"{page.name}: nobody runs blocks of {language!r}")
    return len(found)


def command(line: str) -> None:
    words = shlex.split(line, comments=True)
    if not words or line.startswith(ELSEWHERE):
        return
    assert words[0] == "noisewise", line
    result = CliRunner().invoke(app, words[1:], catch_exceptions=False)
    assert result.exit_code == 0, f"{line}\n{result.output}"

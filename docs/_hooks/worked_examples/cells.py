"""Scripts in cells: text and code in turn, in the percent format of Jupytext and most editors.

A line ``# %%`` begins code, ``# %% [markdown]`` text, which is written as comments. A Python
script's docstring is the first text; a shell script begins with a cell of text.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

MARK = re.compile(r"^# %%(?P<text> \[markdown\])?[ \t]*$", flags=re.MULTILINE)
"""The line that begins a cell."""
LANGUAGES = {".py": "python", ".sh": "bash"}
"""What a script is written in, by the ending of its name."""


@dataclass(frozen=True)
class Cell:
    """Text or code of a script, and the line of the file on which it begins."""

    is_text: bool
    source: str
    line: int


def cells(path: Path) -> list[Cell]:
    """Return the cells of a script; a ValueError if it does not begin with a title."""
    script = path.read_text(encoding="utf-8")
    marks = list(MARK.finditer(script))
    head = script[: marks[0].start()] if marks else script
    found = _head(path, head)
    ends = [mark.start() for mark in marks[1:]] + [len(script)]
    for mark, end in zip(marks, ends, strict=True):
        body = script[mark.end() + 1 : end]
        line = script.count("\n", 0, mark.end()) + 2
        source = _uncommented(path, body, line) if mark["text"] else body.strip("\n")
        if source:
            found.append(Cell(bool(mark["text"]), source, line))
    if not found or not found[0].is_text or not found[0].source.startswith("# "):
        raise ValueError(f"{path.name}: must begin with a title, '# …'")
    return found


def title(found: list[Cell]) -> str:
    """Return the title of a script."""
    return found[0].source.splitlines()[0].removeprefix("# ")


def _head(path: Path, head: str) -> list[Cell]:
    """Return what stands before the first mark: a docstring, and nothing else."""
    if path.suffix != ".py":
        lines = [line for line in head.splitlines() if line and not line.startswith("#!")]
        if lines:
            raise ValueError(f"{path.name}: begin with a line '# %% [markdown]', not {lines[0]!r}")
        return []
    body = ast.parse(head).body
    docstring = ast.get_docstring(ast.parse(head))
    if docstring is None or len(body) > 1:
        raise ValueError(f"{path.name}: must begin with a docstring, and then a line '# %%'")
    return [Cell(True, docstring, 1)]


def _uncommented(path: Path, body: str, first: int) -> str:
    """Return a cell of text without its comment signs."""
    lines = body.strip("\n").splitlines()
    for number, line in enumerate(lines, first):
        if line.strip() and not line.startswith("#"):
            raise ValueError(f"{path.name}, line {number}: text is written as comments")
    return "\n".join(re.sub(r"^# ?", "", line) for line in lines).strip("\n")

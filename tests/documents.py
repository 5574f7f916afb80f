"""Pages of documentation as programs: their Python and their commands, in the order of the page.

A page may also quote files: a comment before a block says what is quoted, as in

    <!-- quote tests/toy_model/release.py: two_means, OWNER -->

Names are those of top-level functions, classes and constants; without names the whole file is
quoted. ``python -m tests.documents`` brings all quotations up to date.

A block of ``text`` is what the block before it prints. Noise is never the same, so numbers are not
compared, nor how lines are broken; a line ``…`` stands for any lines that were left out.
``python -m tests.documents PAGE`` runs a page and puts in what it prints today.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
ELSEWHERE = ("make ", "pip ")
"""Commands that set up the machine; the tests run inside what they made."""
QUOTATION = re.compile(
    r"^<!-- quote (?P<path>\S+?)(?:: (?P<names>[\w, ]+))? -->\n```python\n(?P<text>.*?)^```",
    flags=re.DOTALL | re.MULTILINE,
)
"""A comment that says what is quoted, and the block after it."""
NUMBER = re.compile(r"(?<![\w.])-?\d[\d.,]*(?:e[+-]?\d+)?")
"""A number in what is printed."""
LEFT_OUT = "…"
"""A line that stands for lines which a page does not show."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return (language, content) of every block that has a language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def compare(shown: str, printed: str) -> None:
    """Fail unless a page shows what is printed."""
    parts = [in_words(p) for p in re.split(rf"^{LEFT_OUT}$", shown, flags=re.MULTILINE)]
    pattern = "(?: .*)?".join(re.escape(f" {part}") if part else "" for part in parts)
    assert re.fullmatch(pattern, f" {in_words(printed)}"), f"printed, and not shown:\n{printed}"


def in_words(printed: str) -> str:
    """Return what is printed, each number as a mark, without the lines of tables."""
    return " ".join(NUMBER.sub("#", re.sub("[─-╿]", " ", printed)).split())


def run(page: Path, see: Callable[[str, str], object] = compare) -> int:
    """Carry the page out in the current folder; return how many blocks there were.

    Blocks that quote a file are left out: that file is tested where it lies. ``see`` is given each
    block of text, and what was printed.
    """
    names: dict[str, object] = {}
    printed = ""
    quoted = {match["text"] for match in QUOTATION.finditer(page.read_text(encoding="utf-8"))}
    carried_out = [block for block in blocks(page) if block[1] not in quoted]
    for language, content in carried_out:
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as screen:
                exec(compile(content, page.name, "exec"), names)
            printed = screen.getvalue()
            print(printed, end="")
        elif language == "console":
            printed = "".join(map(command, content.replace("\\\n", " ").splitlines()))
        elif language == "text":
            see(content, printed)
        elif language == "r":
            continue  # tests/test_r.py runs these where there is an R.
        else:
            raise AssertionError(f"{page.name}: nobody runs blocks of {language!r}")
    return len(carried_out)


def command(line: str) -> str:
    """Carry out one line of a console, which must succeed, and return what it prints."""
    from typer.testing import CliRunner

    from noisewise.cli.verbs import app

    words = shlex.split(line, comments=True)
    if not words or line.startswith(ELSEWHERE):
        return ""
    assert words[0] == "noisewise", line
    result = CliRunner(env={"COLUMNS": "110"}).invoke(app, words[1:], catch_exceptions=False)
    assert result.exit_code == 0, f"{line}\n{result.output}"
    return result.output


def excerpt(path: Path, names: tuple[str, ...]) -> str:
    """Return the named top-level parts of a Python file, in the file's order; all, without names.

    A function comes with its decorators, a constant with its docstring.
    """
    text = path.read_text(encoding="utf-8")
    if not names:
        return text
    lines, body = text.splitlines(), ast.parse(text).body
    parts: dict[str, str] = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        last = after if after and isinstance(node, ast.Assign) and _is_docstring(after) else node
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        parts |= dict.fromkeys(_names(node), "\n".join(lines[first - 1 : last.end_lineno]))
    missing = [name for name in names if name not in parts]
    assert not missing, f"{path.name} has no {', '.join(missing)}"
    return "\n\n\n".join(parts[name] for name in names) + "\n"


def _names(node: ast.stmt) -> list[str]:
    """Return the names that a top-level statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def refreshed(page: Path) -> str:
    """Return the page with every quotation as the quoted file says it today."""

    def quotation(match: re.Match[str]) -> str:
        names = tuple(name.strip() for name in (match["names"] or "").split(",") if name.strip())
        head = match[0].partition("```python\n")[0]
        return f"{head}```python\n{excerpt(ROOT / match['path'], names)}```"

    return QUOTATION.sub(quotation, page.read_text(encoding="utf-8"))


def pages_that_quote() -> list[Path]:
    """Return every page with a quotation."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [page for page in pages if QUOTATION.search(page.read_text(encoding="utf-8"))]


def reprinted(page: Path) -> str:
    """Return the page with what it prints today, in an empty folder; lines left out stay so."""
    text = page.read_text(encoding="utf-8")
    pairs: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run(page, lambda shown, printed: pairs.append((shown, _today(shown, printed))))
    for before, after in pairs:
        text = text.replace(f"```text\n{before}```", f"```text\n{after}```", 1)
    return text


def _today(shown: str, printed: str) -> str:
    """Return the shown lines as they are printed today; a StopIteration where one is not."""
    lines = iter([line.rstrip() for line in printed.splitlines()])

    def same(line: str) -> str:
        key = in_words(line) or line[:1]
        return next(now for now in lines if (in_words(now) or now[:1]) == key)

    whole = [line if line == LEFT_OUT else same(line) for line in shown.splitlines()]
    return "".join(f"{line}\n" for line in whole)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name).resolve()
        path.write_text(reprinted(path), encoding="utf-8")
    for quoting in pages_that_quote():
        quoting.write_text(refreshed(quoting), encoding="utf-8")

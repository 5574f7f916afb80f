"""The guides for those who carry on: what they quote is what the files say, what they run works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import (
    ROOT,
    blocks,
    compare,
    excerpt,
    pages_that_quote,
    refreshed,
    reprinted,
    run,
)

DOCS = ROOT / "docs"


@pytest.mark.parametrize("page", pages_that_quote(), ids=lambda p: p.name)
def test_quotations_are_what_the_files_say(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == refreshed(page), "run: python -m tests.documents"


def test_add_a_model_works_as_printed(tmp_path: Path) -> None:
    """In a process of its own: importing the toy model registers it for good."""
    page = DOCS / "guide-add-a-model.md"
    code = f"from pathlib import Path; from tests.documents import run; run(Path({str(page)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "HOME": str(tmp_path), "PYTHONPATH": f"{ROOT}:{ROOT}/src"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "before" in done.stdout
    assert (tmp_path / "means.html").exists()


def test_add_a_model_explains_every_file() -> None:
    page = (DOCS / "guide-add-a-model.md").read_text(encoding="utf-8")
    for path in (ROOT / "tests" / "toy_model").glob("*.py"):
        if not path.name.startswith("test_"):
            assert f"## `{path.name}`" in page


def test_add_a_method_lists_the_models_methods() -> None:
    """The list that is shown without being run."""
    page = (DOCS / "guide-add-a-method.md").read_text(encoding="utf-8")
    listed = page.partition("methods: ClassVar")[2].partition("}\n")[0]
    source = ROOT / "src" / "noisewise" / "models" / "exponential_family" / "analyst.py"
    text = source.read_text(encoding="utf-8").partition("methods: ClassVar")[2].partition("}\n")[0]
    assert listed.split() == text.split()


def test_add_a_method_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(DOCS / "guide-add-a-method.md") == 2
    assert "converged" in capsys.readouterr().out


def test_add_an_engine_compares_all_plans() -> None:
    assert run(DOCS / "guide-add-an-engine.md") == 1


def test_an_excerpt_of_a_name_that_is_not_there() -> None:
    with pytest.raises(AssertionError, match=r"documents\.py has no nothing"):
        excerpt(ROOT / "tests" / "documents.py", ("nothing",))


def test_every_guide_has_code() -> None:
    for page in DOCS.glob("guide-*.md"):
        assert blocks(page), page.name


def test_what_a_page_shows_is_what_is_printed(tmp_path: Path) -> None:
    compare("age 1.5\n…\nn 3\n", "┃ age │ -2e+03 ┃\nsex 1\nn\n4")
    for shown in ("age 1.5\n", "…\nex 1\n", "wage 1.5\n…\n", "…\nage 1.5\n"):
        with pytest.raises(AssertionError, match="printed, and not shown"):
            compare(shown, "age 1.5\nsex 1")
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint('a 1', 'b', 'c 2', sep='\\n')\n```\n\n```text\na 7\n…\nc 8\n```\n"
    )
    assert reprinted(page) == page.read_text().replace("7", "1").replace("8", "2")

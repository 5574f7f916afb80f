"""The list of errata has every number that is cited, and every test that it names exists."""

from __future__ import annotations

import re

from tests.documents import ROOT

PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")


def test_every_number_that_is_cited_is_explained() -> None:
    explained = set(re.findall(r"^### (E\d+):", PAGE, re.MULTILINE))
    cited: set[str] = set()
    for folder in ("src", "docs", "experiments", "tests"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".md", ".json"} and "reproduction" not in path.parts:
                cited |= set(re.findall(r"\bE(?:1\d|[1-9])\b", path.read_text(encoding="utf-8")))
    assert cited <= explained
    assert len(explained) == 19


def test_every_test_that_it_names_exists() -> None:
    named = re.findall(r"^Test: `([^`]+)`", PAGE, re.MULTILINE)
    assert len(named) == 19
    for name in named:
        file, _, function = name.partition("::")
        assert f"def {function}" in (ROOT / file).read_text(encoding="utf-8"), name

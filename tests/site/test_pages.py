"""The site in a headless Chromium: nothing on the console, nothing cut off, nothing fetched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.site.chromium import Chromium, chromium, find

WIDTHS = (1280, 390)
"""A screen and a phone."""


@pytest.fixture(scope="module")
def tab() -> Iterator[Chromium]:
    path = find()
    if path is None:
        pytest.skip("no Chromium: install it (Debian: apt-get install chromium)")
    with chromium(path) as started:
        yield started


def test_faults_are_found(tab: Chromium, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    head = (
        '<!doctype html><link rel="icon" href="data:,">'
        '<meta name="viewport" content="width=device-width">'
    )
    for body, fault in (
        ("<script>console.log('hello')</script>", "hello"),
        ("<script>throw new Error('broken')</script>", "exception"),
        ("<img src='absent.png'>", "absent.png"),
        ("<p style='width: 900px'>wide</p>", "wide in 390: P"),
    ):
        page.write_text(head + body)
        assert fault in " ".join(tab.show(page, 390).faults)
    page.write_text(head + "<p>All is well.</p>")
    assert tab.show(page, 390).faults == []


@pytest.mark.evidence
def test_every_page_of_the_site(tab: Chromium, tmp_path: Path) -> None:
    """As ``make docs`` builds it, examples and all."""
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(site)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    assert len(pages) > 40
    faults = {
        f"{page.relative_to(site)} at {width}": found
        for page in pages
        for width in WIDTHS
        if (found := tab.show(page, width).faults)
    }
    assert faults == {}

"""The page in a real headless Chromium: it renders, complains of nothing, and asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import noisewise as nw
from tests.models.linear_regression.test_factors_posterior import factor_posterior
from tests.report.browser import Page, browser, find
from tests.report.pages import of_family, regression
from tests.report.test_report import BOUNDS, EVIL, WIDE, released


@pytest.fixture(scope="module")
def chromium() -> str:
    path = find()
    if path is None:
        pytest.skip("the browser check was NOT run: no Chromium here, and none may be installed")
    return path


@pytest.fixture
def page(chromium: str, tmp_path: Path) -> Iterator[Page]:
    with browser(chromium, tmp_path / "profile") as opened:
        yield opened


def test_twenty_covariates_render_quickly_and_alone(page: Page, tmp_path: Path) -> None:
    post = regression((*(f"x{i}" for i in range(19)), EVIL))
    path = nw.report.save(post, tmp_path / "r.html")
    assert path.stat().st_size < 3_000_000
    page.screen(1200)
    seconds = page.open(path)
    assert page.complaints == []
    assert page.requests == [path.as_uri()]
    assert page.evaluate("document.scripts.length") == 0
    assert page.evaluate("document.querySelectorAll('svg').length") == 22 + 1 + 20 + 3
    drawn = (
        "[...document.querySelectorAll('svg')].every(s => s.getBoundingClientRect().height > 20)"
    )
    assert page.evaluate(drawn)
    # The first page of a fresh profile also pays for the browser's own start.
    assert min(seconds, page.open(path), page.open(path)) < 1


@pytest.mark.parametrize("width", [360, 1000])
def test_no_page_is_wider_than_the_screen(width: int, page: Page, tmp_path: Path) -> None:
    given = released([np.random.default_rng(0).uniform(0, 1, (200, 3))], BOUNDS, grouped=False)
    factors = factor_posterior(WIDE, releases=(given,))
    posts = (regression(), regression(groups=30), of_family("categorical"), factors)
    for number, post in enumerate(posts):
        page.screen(width)
        page.open(nw.report.save(post, tmp_path / f"{number}.html"))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        smallest = (
            "Math.min(...[...document.querySelectorAll('svg text')].map("
            "t => 12 * t.ownerSVGElement.getBoundingClientRect().width / 320))"
        )
        assert page.evaluate(smallest) > 9
    assert page.complaints == []


def test_light_dark_and_paper(page: Page, tmp_path: Path) -> None:
    path = nw.report.save(regression(), tmp_path / "r.html")
    ground = "getComputedStyle(document.body).backgroundColor"
    page.screen(800)
    page.open(path)
    light = page.evaluate(ground)
    page.screen(800, dark=True)
    assert (light, page.evaluate(ground)) == ("rgb(255, 255, 255)", "rgb(20, 25, 29)")
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert len(page.call("Page.printToPDF")["data"]) > 10_000

"""``noisewise plan`` as a person types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended

BASE = ("plan", "linear-regression", "--x", "a", "--y", "b", "--epsilon", "1,2")
LIMITS = ("--bounds", "a=0,1", "--bounds", "b=0,1")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (LIMITS, "--n: a plan looks at no data, so it needs the number of records"),
        (("--n", "10"), "--bounds: none; bounds are public knowledge: give them"),
        (("--n", "10", "--bounds", "a=0,1"), "'b'"),
        ((*LIMITS, "--n", "50", "--guess", "slope=1"), "guess: 'slope' is unknown; known are a, i"),
        ((*LIMITS, "--n", "50", "--guess", "sigma=0"), "guess: sigma must be above zero"),
        ((*LIMITS, "--n", "50", "--method", "best"), "method: must be one of exact"),
        ((*LIMITS, "--n", "50", "--trials", "3"), "trials: must be a whole number of at least 10"),
    ],
)
def test_bad_input(noisewise: Callable[..., Ended], more: tuple[str, ...], says: str) -> None:
    ended = noisewise(*BASE, *more)
    assert ended.code == 1
    assert says in ended.err


def test_table_page_and_json(noisewise: Callable[..., Ended], tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    asked = ("plan", "exponential-family", "--family", "bernoulli", "--n", "200", "--epsilon",
             "0.5,1", "--method", "naive")  # fmt: skip
    ended = noisewise(*asked, "--page", page)
    assert ended.code == 0, ended.err
    assert "ε = 0.5" in ended.out
    assert "Dashed: the width without privacy" in page.read_text()
    assert "Mean width of the interval of p: naive from" in page.read_text()
    found = json.loads(noisewise(*asked, "--json").out)
    assert found["settings"]["n"] == 200
    assert len(found["rows"]) == 2

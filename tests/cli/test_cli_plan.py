"""``noisewise plan`` as a person types it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from noisewise.artifact import ArgumentError
from noisewise.cli import console
from noisewise.cli.options import parse_guesses, parse_widths
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


def test_few_trials_tell_no_coverage(noisewise: Callable[..., Ended], tmp_path: Path) -> None:
    asked = ("plan", "exponential-family", "--family", "bernoulli", "--n", "200", "--epsilon",
             "1", "--method", "naive", "--page", tmp_path / "plan.html", "--trials")  # fmt: skip
    few, page = noisewise(*asked, "49").out, (tmp_path / "plan.html").read_text()
    assert "coverage)" not in few
    assert "%)" not in few
    assert "too few trials to tell" in page
    many = noisewise(*asked, "50").out
    assert "mean width (coverage)" in many
    assert "%)" in many


def test_a_long_plan_says_how_far_it_is(
    noisewise: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("plan", "exponential-family", "--family", "bernoulli", "--n", "200", "--epsilon",
             "1", "--method", "exact")  # fmt: skip
    assert noisewise(*asked).err == ""
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0.0)
    last = r"^\d+ s: epsilon 1 \(exact\), simulated release 50 of 50$"
    assert re.search(last, noisewise(*asked).err, re.M)


def test_what_was_assumed_of_each_column_is_said(noisewise: Callable[..., Ended]) -> None:
    asked = ("plan", "linear-regression", "--x", "pir", "--x", "age", "--y", "kir", "--epsilon",
             "1", "--n", "200", "--method", "naive", "--trials", "10", "--bounds", "pir=0,1",
             "--bounds", "age=0,90", "--bounds", "kir=0,1")  # fmt: skip
    assert "pir, age are taken for bell curves that fill their bounds" in noisewise(*asked).out
    said = noisewise(*asked, "--guess", "pir=binary", "--guess", "age=0.3").out
    assert "age is taken for a bell curve that fills its bounds, since nothing" in said
    assert "taken for" not in noisewise(
        *asked, "--guess", "pir=binary", "--guess", "sd:age=9"
    ).out  # fmt: skip


def test_private_bounds_name_the_plan_that_says_more(noisewise: Callable[..., Ended]) -> None:
    ended = noisewise(
        "plan", "linear-regression", "--x", "a", "--y", "b", "--epsilon", "1", "--n", "2000",
        "--method", "naive", "--trials", "10", "--bounds", "a=0,1", "--bounds", "b=private:0,1e6",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    share = re.search(r"range that you expect as public bounds, and (\d+)% of each", ended.out)
    assert share is not None
    assert 50 <= int(share[1]) < 100


FACTORS = ("plan", "linear-regression", "--formula", "pay ~ age + C(sex)", "--levels", "sex=f,m",
           "--bounds", "age=0,100", "--bounds", "pay=0,9", "--n", "100",
           "--epsilon", "1")  # fmt: skip


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--guess", "sex=f:0.5,x:0.5"), "guess: 'x' is not a level of sex; there are f, m"),
        (("--guess", "sex=f:0.5,m:0.6"), "guess: shares of sex must be zero or more and add up"),
        (("--guess", "age=round"), "guess: age must be a pair (mean, deviation)"),
        (("--guess", "C(sex)[T.m]=tall"), "guess: C(sex)[T.m] must be a number, not 'tall'"),
    ],
)
def test_bad_guesses_of_a_formula(
    noisewise: Callable[..., Ended], more: tuple[str, ...], says: str
) -> None:
    ended = noisewise(*FACTORS, *more)
    assert ended.code == 1
    assert says in ended.err


def test_guesses_and_widths_as_typed() -> None:
    texts = ["rate=3", "age=44,15", "union=binary", "sex=f:0.4, m:0.6", "p[a=u]=0.5"]
    assert parse_guesses(texts, "--guess") == {
        "rate": 3.0, "age": (44.0, 15.0), "union": "binary", "sex": {"f": 0.4, "m": 0.6},
        "p[a=u]": 0.5,
    }  # fmt: skip
    assert parse_widths(None, "--width") is None
    assert parse_widths(["0.1"], "--width") == 0.1
    widths = parse_widths(["age=0.1", "C(sex)[T.m]=2"], "--width")
    assert widths == {"age": 0.1, "C(sex)[T.m]": 2.0}
    for bad in (["age=wide"], ["0.1", "age=2"], ["wide"]):
        with pytest.raises(ArgumentError, match="--width"):
            parse_widths(bad, "--width")
    with pytest.raises(ArgumentError, match="is not a number"):
        parse_guesses(["age=1.2.3"], "--guess")

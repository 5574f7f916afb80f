"""A plan foretells what real releases give, and warns where bounds do not fit.

Widths of these releases differ by 2 to 4 % from one to the next (measured), so that the mean of 50
and the plan's differ by less than 1 %: a limit of 10 % raises practically no false alarm. The noise
of the real releases is OpenDP's, which takes no seed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, Release
from noisewise.simulate import Plan, plan
from tests.inference.regressions import conjugate_defaults

RELEASES = 50
BOUNDS = {"x": (0, 1), "y": (0, 1)}
GUESS = {"x": 0.5, "intercept": 0.2, "sigma": 0.1, "mean:x": 0.5, "sd:x": 0.15}


def regression(source: Any, epsilon: float, bounds: Any = None, **words: Any) -> Release:
    return nw.release.linear_regression(
        source, x=["x"], y="y", bounds=bounds or BOUNDS, epsilon=epsilon, **words
    )


def planned(n: int, epsilons: list[float], bounds: Any = None, **words: Any) -> Plan:
    return plan(lambda e: regression(nw.release.Blank(n), e, bounds), n, epsilons, **words)


def column(source: Any, family: str, epsilon: float, **words: Any) -> Release:
    return nw.release.exponential_family(
        source, column="v", family=family, epsilon=epsilon, **words
    )


def mean_widths(post: nw.Result) -> dict[str, float]:
    rows = post.summary().reset_index()
    rows["width"] = rows["upper"] - rows["lower"]
    return dict(rows.groupby("parameter")["width"].mean())


def grouped(columns: dict[str, np.ndarray]) -> tuple[pa.Table, dict[str, Any]]:
    """Tables of all releases in one, each a group of public size with the whole budget."""
    shape = next(iter(columns.values())).shape
    place = np.repeat(np.arange(shape[0]), shape[1])
    table = pa.table({**{c: v.ravel() for c, v in columns.items()}, "place": place})
    return table, {"groups": {"place": range(shape[0])}, "sizes": "public"}


@pytest.mark.evidence
def test_regression_widths_come_true() -> None:
    n, epsilon = 2000, 2.0
    found = planned(n, [epsilon], methods=["exact"], guesses=GUESS, trials=RELEASES)
    rng = np.random.default_rng(5)
    x = rng.normal(0.5, 0.15, (RELEASES, n))
    y = 0.2 + 0.5 * x + rng.normal(0, 0.1, (RELEASES, n))
    table, words = grouped({"x": x, "y": y})
    real = mean_widths(nw.infer(regression(table, epsilon, **words)))
    for name, width in real.items():
        assert found.row(epsilon, "exact", name).width == pytest.approx(width, rel=0.1)


@pytest.mark.evidence
def test_widths_of_a_binary_covariate_come_true() -> None:
    """Taken for a bell curve within (0, 1), its slope would be foretold twice as wide."""
    n, epsilon = 2000, 2.0
    truth = {"x": 0.2, "intercept": 0.4, "sigma": 0.1}
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, (RELEASES, n))
    table, words = grouped({"x": x, "y": 0.4 + 0.2 * x + rng.normal(0, 0.1, x.shape)})
    real = mean_widths(nw.infer(regression(table, epsilon, **words)))
    guess = {"x": "binary", "slope:x": 0.2, "intercept": 0.4, "sigma": 0.1}
    found = planned(n, [epsilon], methods=["exact"], guesses=guess)
    assert {"x", "mean:x", "sd:x"} <= set(found.guess)
    bell = planned(n, [epsilon], methods=["exact"], guesses=truth)
    assert found.row(epsilon, "exact", "x").width == pytest.approx(real["x"], rel=0.1)
    assert bell.row(epsilon, "exact", "x").width > 2 * real["x"]
    assert not any("bell curve" in w for w in found.warnings)
    scarce = planned(200, [1.0], methods=["exact"], guesses={"sigma": 0.1}, trials=10)
    assert any("'x' is taken for a bell curve between 0 and 1" in w for w in scarce.warnings)


@pytest.mark.parametrize(
    ("family", "guess", "words", "n"),
    [
        ("bernoulli", {"p": 0.3}, {}, 400),
        ("poisson", {"rate": 3.0}, {"bounds": (0, 12), "outside": "clamp"}, 300),
    ],
)
def test_family_widths_come_true(family: str, guess: Any, words: Any, n: int) -> None:
    epsilon = 0.5
    found = plan(
        lambda e: column(nw.release.Blank(n), family, e, **words), n, [epsilon],
        methods=["exact"], guesses=guess, trials=RELEASES,
    )  # fmt: skip
    rng = np.random.default_rng(6)
    drawn = {
        "bernoulli": rng.binomial(1, 0.3, (RELEASES, n)),
        "poisson": rng.poisson(3, (RELEASES, n)),
    }
    table, groups = grouped({"v": drawn[family]})
    real = mean_widths(nw.infer(column(table, family, epsilon, **words, **groups)))
    (name,) = real
    assert found.row(epsilon, "exact", name).width == pytest.approx(real[name], rel=0.1)


def test_tight_bounds_lose_coverage() -> None:
    tight = planned(2000, [5.0], {"x": (0, 1), "y": (0.4, 0.5)}, methods=["naive"], guesses=GUESS)
    assert any("would lie outside the bounds of 'y'" in w for w in tight.warnings)
    assert any("Clamping them biases the result" in w and "x 0%" in w for w in tight.warnings)
    assert tight.row(5.0, "naive", "x").coverage < 0.2
    fitting = planned(2000, [50.0], methods=["naive"], guesses=GUESS)
    assert not any("outside" in w or "Clamping" in w for w in fitting.warnings)


def test_wide_bounds_drown_the_signal() -> None:
    wide = planned(200, [0.1], {"x": (-1, 2), "y": (0, 1)}, methods=["exact"], guesses=GUESS,
                   trials=20)  # fmt: skip
    assert any("Bounds of 'x' are wide" in w and "0.05 and 0.95" in w for w in wide.warnings)
    assert any("the noise drowns the signal: intervals of x" in w for w in wide.warnings)


def test_a_prior_without_room_for_the_guess_is_told() -> None:
    """A prior made from the bounds: far too wide ones rule the guess out."""
    limits = {"x": (-40, 40), "y": (0, 1)}
    prior = conjugate_defaults(regression(nw.release.Blank(200), 0.1, limits))
    words = {"methods": ["exact"], "guesses": GUESS, "trials": 20}
    made = planned(200, [0.1], limits, prior=prior, **words)
    assert any("would hold the guess too seldom: x 0%" in w for w in made.warnings)


def test_without_privacy_is_the_textbook_width() -> None:
    """1.96 · 2 σ/(√n sd(x)) for a slope, within 3 %."""
    found = planned(1000, [1.0], methods=["naive"], guesses=GUESS)
    assert found.without["x"] == pytest.approx(2 * 1.96 * 0.1 / (0.15 * 1000**0.5), rel=0.03)


def test_smallest_epsilon() -> None:
    n, wanted = 400, 0.25

    def at(e: float) -> Release:
        return column(nw.release.Blank(n), "bernoulli", e)

    found = plan(at, n, [0.1, 1.0], methods=["exact"], width=wanted)
    assert found.target is not None
    assert found.target.epsilon is not None
    assert 0.01 < found.target.epsilon < 0.1
    there = plan(at, n, [found.target.epsilon], methods=["exact"])
    assert there.rows[0].width <= wanted
    less = plan(at, n, [0.8 * found.target.epsilon], methods=["exact"])
    assert less.rows[0].width > wanted
    hopeless = plan(at, n, [1.0], methods=["exact"], width=0.01)
    assert hopeless.target is not None
    assert hopeless.target.epsilon is None
    assert "even without privacy" in hopeless.target.words


def test_private_bounds_are_warned_of() -> None:
    private = {"x": nw.release.PrivateBounds((0, 1)), "y": (0, 1)}
    found = planned(500, [1.0], private, methods=["naive"])
    assert any("are to be found privately" in w for w in found.warnings)
    says = r"search for the bounds of 'x' may miss by up to \d+ of 500 records at either end"
    assert any(re.search(says, w) and "will be unsure" in w for w in found.warnings)
    few, many = (planned(n, [1.0], private, methods=["naive"]).warnings for n in (100, 20_000))
    assert any("which is hopeless" in w for w in few)
    assert any("which is enough to find them" in w for w in many)


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("binomial", {"trials": 5}),
        ("categorical", {"levels": ["a", "b", "c"]}),
        ("exponential", {"bounds": (0, 5)}),
        ("gamma", {"bounds": (0, 5), "shape": 2.0}),
        ("geometric", {"bounds": (1, 20)}),
        ("normal", {"bounds": (-4, 4), "neighbours": "add-remove"}),
    ],
)
def test_every_family_has_a_plan(family: str, words: Any) -> None:
    def at(e: float) -> Release:
        return column(nw.release.Blank(300), family, e, **words)

    found = plan(at, 300, [1.0], methods=["naive"], trials=10)
    assert all(np.isfinite(r.width) and r.width > 0 for r in found.rows)
    assert set(found.without) == {r.parameter for r in found.rows}


def test_blank_reads_spends_and_draws_nothing(tmp_path: Path) -> None:
    made = regression(nw.release.Blank(77), 1.0)
    assert made.n == 77
    assert not made.blocks[0].values.any()
    with pytest.raises(ArgumentError, match="n: must be a whole number from 1"):
        nw.release.Blank(0)


def test_bad_guesses_of_a_column() -> None:
    def at(e: float) -> Release:
        return column(nw.release.Blank(300), "categorical", e, levels=["a", "b"])

    with pytest.raises(ArgumentError, match=r"guess: p\[b\] is missing"):
        plan(at, 300, [1.0], guesses={"p[a]": 0.5})
    with pytest.raises(ArgumentError, match=r"must add up to 1, not 1\.1"):
        plan(at, 300, [1.0], guesses={"p[a]": 0.5, "p[b]": 0.6})
    with pytest.raises(ArgumentError, match=r"between 0 and 1, not 1\.5"):
        plan(at, 300, [1.0], guesses={"p[a]": 1.5, "p[b]": -0.5})
    with pytest.raises(ArgumentError, match="parameter: 'q' is unknown"):
        plan(at, 300, [1.0], methods=["naive"], width=0.1, parameter="q")

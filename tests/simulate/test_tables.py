"""Simulated contingency tables: the model's own shares, the guess's, and a plan of real fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, Release
from noisewise.inference.api import asked
from noisewise.models.graphical_model import simulate as graphical
from noisewise.models.graphical_model.problem import TablesProblem
from noisewise.simulate import check, plan
from noisewise.simulate.trials import simulated

LEVELS = {"a": ["u", "v"], "b": ["p", "q", "r"], "c": ["x", "y"]}
NAMES = ("p[a=u]", "p[b=p]", "p[b=q]", "p[c=x]")


def blank(n: int, epsilon: float, neighbours: Any = "replace-one") -> Release:
    return nw.release.graphical_model(
        nw.release.Blank(n), cliques=[("a", "b"), ("b", "c")], levels=LEVELS, epsilon=epsilon,
        neighbours=neighbours,
    )  # fmt: skip


def problem(n: int = 20_000) -> TablesProblem:
    tables: TablesProblem = simulated(blank(n, 1.0), asked(None), n)[1].groups[0]
    return tables


def test_tables_have_the_shares_of_the_model() -> None:
    """Noise of scale 4 and 20,000 records: within 5 standard deviations, for 40 shares."""
    given = problem()
    made = graphical.from_prior(np.random.default_rng(1), given, 10)
    assert made.names == NAMES
    for each, truth in zip(made.problem.groups, made.truth, strict=True):
        _, found = graphical.level_shares(given, each.y / given.n)
        assert np.abs(found - truth).max() < 5 * np.sqrt(0.25 / 20_000) + 40 / 20_000


def test_prior_potentials_are_those_of_bayes() -> None:
    """At the mean of log τ a table of two cells has a uniform share: the flat Dirichlet."""
    rng = np.random.default_rng(2)
    drawn = graphical.prior_potentials(rng, problem(), 20_000)
    assert np.log(np.abs(drawn)).mean() == pytest.approx(
        np.log(np.abs(np.log(rng.standard_exponential(200_000)))).mean(), abs=0.03
    )


GUESSES: list[tuple[Mapping[str, float], tuple[float, ...]]] = [
    ({}, (0.5, 1 / 3, 1 / 3, 0.5)),
    ({"p[a=u]": 0.9, "p[b=q]": 0.2}, (0.9, 0.4, 0.2, 0.5)),
]


@pytest.mark.parametrize(("given", "wanted"), GUESSES)
def test_guessed_shares(given: Mapping[str, float], wanted: tuple[float, ...]) -> None:
    made = graphical.scene(problem(), given, 4, 0)
    np.testing.assert_allclose(list(made.guess.values()), wanted, atol=1e-9)
    _, found = graphical.level_shares(made.problem, made.counts / made.problem.n)
    np.testing.assert_allclose(found.mean(axis=0), wanted, atol=0.01)
    assert made.width_without_privacy(0, 0.95)[0] == pytest.approx(
        3.92 * np.sqrt(wanted[0] * (1 - wanted[0]) / 20_000), rel=1e-3
    )


@pytest.mark.parametrize("bad", [{"p[a=u]": 1.2}, {"p[a=u]": -0.1}, {"p[a=u]": 0.5, "p[a=v]": 0.1}])
def test_shares_that_do_not_add_up(bad: Mapping[str, float]) -> None:
    with pytest.raises(ArgumentError, match="must be above zero and add up to 1"):
        graphical.scene(problem(), bad, 2, 0)


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match=r"guess: 'p\[z=1\]' is unknown"):
        graphical.scene(problem(), {"p[z=1]": 0.1}, 2, 0)
    with pytest.raises(ArgumentError, match="method: must be one of bayes, not 'cgm'"):
        check(blank(100, 1.0), ["cgm"])
    with pytest.raises(ArgumentError, match="prior: do not go with a graphical model"):
        check(blank(100, 1.0), prior=nw.priors.Beta())


def test_secret_sizes_are_estimated_from_the_tables() -> None:
    given = simulated(blank(1000, 1.0, "add-remove"), asked(None), 1000)[1].groups[0]
    made = graphical.from_prior(np.random.default_rng(0), given, 8)
    sizes = np.array([p.n for p in made.problem.groups])
    assert (sizes != 1000).all()
    assert np.abs(sizes - 1000).max() < 60


@pytest.mark.evidence
def test_a_plan_of_real_fits() -> None:
    found = plan(lambda e: blank(500, e), 500, [0.3, 3.0], trials=20)
    for name in NAMES:
        narrow, wide = (found.row(e, "bayes", name) for e in (3.0, 0.3))
        assert 0.8 * found.without[name] < narrow.width < wide.width < found.before[name]
        assert min(narrow.coverage, wide.coverage) >= 0.8


@pytest.mark.evidence
def test_bayes_is_calibrated_here() -> None:
    """Shares of single columns, 300 records: false alarm 1 %."""
    found = check(blank(300, 1.0), trials=60, seed=4)
    assert found.of("bayes").passed, found.of("bayes").verdict

"""The owner's doors, and what is simulated before any budget is spent."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.models.generalized_linear import (
    LogisticRegressionRelease,
    PoissonRegressionRelease,
)
from noisewise.models.generalized_linear.posterior import PoissonPosterior
from tests.models.generalized_linear.problems import CHAINS, DRAWS, records

pytestmark = pytest.mark.xdist_group("one-covariate")


def table(link: str = "logistic", n: int = 1500) -> pd.DataFrame:
    frame = pd.DataFrame(records(n, link=link), columns=["x", "y"])
    return frame.assign(site=np.where(np.arange(n) % 2 == 0, "n", "s"))


def logistic(source: Any, **words: Any) -> LogisticRegressionRelease:
    given: dict[str, Any] = {"x": "x", "y": "y", "bounds": {"x": (0, 100)}, "epsilon": 2.0}
    return nw.release.logistic_regression(source, **{**given, **words})


def counts(source: Any, **words: Any) -> PoissonRegressionRelease:
    limits = {"x": (0, 100), "y": (0, 20)}
    given: dict[str, Any] = {"x": "x", "y": "y", "bounds": limits, "epsilon": 2.0}
    return nw.release.poisson_regression(source, **{**given, **words})


def test_a_file_of_a_logistic_regression_is_one(tmp_path: Path) -> None:
    """The response's bounds are (0, 1), unsaid; the model is asked for by nobody, and inferred."""
    release = nw.Release.load(logistic(table()).save(tmp_path / "r.json"))
    assert isinstance(release, LogisticRegressionRelease)
    assert release.family == "logistic-regression"
    assert release.bounds["y"] == nw.Bounds(0, 1)
    post = nw.infer(release, chains=CHAINS, draws=DRAWS)
    assert post.link == "logistic"
    assert abs(np.median(post.draws["x"]) - 0.8 / 15) < 3 * post.draws["x"].std()


def test_its_sums_are_those_of_a_linear_regression() -> None:
    """The same statistic at the same cost, so that a linear regression's release serves as well."""
    ours = logistic(table()).block("gram")
    theirs = nw.release.linear_regression(
        table(), x=["x"], y="y", bounds={"x": (0, 100), "y": (0, 1)}, epsilon=2.0
    ).block("gram")
    assert ours.statistic == theirs.statistic
    assert ours.noise == theirs.noise


def test_a_file_of_a_poisson_regression_is_one(tmp_path: Path) -> None:
    release = nw.Release.load(counts(table("poisson")).save(tmp_path / "r.json"))
    assert isinstance(release, PoissonRegressionRelease)
    post = nw.infer(release, "naive", chains=CHAINS, draws=DRAWS)
    assert isinstance(post, PoissonPosterior)
    assert post.link == "poisson"


def test_groups_and_people_are_options_as_elsewhere() -> None:
    release = logistic(table(), groups={"site": ["n", "s"]})
    assert release.groups is not None
    assert release.groups.keys == ("n", "s")
    assert logistic(table(), neighbours="add-remove").population.policy == "noisy"


@pytest.mark.parametrize(
    ("door", "words", "said"),
    [
        (logistic, {"bounds": {"x": (0, 100), "y": (0, 2)}}, "'y' must be 0 or 1"),
        (logistic, {"bounds": {}}, "x"),
        (logistic, {"y": "x", "bounds": {}}, "y: 'x' is among x"),
        (
            counts,
            {"bounds": {"x": (0, 100), "y": (1, 20)}},
            "must begin at 0 and end at 1 or above",
        ),
        (counts, {"bounds": {"x": (0, 100), "y": (0, 0.5)}}, "must begin at 0"),
        (counts, {"bounds": {"x": (0, 100)}}, "none for column 'y'"),
    ],
)
def test_bounds_that_do_not_fit_are_refused(
    door: Callable[..., object], words: dict[str, object], said: str
) -> None:
    with pytest.raises(nw.ArgumentError, match=said) as error:
        door(table(), **words)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("model", ["logistic", "poisson"])
def test_a_file_with_other_bounds_is_refused(model: str, tmp_path: Path) -> None:
    """A file whose response has bounds that the model cannot have is none, and says why."""
    made = counts(table("poisson")) if model == "poisson" else logistic(table())
    path = made.save(tmp_path / "r.json")
    content = json.loads(path.read_text())
    content["bounds"]["y"] = [1.0, 3.0]
    path.write_text(json.dumps(content))
    with pytest.raises(nw.ReleaseError, match=f"bounds: 'y' of a {model} regression must"):
        nw.Release.load(path)


@pytest.mark.parametrize("name", ["logistic-regression", "poisson-regression"])
def test_words_and_options_are_all_of_the_arguments(name: str) -> None:
    owner = nw.models.find(name).owner()
    arguments = set(inspect.signature(owner.release).parameters) - {"source"}
    assert {word.name for word in owner.words} <= arguments
    assert {"epsilon", "groups", "unit", "where"} <= arguments


def test_a_check_of_the_naive_method_runs() -> None:
    """At much noise the naive method is found out: 50 trials, an ε of .2."""
    settings = logistic(nw.release.Blank(400), epsilon=0.2)
    check = nw.check(settings, ["naive"], trials=50)
    assert check.methods[0].method == "naive"
    assert "logistic regression of y on x" in str(check.settings)
    assert not check.methods[0].passed


@pytest.mark.evidence
@pytest.mark.parametrize("model", ["logistic", "probit", "poisson"])
def test_a_check_finds_the_method_calibrated(model: str) -> None:
    door, settings = (counts if model == "poisson" else logistic), nw.release.Blank(1000)
    check = nw.check(door(settings, epsilon=1.0), ["clt"], model=model, trials=100)
    print(f"\n{check}")
    assert check.methods[0].passed


def test_a_plan_says_how_wide_intervals_are() -> None:
    """By ε, at a guessed slope; wider at a smaller ε, by the naive method with few trials."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = nw.plan(
            lambda e: logistic(nw.release.Blank(1000), epsilon=e), 1000, [1.0, 100.0],
            methods=["naive"], trials=10, guesses={"x": 0.05, "mean:y": 0.3},
        )  # fmt: skip
    rows = {r.epsilon: r for r in plan.rows if r.parameter == "x"}
    assert rows[100.0].width > 0
    assert set(rows) == {1.0, 100.0}
    assert plan.guess["x"] == 0.05
    with pytest.raises(nw.ArgumentError, match="mean:y must be within its bounds"):
        nw.plan(
            lambda e: logistic(nw.release.Blank(1000), epsilon=e), 1000, [1.0],
            methods=["naive"], trials=10, guesses={"mean:y": 1.5},
        )  # fmt: skip


@pytest.mark.evidence
@pytest.mark.parametrize("model", ["logistic", "poisson"])
def test_a_plan_of_the_usual_methods(model: str) -> None:
    """Intervals of ``clt`` narrow with ε, and hold the guess in nearly all of 50 trials."""
    door = counts if model == "poisson" else logistic
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = nw.plan(
            lambda e: door(nw.release.Blank(1500), epsilon=e), 1500, [0.3, 3.0], methods=["clt"],
            trials=50,
        )  # fmt: skip
    rows = {r.epsilon: r for r in plan.rows if r.parameter == "x"}
    assert rows[0.3].width > 1.3 * rows[3.0].width
    assert all(r.coverage >= 0.84 for r in rows.values())
    assert plan.without["x"] < rows[3.0].width

"""Edge cases: models by their full names, many groups, near-singular columns, damaged files."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.models.generalized_linear.analyst import ANALYST
from noisewise.models.generalized_linear.covariate_moments import CovariateMoments
from noisewise.models.generalized_linear.posterior import GeneralizedPosterior
from noisewise.models.generalized_linear.problem import generalized_problem


def people(n: int, share: float = 0.5, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, n)
    return pd.DataFrame({"x": x, "y": (rng.random(n) < share) * 1.0})


def naive(release: nw.Release, **asked: Any) -> GeneralizedPosterior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        post = nw.infer(release, "naive", draws=100, **{"model": "logistic", **asked})
    assert isinstance(post, GeneralizedPosterior)
    return post


def linear(table: pd.DataFrame, **words: Any) -> nw.Release:
    limits = {"x": (0, 10), "y": (0, 1)}
    return nw.release.linear_regression(
        table, x="x", y="y", bounds=limits, **{"epsilon": 5.0, **words}
    )


def test_a_model_by_its_full_name_is_that_model() -> None:
    release = linear(people(500))
    assert naive(release, model="poisson-regression").link == "poisson"
    assert naive(release, model="logistic-regression").link == "logistic"


@pytest.mark.parametrize("model", ["logistic", None])
def test_the_link_is_said_by_the_model(model: str | None) -> None:
    words: dict[str, Any] = {"link": "probit"}
    release = nw.release.logistic_regression(
        people(500), x="x", y="y", bounds={"x": (0, 10)}, epsilon=5.0
    )
    with pytest.raises(nw.ArgumentError, match="link: is said by model="):
        nw.infer(release, model=model, **words)


def test_many_groups_of_true_0_and_1_are_not_refused() -> None:
    """2,000 groups, limits at which one in a thousand releases is refused."""
    keys, size = list(range(2000)), 12
    table = people(len(keys) * size).assign(g=np.repeat(keys, size))
    for seed in range(3):
        release = linear(table, groups={"g": keys}, sizes="public", epsilon=1.0)
        assert len(generalized_problem(release, "logistic").n) == len(keys), seed


def test_cautions_are_of_the_groups_that_were_inferred() -> None:
    table = people(300).assign(g=np.repeat(["a", "b", "c"], 100))
    release = linear(table, groups={"g": ["a", "b", "c"]}, sizes="public", epsilon=100.0)
    post = naive(release)
    some = replace(post, keys=("b", "c"), draws={k: v[1:] for k, v in post.draws.items()})
    few = replace(some, moments=replace(post.moments, mean=post.moments.mean[1:],
                                        covariance=post.moments.covariance[1:]))  # fmt: skip
    assert few.cautions == post.cautions


def test_few_events_are_said_where_n_is_secret() -> None:
    table = people(500, share=0.01)
    post = naive(linear(table, neighbours="add-remove", epsilon=50.0))
    assert any("Fewer than 20 records" in words for words in post.cautions)


def test_a_result_is_saved_where_its_slopes_underflow(tmp_path: Path) -> None:
    post = naive(linear(people(60), epsilon=0.3))
    assert nw.load(post.save(tmp_path / "p.nc"))
    assert all(np.isfinite(v).all() for v in (post.without_noise or dict)().values())


def test_counts_are_spoken_of_as_rates() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 3000)
    table = pd.DataFrame({"x": x, "c": rng.poisson(np.exp(-3 + 0.5 * x))})
    release = nw.release.poisson_regression(
        table, x="x", y="c", bounds={"x": (0, 10), "c": (0, 60)}, epsilon=10.0
    )
    post = naive(release, model="poisson")
    steep = replace(post, draws={**post.draws, "x": post.draws["x"] + 2})
    said = " ".join(steep.cautions)
    assert "multiplies the rate of c" in said
    assert "logits" not in said
    assert "separate" not in said


def test_a_column_near_its_bound_is_no_indicator() -> None:
    rng = np.random.default_rng(1)
    table = people(1000).assign(x=rng.lognormal(10.3, 0.8, 1000))
    release = nw.release.logistic_regression(
        table, x="x", y="y", bounds={"x": (0, 2e6)}, epsilon=0.3
    )
    assert not generalized_problem(release, "logistic").indicators.any()


def test_naive_takes_correlated_columns_as_they_are() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 1, 20_000)
    z = np.clip(x + 0.02 * rng.standard_normal(len(x)), 0, 1)
    y = rng.random(len(x)) < 1 / (1 + np.exp(2 - 4 * x))
    table = pd.DataFrame({"x": x, "z": z, "y": y * 1.0})
    limits = {"x": (0, 1), "z": (0, 1), "y": (0, 1)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        release = nw.release.linear_regression(
            table, x=["x", "z"], y="y", bounds=limits, epsilon=1e5
        )
    post = naive(release)
    # Each slope alone is hardly known (its deviation is 1.1 by Fisher's information), the sum is.
    assert post.draws["x"].std() == pytest.approx(1.1, rel=0.35)
    assert (post.draws["x"] + post.draws["z"]).std() < 0.15


def test_fills_of_the_response_fit_the_model() -> None:
    table = people(200)
    limits = {"x": (0, 10)}
    with pytest.raises(nw.ArgumentError, match="gaps must become 0 or 1"):
        nw.release.logistic_regression(
            table, x="x", y="y", bounds=limits, fill={"y": 0.5}, epsilon=1.0
        )
    with pytest.raises(nw.ArgumentError, match="must begin at 0"):
        nw.release.poisson_regression(
            table, x="x", y="y", bounds={**limits, "y": (1, 5)}, epsilon=1.0
        )


def damaged(what: str) -> dict[str, Any]:
    moments = {
        "mean": [[0.1]], "covariance": [[[0.2]]], "centre": [5.0], "half": [5.0],
        "indicators": [False], "law": "box",
    }  # fmt: skip
    changes: dict[str, dict[str, Any]] = {
        "negative": {"covariance": [[[-0.2]]]},
        "half": {"half": [0.0]},
        "mean": {"mean": [[1e300]]},
        "words": {"indicators": ["no"]},
        "size": {"mean": [[0.1, 0.2]]},
        "law": {"law": "odd"},
    }
    return {**moments, **changes[what]}


@pytest.mark.parametrize("what", ["negative", "half", "mean", "words", "size", "law"])
def test_damaged_moments_are_refused(what: str) -> None:
    with pytest.raises(ValueError, match="covariates"):
        CovariateMoments.from_attributes(damaged(what), 1)


@pytest.mark.parametrize(
    "change",
    [{"y": 3}, {"x": "xw"}, {"x": ["other"]}, {"link": "odd"}, {"y": "absent"}],
)
def test_damaged_attributes_are_refused(change: dict[str, Any]) -> None:
    post = naive(linear(people(300)))
    common = {
        "draws": post.draws, "rhat": post.rhat, "ess": post.ess, "method": post.method,
        "keys": None, "releases": post.releases, "details": {},
    }  # fmt: skip
    whole = dict(post.attributes())
    assert ANALYST.restore(common, whole).y == "y"
    with pytest.raises(
        (ValueError, nw.ReleaseError), match=r"covariates|link|draws|response|text|y"
    ):
        ANALYST.restore(common, {**whole, **change})


def test_units_of_effects_are_numbers() -> None:
    post = naive(linear(people(300)))
    for unit in (0, float("nan"), "ten"):
        with pytest.raises(nw.ArgumentError, match="per: x must be a number"):
            post.effects(per={"x": unit})  # type: ignore[dict-item]
    with pytest.raises(nw.ArgumentError, match="is no covariate"):
        post.effects(per={"w": 1})

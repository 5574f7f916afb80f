"""From a table to an answer, through the public names; and what bad input is told."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.inference import methods
from tests.artifact.factories import FACTORIES

pytestmark = pytest.mark.xdist_group("expfam")


@cache
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "owns": rng.random(400) < 0.3,
            "wait": rng.exponential(2, 400),
            "kind": rng.choice(["x", "y", "z"], 400, p=[0.2, 0.3, 0.5]),
            "height": rng.normal(170, 8, 400),
            "town": rng.choice(["a", "b"], 400),
        }
    )


def published(column: str, family: str, **words: Any) -> nw.Release:
    made = nw.release.exponential_family(
        people(), column=column, family=family, **{"epsilon": 2.0, **words}
    )
    return nw.Release.from_json(made.to_json())


def answer(release: nw.Release, method: str | None = None, **words: Any) -> Any:
    return nw.infer(release, method, **words)


def test_the_default_is_exact_and_covers_the_truth() -> None:
    """Five posterior sds: 6e-7 a parameter, noise and all."""
    for column, family, truth, words in (
        ("owns", "bernoulli", {"p": 0.3}, {}),
        ("wait", "exponential", {"rate": 0.5}, {"bounds": (0, 8), "outside": "clamp"}),
        ("kind", "multinomial", {"p[x]": 0.2, "p[y]": 0.3}, {"levels": ["x", "y", "z"]}),
    ):
        post = answer(published(column, family, **words))
        assert post.method == "exact"
        assert post.converged, post.status
        table = post.summary()
        for name, value in truth.items():
            assert abs(table.loc[name, "mean"] - value) < 5 * table.loc[name, "sd"]


def test_a_normal_column() -> None:
    """Exact where n is public; with a secret n, ``gibbs`` is the default, and the only one."""
    post = answer(published("height", "normal", bounds=(140, 200), outside="clamp"))
    assert (post.method, tuple(post.draws)) == ("exact", ("mean", "sigma2"))
    row = post.summary().loc["mean"]
    assert abs(row["mean"] - 170) < 5 * row["sd"]
    assert post.predict().interval(0.9).shape == (2,)
    secret = published(
        "height", "normal", bounds=(140, 200), outside="clamp", neighbours="add-remove"
    )
    assert answer(secret).method == "gibbs"
    with pytest.raises(nw.ArgumentError, match="public number of records"):
        answer(secret, "exact")


def test_an_interval_found_by_a_private_search() -> None:
    asked = nw.release.PrivateBounds((0, 64))
    release = published("wait", "exponential", bounds=asked, outside="clamp", epsilon=8.0)
    assert release.selections[0].cost > 0
    row = answer(release).summary().loc["rate"]
    assert abs(row["mean"] - 0.5) < 5 * row["sd"]


def test_groups_gaussian_noise_and_a_secret_n() -> None:
    release = published(
        "owns", "bernoulli", groups={"town": ["a", "b"]}, neighbours="add-remove",
        mechanism="gaussian", delta=1e-6,
    )  # fmt: skip
    post = answer(release)
    assert post.draws["p"].shape == (2, 4, 1000)
    assert "secret" in post.details["n"]
    assert post.summary().loc[("a", "p"), "mean"] == pytest.approx(0.3, abs=0.15)
    assert post.to_arviz().posterior["p"].shape == (4, 1000, 2)
    assert post.predict().mean.shape == (2,)


def test_the_prior_is_the_users_and_is_said() -> None:
    release = published("owns", "bernoulli")
    post = answer(release, prior=nw.priors.Beta(2, 5))
    assert "Beta(alpha=2.0, beta=5.0)" in repr(post)
    assert "bernoulli by exact" in repr(post)
    same = answer(release, prior={"p": nw.priors.Beta(2, 5)})
    np.testing.assert_array_equal(post.draws["p"], same.draws["p"])
    assert "Beta(alpha=1.0, beta=1.0)" in answer(release).prior


def test_predictions() -> None:
    post = answer(published("wait", "exponential", bounds=(0, 8), outside="clamp"))
    told = post.predict(seed=1)
    assert told.draws.shape == post.draws["rate"].shape
    assert told.mean == pytest.approx((1 / post.draws["rate"]).mean())
    low, high = told.interval(0.9)
    assert 0 < low < 0.3
    assert 4 < high < 9
    with pytest.raises(nw.ArgumentError, match="no covariates"):
        post.predict({"wait": 1.0})
    kinds = answer(published("kind", "categorical", levels=["x", "y", "z"])).predict()
    shares: Any = kinds
    assert sum(shares.probabilities.values()) == pytest.approx(1)
    assert set(np.unique(kinds.draws)) == {"x", "y", "z"}
    for ask in (lambda: kinds.mean, kinds.interval, kinds.mean_interval):
        with pytest.raises(nw.ArgumentError, match="see probabilities"):
            ask()


def test_naive_is_narrower_and_says_what_it_projected() -> None:
    release = published("owns", "bernoulli", epsilon=0.02)
    naive, honest = answer(release, "naive"), answer(release)
    assert naive.summary().loc["p", "sd"] < 0.6 * honest.summary().loc["p", "sd"]
    assert naive.details["projected_share"] in (0.0, 1.0)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"family": "wiebull"}, "must be one of bernoulli, binomial, poisson, geometric"),
        ({"bounds": (3, 3)}, "lower must be below upper"),
        ({"bounds": (3, 1)}, "lower must be below upper"),
        ({"bounds": (-3, -1)}, "no record of family='exponential' is below 0"),
        ({"known": {"r": 1}}, "does not take it"),
        ({"known": 3}, "known: must be a dictionary"),
        ({"outside": "censor"}, "must be 'drop' or 'clamp'"),
    ],
)
def test_what_the_owner_cannot_ask(words: dict[str, Any], says: str) -> None:
    with pytest.raises(nw.ArgumentError, match=says):
        published("wait", **{"family": "exponential", "bounds": (0, 8), **words})


def test_a_level_outside_the_public_list() -> None:
    with pytest.raises(nw.DataError, match="kind"):
        published("kind", "categorical", levels=["x", "y"])


@pytest.mark.parametrize("outside", ["drop", "clamp"])
def test_negative_waiting_times_are_outside_like_any_other(outside: Any) -> None:
    frame = pd.DataFrame({"wait": [-5.0, 1.0, 2.0, 30.0]})
    release = nw.release.exponential_family(
        frame, column="wait", family="exponential", bounds=(0.5, 4), outside=outside, epsilon=1e6
    )
    total = float(release.table()["value"].iloc[0])
    assert total == pytest.approx(3.0 if outside == "drop" else 3.0 + 0.5 + 4.0, abs=1e-2)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"method": "gibs"}, "must be one of exact, gibbs, naive"),
        ({"prior": nw.priors.Beta(1, 1)}, "exponential takes a Gamma, not Beta"),
        ({"prior": {"p": nw.priors.Gamma(1, 1)}}, "'p' is no parameter of exponential"),
        ({"prior": {}}, "give one Gamma"),
        ({"prior": nw.priors.Gamma(50, 1e-6)}, "no probability"),
        ({"x": ["wait"]}, "go with linear regression"),
        ({"chains": 1}, "chains"),
    ],
)
def test_what_the_analyst_cannot_ask(words: dict[str, Any], says: str) -> None:
    release = published("wait", "exponential", bounds=(1, 8))
    with pytest.raises(nw.ArgumentError, match=says):
        nw.infer(release, **words)


def test_priors_that_are_none() -> None:
    for make, message in (
        (lambda: nw.priors.Beta(0, 1), "alpha: must be above zero, not 0.0"),
        (lambda: nw.priors.Gamma(1, float("nan")), "rate: must be a finite number"),
        (lambda: nw.priors.Dirichlet([1, -1]), "alpha: must be above zero in every category"),
    ):
        with pytest.raises(nw.ArgumentError, match=f"^{message}"):
            make()
    release = published("kind", "categorical", levels=["x", "y", "z"])
    with pytest.raises(nw.ArgumentError, match="length 3"):
        nw.infer(release, prior=nw.priors.Dirichlet([1, 1]))


def test_few_records_warn_and_name_the_better_method() -> None:
    frame = people()[:10]
    release = nw.release.exponential_family(frame, column="owns", family="bernoulli", epsilon=1.0)
    with pytest.warns(UserWarning, match="about 30; method='exact'"):
        nw.infer(release, "gibbs", draws=100)


def test_a_distribution_nobody_has_heard_of() -> None:
    release = FACTORIES["bernoulli"]()
    odd = replace(release, model={"distribution": "wiebull"})
    with pytest.raises(nw.ArgumentError, match="'wiebull' is unknown; known are bernoulli"):
        nw.infer(odd)


def test_the_methods_are_listed() -> None:
    assert tuple(methods("exponential-family")) == ("exact", "gibbs", "naive")

"""When analysts are warned, and what is refused."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import noisewise as nw
from noisewise.artifact import Bounds
from noisewise.models.generalized_linear.posterior import GeneralizedPosterior
from noisewise.models.generalized_linear.problem import generalized_problem
from tests.models.generalized_linear.problems import CHAINS, DRAWS, records, release
from tests.reference import generalized_reference as reference

pytestmark = pytest.mark.xdist_group("one-covariate")


def inferred(
    table: np.ndarray,
    largest: float = 1.0,
    model: str = "logistic",
    method: str = "clt",
    **words: object,
) -> GeneralizedPosterior:
    """A posterior of one table, whatever is warned of."""
    given = release(table, largest, **words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        post = nw.infer(given, method, model=model, chains=CHAINS, draws=DRAWS)
    assert isinstance(post, GeneralizedPosterior)
    return post


def test_steep_slopes_are_said_to_depend_on_the_shape() -> None:
    """Five logits per deviation: slope and separation; a slope of .8 gives neither (see
    ``test_posterior``)."""
    words = " ".join(inferred(records(4000, slope=5.0), method="naive", scale=1.0).cautions)
    assert "more than 2 logits per standard deviation" in words
    assert "nearly separate y" in words


def test_two_clusters_move_with_the_law_of_the_covariates() -> None:
    """Narrow clusters at 20 and 80, three logits apart per deviation: the caution names x."""
    rng = np.random.default_rng(2)
    x = np.where(rng.random(5000) < 0.5, 20, 80) + rng.normal(0, 3, 5000)
    y = reference.draw_responses(rng, "logistic", 2.5 * (x - 50) / 30)
    post = inferred(np.column_stack([x, y]), scale=1.0)
    assert any("x" in c and "shape" in c for c in post.cautions)


@pytest.mark.parametrize("share", ["none", "all"])
def test_responses_all_alike_are_answered_with_a_caution(share: str) -> None:
    """No events, or nothing else: finite draws on the right side, and the caution of few events."""
    table = records()
    table[:, 1] = share == "all"
    post = inferred(table)
    assert all(np.isfinite(v).all() for v in post.draws.values())
    assert any("Fewer than 20 records are expected" in c for c in post.cautions)
    mean = post.predict({"x": 50}).expected.mean()
    assert mean > 0.97 if share == "all" else mean < 0.03


def test_few_events_are_said_to_be_few() -> None:
    """Six of 500; 250 of 500 are enough (the plain case of ``test_posterior`` says nothing)."""
    table = records(500)
    table[:, 1] = np.arange(500) < 6
    assert any("Fewer than 20" in c for c in inferred(table, scale=1.0).cautions)


def test_counts_beyond_their_bound_are_said_to_be_moved() -> None:
    """A mean of 4 and a bound of 5: the share above is named; a bound of 30 says nothing."""
    table = records(3000, slope=0.3, level=1.4, link="poisson")
    tight = table.copy()
    tight[:, 1] = np.minimum(tight[:, 1], 5)
    words = inferred(tight, 5.0, "poisson", "naive", scale=1.0).cautions
    assert any("lie above their bound, 5" in c for c in words)
    assert not any(
        "above their bound" in c for c in inferred(table, 30.0, "poisson", "naive").cautions
    )


def test_bounds_that_cut_are_named() -> None:
    """Censoring is not modelled here, and the posterior says so."""
    given = release(records())
    cut = replace(given, bounds={**given.bounds, "x": nw.Censored(0, 100)})
    with pytest.warns(UserWarning, match="The bounds of x cut values off"):
        nw.infer(cut, "naive", model="logistic")


def refused(given: object, word: str, **asked: object) -> None:
    """One sentence, an ArgumentError, before anything is sampled."""
    with pytest.raises(nw.ArgumentError, match=word) as error:
        nw.infer(given, **asked)  # type: ignore[call-overload]
    assert "\n" not in str(error.value)


def test_a_response_that_is_not_binary_is_refused() -> None:
    """A share in [0, 1]: its sum of squares is far from n, and the sentence says how far."""
    table = records()
    table[:, 1] = np.random.default_rng(0).uniform(0, 1, len(table))
    refused(
        release(table),
        "'y' is not 0 or 1 in every record: its sum of squares lies",
        model="logistic",
    )


def test_noise_alone_does_not_refuse_a_binary_response() -> None:
    """Forty seeds of noise as large as a tenth of n: none is refused."""
    table = records(200)
    for seed in range(40):
        nw.infer(release(table, scale=20.0, seed=seed), "naive", model="logistic", draws=100)


@pytest.mark.parametrize(
    ("largest", "asked", "word"),
    [
        (5.0, {"model": "logistic"}, r"a logistic regression needs a response that is 0 or 1, with "
                                     r"bounds \(0, 1\); 'y' has \(0, 5\)"),
        (5.0, {"model": "probit"}, "a probit regression needs a response that is 0 or 1"),
        (0.5, {"model": "poisson"}, "a poisson regression needs counts, with bounds from 0"),
        (1.0, {"model": "cloglog"}, "inferred as .*logistic, probit, poisson, not 'cloglog'"),
        (1.0, {"model": "logistic", "method": "exact"}, "method: must be one of clt, naive"),
        (1.0, {"model": "logistic", "x": "z"}, "z"),
        (1.0, {"model": "logistic", "y": "x"}, r"with bounds \(0, 1\); 'x' has \(0, 100\)"),
        (1.0, {"model": "logistic", "prior": 3}, r"must be a nw\.priors\.Predictor, not int"),
        (1.0, {"model": "logistic", "prior": {"slopes": nw.priors.Predictor()}}, "prior: of"),
        (1.0, {"model": "logistic", "shapes": True}, "shapes"),
        (1.0, {"model": "logistic", "pool": True}, "pool"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(largest: float, asked: dict[str, object], word: str) -> None:
    refused(release(records(200), largest), word, **asked)


def test_an_unknown_law_of_covariates_is_refused() -> None:
    with pytest.raises(nw.ArgumentError, match="law: must be 'box' or 'normal', not 'hats'"):
        generalized_problem(release(records(200)), "logistic", law="hats")


def test_several_releases_are_refused() -> None:
    given = [release(records(200), seed=s) for s in (1, 2)]
    refused(given, "takes one release", model="logistic", same_population=True)


def test_too_few_records_are_refused() -> None:
    refused(release(records(2), scale=0.1), "needs at least 3 records", model="logistic")


def test_releases_of_other_models_are_refused() -> None:
    family = nw.release.exponential_family(
        nw.release.Blank(100), column="v", family="poisson", bounds=(0, 20), epsilon=1.0
    )
    refused(family, "exponential-family release can be inferred as", model="logistic")


def test_a_response_below_zero_is_no_count() -> None:
    given = release(records(200), 20.0)
    below = replace(given, bounds={**given.bounds, "y": Bounds(-1, 20)})
    refused(below, "needs counts, with bounds from 0", model="poisson")

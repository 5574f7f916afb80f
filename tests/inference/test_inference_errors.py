"""Bad input: refused at once, in words that name the argument and what is accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, ReleaseError
from noisewise.inference import methods
from noisewise.models.linear_regression.problem import regression_problem
from noisewise.priors import CovariateMoments, NormalInverseGamma, NormalInverseWishart
from tests.artifact.factories import FACTORIES
from tests.inference.regressions import release, table

BOUNDS = {"a": (-1.0, 1.0), "b": (-1.0, 1.0)}


def small(n: int = 30, **words: Any) -> nw.Release:
    return release([table(np.random.default_rng(0), n)], BOUNDS, grouped=False, **words)


def test_another_family() -> None:
    with pytest.raises((ArgumentError, ReleaseError), match="linear-regression"):
        regression_problem(FACTORIES["graphical"](), None, None, None)


def test_an_unknown_method_lists_the_known_ones() -> None:
    with pytest.raises(ArgumentError) as refused:
        nw.infer(small(), "gibs")
    assert all(m in str(refused.value) for m in methods("linear-regression"))
    assert "'gibs'" in str(refused.value)


@pytest.mark.parametrize(
    ("prior", "says"),
    [
        ({"response": NormalInverseGamma([0], [[1]], 1, 1)}, "2 coefficients, the intercept last"),
        ({"response": NormalInverseWishart([0], 1, [[1]], 3)}, "must be a NormalInverseGamma"),
        ({"covariates": NormalInverseWishart([0, 0], 1, np.eye(2), 5)}, "of 1 columns"),
        ({"covariates": CovariateMoments.from_draws(np.ones((5, 2)))}, "of 1 columns"),
        ({"covariates": CovariateMoments.from_draws(np.ones((5, 1)))}, "gibbs-prior only"),
        ({"reponse": None}, "'reponse' is unknown"),
    ],
)
def test_a_prior_that_does_not_fit(prior: dict[str, object], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        nw.infer(small(), prior=prior)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: NormalInverseGamma([0, 0], [[1, 2], [2, 1]], 1, 1), "positive definite"),
        (lambda: NormalInverseGamma([0, 0], [[1.0, 0.0], [0.5, 1.0]], 1, 1), "symmetric"),
        (lambda: NormalInverseGamma([0, 0], [[1]], 1, 1), "2 × 2"),
        (lambda: NormalInverseGamma([0, np.inf], np.eye(2), 1, 1), "finite"),
        (lambda: NormalInverseGamma([0, 0], np.eye(2), 0, 1), "shape: must be above zero"),
        (lambda: NormalInverseWishart([0], 1, [[-1]], 3), "positive definite"),
        (lambda: NormalInverseWishart([0, 0], 1, np.eye(2), 1), "df: must be above 1"),
        (lambda: NormalInverseWishart(["x"], 1, [[1]], 3), "must be numbers"),
    ],
)
def test_priors_that_are_none(make: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_gibbs_noisy_without_monomials_says_how_to_release_them() -> None:
    with pytest.raises(ArgumentError, match="release with monomials=True"):
        nw.infer(small(), "gibbs-noisy")
    swapped = small(monomials=True)
    with pytest.raises(ArgumentError, match="monomials of b up to degree four"):
        nw.infer(swapped, "gibbs-noisy", x="b", y="a")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"y": "weight"}, "'weight' was not released; there are: a, b"),
        ({"x": ["a", "height"]}, "'height' was not released"),
        ({"x": ["b"]}, "y not among them"),
        ({"x": []}, "one or more distinct columns"),
        ({"chains": 1}, "chains: must be a whole number of at least 2"),
        ({"draws": 0.5}, "draws: must be a whole number"),
    ],
)
def test_columns_and_counts(words: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        nw.infer(small(), **words)


def test_too_few_records() -> None:
    with pytest.raises(ArgumentError, match="at least 3 records"):
        nw.infer(small(2))


def test_statistics_that_are_not_finite_cannot_be_read() -> None:
    """The wire holds integers: a file with NaN or infinity is refused before inference."""
    text = small().to_json()
    number = str(int(small().block("gram").values[0, 0]))
    assert number in text
    for odd in ("NaN", "Infinity", "1e999"):
        with pytest.raises(ReleaseError):
            nw.Release.from_json(text.replace(number, odd, 1))


# -- where to predict ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -np.inf, np.float32("nan")])
def test_a_prediction_is_at_finite_covariates(value: float) -> None:
    with pytest.raises(ArgumentError, match=r"new_x\['a'\]: must be a finite number"):
        nw.infer(small(), "naive").predict({"a": value})


@pytest.mark.parametrize(
    ("value", "outside"), [(-1, False), (1.0, False), (1.01, True), (-9, True)]
)
def test_a_prediction_where_nothing_was_seen(value: float, outside: bool) -> None:
    post = nw.infer(small(), "naive")
    if not outside:
        post.predict({"a": value})
        return
    with pytest.warns(UserWarning, match="outside its public bounds, -1 to 1: no record was seen"):
        found = post.predict({"a": value})
    assert np.isfinite(found.mean)

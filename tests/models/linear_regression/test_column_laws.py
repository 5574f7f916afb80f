"""Laws of columns: moments of many values, and guesses that make no sense."""

from __future__ import annotations

import numpy as np
import pytest

from noisewise.artifact import ArgumentError, Bounds
from noisewise.models.linear_regression.column_laws import ColumnLaw, factor_law, numeric_law

BOX = Bounds(2.0, 8.0)
SCORES = np.random.default_rng(0).standard_normal(200_000)


def law(given: object, mean: float | None = None, sd: float | None = None) -> ColumnLaw:
    return numeric_law("x", BOX, given, mean, sd)


@pytest.mark.parametrize(
    ("made", "mean", "sd"),
    [
        (law(None), 5.0, 1.0),
        (law(None, mean=4.0, sd=0.5), 4.0, 0.5),
        (law((3.0, 0.7)), 3.0, 0.7),
        (law("binary"), 5.0, 3.0),
        (law("uniform"), 5.0, 6 / np.sqrt(12)),
        (law("skewed"), 3.0, 1.0),
        (law({2: 0.75, "6": 0.25}), 3.0, np.sqrt(3.0)),
        (factor_law("f", ("a", "b", "c", "d"), None), 1.5, np.sqrt(1.25)),
        (factor_law("f", ("a", "b"), {"b": 0.2}), 0.2, 0.4),
        (factor_law("f", (0, 1), {"0": 0.8, "1": 0.2}), 0.2, 0.4),
    ],
)
def test_moments(made: ColumnLaw, mean: float, sd: float) -> None:
    """Of 200,000 values: means are right to .0022 deviations, deviations to half a percent."""
    assert (made.mean, made.sd) == pytest.approx((mean, sd))
    values = made.quantile(SCORES)
    assert values.mean() == pytest.approx(mean, abs=0.012 * sd)
    assert values.std() == pytest.approx(sd, rel=0.02)


def test_shapes() -> None:
    assert set(law("binary").quantile(SCORES)) == {2.0, 8.0}
    even = law("uniform").quantile(SCORES)
    assert even.min() > 2
    assert even.max() < 8
    assert np.histogram(even, bins=10)[0].min() > 19_000
    skewed = law("skewed").quantile(SCORES)
    assert skewed.min() >= 2
    assert ((skewed - 3) ** 3).mean() == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("bimodal", "x must be a pair (mean, deviation), shares of values, or one of binary"),
        ((1.0, 2.0, 3.0), "x must be a pair"),
        ((1.0, 0.0), "sd:x must be above zero"),
        ({2: 0.5, 8: 0.6}, "shares of x must be zero or more and add up to 1"),
        ({"low": 1.0}, "x is a number, and 'low' is not"),
    ],
)
def test_bad_guesses_of_numbers(given: object, says: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        law(given)
    assert says in str(caught.value)


def test_moments_beside_a_law_that_has_them() -> None:
    with pytest.raises(ArgumentError, match="mean:x follows from the guess of x; give one"):
        law("binary", mean=3.0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"c": 0.5}, "'c' is not a level of f; there are a, b"),
        ({"a": 0.5, "b": 0.6}, "add up to 1"),
        ({"a": 1.5}, "zero or more"),
        ((0.5, 0.1), "f has levels, so its guess is a share for each"),
    ],
)
def test_bad_guesses_of_factors(given: object, says: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        factor_law("f", ("a", "b"), given)
    assert says in str(caught.value)

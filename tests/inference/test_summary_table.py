"""Summaries lead with the median, and print no mean that a few draws far out decide."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from noisewise.inference.results import Posterior
from noisewise.inference.summaries import summarised
from noisewise.inference.summary_table import WHY_UNTOLD, beyond_interval


class TwoParameters(Posterior):
    """A posterior of no model in particular."""

    model_name = "two-parameters"


@pytest.fixture(scope="module")
def post() -> Posterior:
    """A posterior of a normal and of a Cauchy parameter: the latter has no mean."""
    rng = np.random.default_rng(0)
    draws = {"normal": rng.normal(3, 1, (4, 1000)), "cauchy": rng.standard_cauchy((4, 1000)) + 5}
    good = {name: np.array(1.0) for name in draws}
    return TwoParameters(draws, good, {n: np.array(4000.0) for n in draws}, "exact")


@pytest.mark.parametrize("interval", [0.5, 0.95])
def test_only_the_mean_of_a_parameter_with_long_tails_is_left_out(
    post: Posterior, interval: float
) -> None:
    for table in (post.summary(interval), summarised(post).summary(interval)):
        assert beyond_interval(table).tolist() == [False, True]
        assert beyond_interval(table.reset_index()).tolist() == [False, True]
        printed = repr(table)
        assert WHY_UNTOLD in printed
        (row,) = (line for line in printed.splitlines() if line.startswith("cauchy"))
        assert row.split()[1:3] == ["-", "-"]
        # The numbers themselves stay.
        assert table.loc["cauchy", "mean"] == post.draws["cauchy"].mean()


def test_a_narrow_interval_does_not_make_tails_long(post: Posterior) -> None:
    assert beyond_interval(post.summary(0.05)).tolist() == [False, True]
    assert WHY_UNTOLD not in repr(post.summary(0.05).loc[["normal"]])


def test_the_median_is_a_column_of_every_summary(post: Posterior) -> None:
    wanted = pd.Series({name: np.median(v) for name, v in post.draws.items()})
    for table in (post.summary(), summarised(post).summary()):
        np.testing.assert_allclose(table["median"], wanted)
        assert list(table)[:5] == ["mean", "sd", "median", "lower", "upper"]


def test_notebooks_show_the_median_first_and_a_dash(post: Posterior) -> None:
    for result in (post, summarised(post)):
        html = result._repr_html_()
        assert html.index("median") < html.index(">mean<")
        assert ">-<" in html


def test_the_point_of_a_prediction_is_the_median() -> None:
    from noisewise.inference import Prediction

    expected = np.random.default_rng(1).standard_cauchy((4, 1000)) + 7
    expected[0, 0] = 1e9
    predicted = Prediction(expected, expected)
    assert abs(float(predicted.median) - 7) < 0.2
    assert abs(float(repr(predicted).split()[1].rstrip(";")) - 7) < 0.2

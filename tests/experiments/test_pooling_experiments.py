"""Pieces of the experiments with pooled groups, on numbers whose answer is plain."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.pooling import casestudy, tracts
from experiments.regression_paper.simulate import tight
from experiments.regression_paper.tables import sums
from experiments.thesis_regression.tracts import AT, filtered, generated
from noisewise.models.linear_regression import pooled_population


def test_scores_of_points_and_intervals() -> None:
    truth = np.arange(20.0)
    point = truth + 0.5
    point[[0, 19]] = point[[19, 0]]
    ends = np.stack([point + w for w in (-3, -2, -1, 1, 2, 3)])
    row = casestudy.scores(np.vstack([point, ends]), truth, truth)
    assert row["mean_absolute_error"] == pytest.approx((18 * 0.5 + 19.5 + 18.5) / 20)
    # One of the two that are truly highest, and one of the two lowest.
    assert (row["top_decile"], row["bottom_decile"]) == (0.5, 0.5)
    assert (row["cover 95%"], row["width 95%"]) == (0.9, 6.0)
    assert row["width 50%"] == 2.0
    assert "cover 95%" not in casestudy.scores(point[None], truth, truth)


def test_lines_are_at_a_quarter_and_medians_where_there_is_no_mean() -> None:
    draws = {"x": np.full((3, 2, 4), 2.0), "intercept": np.zeros((3, 2, 4))}
    draws["intercept"][0, 0, 0] = 1e9
    for method, expected in ((casestudy.DEFAULT, 2 * AT), (casestudy.POOLED, 1e9 / 8 + 2 * AT)):
        found = casestudy.lines(draws, method)
        assert found["line"][0, 0] == expected
        np.testing.assert_array_equal(found["line"][:, 1:], 2 * AT)
        np.testing.assert_array_equal(found["slope"], 2.0)


def test_every_method_sees_one_release() -> None:
    known = filtered(generated(6, 0))
    way, settings = casestudy.WAY, {"seed": 0, "epsilon": 4.0}
    exact = sums(way.boxed(known.pir), way.boxed(known.kir), known.tract, len(known.names))
    first, second = (casestudy.published(exact, settings) for _ in range(2))
    np.testing.assert_array_equal(first.z, second.z)
    assert first.noise_scale == tight(1).gram / 4
    assert first.scale_free


def test_tracts_of_two_covariates_have_their_noise() -> None:
    problem = tracts.regression(np.zeros((4, 9)), np.full(4, 30), 2.0)
    assert problem.noise_scale == pytest.approx(tight(2).gram / 2)
    assert problem.x == ("pir", "age")
    shape = pooled_population.PopulationShape(2, 2)
    phi = pooled_population.coordinates_of(tracts.plane_law())
    again = pooled_population.coordinates_of(pooled_population.law_of(phi, shape))
    np.testing.assert_allclose(phi, again, rtol=1e-12)

"""Bounds three times as wide as the data: the default prior must not rule the truth out."""

from __future__ import annotations

import pytest

from noisewise.models.linear_regression import exact
from tests.inference.calibration import judged
from tests.inference.loose import simulate

pytestmark = [pytest.mark.xdist_group("one-covariate"), pytest.mark.usefixtures("optimised")]


def test_the_default_prior_bears_bounds_that_are_too_wide() -> None:
    """175 of 200 or fewer: one in 30,000 if 95 % are covered. A prior precision of 0.1 has 142."""
    problem, truth = simulate(200, 5, "uniform", 3, 1, 0.5, 2000, 0.3)
    _, covered = judged(exact.run(problem, 5, 4, 250), truth)
    assert covered[:2].min() > 0.875

"""What ArviZ gets beside the posterior: the prior, new records, and the sums that were released."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.models.linear_regression.test_factors_posterior import factor_posterior
from tests.report.pages import of_family, regression


def test_a_regression_has_prior_and_released_sums() -> None:
    post = regression()
    data: Any = post.to_arviz()
    assert sorted(data.groups()) == ["constant_data", "observed_data", "posterior", "prior"]
    np.testing.assert_array_equal(data.posterior["dose"], post.draws["dose"])
    assert data.prior["dose"].shape == (1, 4000)
    (release,) = post.releases
    table = release.table().set_index("statistic")
    for name in release.blocks[0].statistic.names:
        assert float(data.observed_data["released"].sel(statistic=name)) == table["value"][name]
        scale = float(data.constant_data["noise_scale"].sel(statistic=name))
        assert scale == table["noise_scale"][name]


def test_groups_are_a_dimension_of_the_sums() -> None:
    post = regression(groups=3)
    data: Any = post.to_arviz()
    (release,) = post.releases
    table = release.table().set_index(["group", "statistic"])["value"]
    for key in post.keys or ():
        for name in release.blocks[0].statistic.names:
            found = data.observed_data["released"].sel(group=key, statistic=name)
            assert float(found) == table[key, name]


@pytest.mark.parametrize("name", ["poisson", "categorical"])
def test_a_family_has_new_records(name: str) -> None:
    post = of_family(name)
    data: Any = post.to_arviz()
    np.testing.assert_array_equal(data.posterior_predictive["count"], post.predict().draws)


def test_several_releases_have_their_own_sums() -> None:
    first, second = regression(), regression(("dose", "age"))
    (one,), (two,) = first.releases, second.releases
    data: Any = replace(first, releases=(one, two)).to_arviz()
    assert data.observed_data["released"].shape == (len(one.blocks[0].statistic.names),)
    assert data.observed_data["released_2"].shape == (len(two.blocks[0].statistic.names),)


def test_a_regression_with_factors_has_no_draws_of_the_prior() -> None:
    assert "prior" not in factor_posterior().to_arviz().groups()

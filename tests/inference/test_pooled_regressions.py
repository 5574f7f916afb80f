"""Pooled regressions through ``infer``: results by name, new groups, and what is refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError
from noisewise.models.linear_regression.posterior import RegressionPosterior
from tests.inference.regressions import release, table

SIZES = (60, 2, 80, 0, 1, 100, 20_000, 50)
BOUNDS = {"x1": (-1.0, 1.0), "y": (-1.0, 1.0)}
FEATURES = pd.DataFrame(
    {"wealth": np.arange(8.0) ** 2, "county": list("aabbbccc")}, index=[f"g{i}" for i in range(8)]
)


@functools.cache
def pooled() -> RegressionPosterior:
    """Groups of any size, in counties, with a feature; half-converged draws suffice here."""
    rng = np.random.default_rng(4)
    given = release([table(rng, n) for n in SIZES], BOUNDS, scale=0.5)
    post = nw.infer(given, pool=True, features=FEATURES, parent="county", draws=250, chains=2)
    assert isinstance(post, RegressionPosterior)
    return post


def test_groups_of_any_size_have_draws_and_a_population() -> None:
    post = pooled()
    assert post.keys == tuple(f"g{i}" for i in range(8))
    assert all(np.isfinite(v).all() and v.shape == (8, 2, 250) for v in post.draws.values())
    population = post.population
    assert population is not None
    expected = {"mean of x1", "sd of x1", "wealth on x1", "sd of x1 between county"}
    assert expected | {"mean of log sigma2"} <= set(population.draws)
    assert all(v.shape == (2, 250) for v in population.draws.values())
    assert population.judgement["mean of log sigma2"] == "learnt from data"
    assert post.details["failures"] == 0
    assert post.details["sweeps"] >= 1000
    # A chain that began away from what so many records say would never find it.
    assert post.rhat["sigma2"][6] < 1.1
    # Groups with records know more than those without.
    shrinkage = post.shrinkage["x1"]
    assert shrinkage[6] > shrinkage[3]
    assert list(post.ranks("x1").index) == list(post.keys)
    assert post.probability_above(0.4, at={"x1": 0.25})["probability"].between(0, 1).all()
    assert post.prior_draws is not None
    assert set(post.prior_draws(10)) == set(post.draws)


def test_a_new_group_is_wider_than_the_population_s_mean() -> None:
    post = pooled()
    assert post.population is not None
    new = post.predict({"x1": 0.0}, new_group=True, features={"wealth": 17.5})
    assert new.draws.shape == (2, 250)
    assert new.expected.std() > post.population.draws["mean of intercept"].std()
    far = post.predict({"x1": 0.0}, new_group=True, features={"wealth": 1e4})
    assert far.expected.std() > new.expected.std()
    with pytest.raises(ArgumentError, match="features: 'wealth' is missing"):
        post.predict({"x1": 0.0}, new_group=True)
    with pytest.raises(ArgumentError, match="features: go with new_group=True"):
        post.predict({"x1": 0.0}, features={"wealth": 1.0})


def plain(**words: Any) -> nw.Release:
    rng = np.random.default_rng(4)
    return release([table(rng, n) for n in (40, 50, 60)], BOUNDS, scale=0.5, **words)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"method": "gibbs-update"}, "pool: 'gibbs-update' takes every group by itself"),
        ({"prior": {"response": 1}}, r"prior: pooled groups take \{\"population\""),
        (
            {"prior": {"population": nw.priors.Population(spread={"z": 1.0})}},
            "prior: spread: 'z' is no coefficient; there are x1, intercept",
        ),
    ],
)
def test_pooling_that_is_refused(words: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        nw.infer(plain(), pool=True, **words)


def test_new_groups_and_two_groups_are_refused() -> None:
    rng = np.random.default_rng(1)
    two = release([table(rng, n) for n in (40, 50)], BOUNDS, scale=0.5)
    with pytest.raises(ArgumentError, match="pool: at least 3 groups are needed"):
        nw.infer(two, pool=True)
    alone = nw.infer(two, "naive", draws=100)
    with pytest.raises(ArgumentError, match="new_group: goes with pooled groups"):
        alone.predict({"x1": 0.0}, new_group=True)  # type: ignore[call-arg]

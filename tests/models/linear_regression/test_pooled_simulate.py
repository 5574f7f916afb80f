"""Simulated releases of pooled groups: what is drawn, and what trials say of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments.pooling import tracts
from noisewise import priors
from noisewise.artifact import ArgumentError
from noisewise.inference.population import PopulationPosterior, PublicFeatures
from noisewise.models.linear_regression import pooled_population, pooled_simulate
from noisewise.models.linear_regression.pooled_posterior import PooledQuestion, prior_population
from noisewise.models.linear_regression.problem import Units
from noisewise.models.linear_regression.simulate import pooled_scene
from noisewise.numerics.gram_packing import unpack

GROUPS = 6


def question(n: int, epsilon: float = 4.0) -> PooledQuestion:
    problem = tracts.regression(np.zeros((GROUPS, 9)), np.full(GROUPS, n), epsilon)
    parents = np.arange(GROUPS) % 3
    features = PublicFeatures(
        np.column_stack([np.ones(GROUPS), np.linspace(-1.5, 1.5, GROUPS)]), ("wealth",),
        np.zeros(1), np.ones(1), "county", ("a", "b", "c"), parents,
    )  # fmt: skip
    return PooledQuestion(problem, features, priors.Population(spread=0.1, coefficients=0.3))


def test_sums_of_many_records_give_back_the_coefficients_of_every_group() -> None:
    asked = question(10**8)
    rng = np.random.default_rng(0)
    law = pooled_population.draw_law(rng, asked.shape, asked.problem.prior, 1)
    drawn = pooled_simulate.draw_release(rng, law, asked.problem)
    second, totals = unpack(drawn.z / 1e8, 3)
    for g in range(GROUPS):
        design = np.block([[second[g, :2, :2], totals[g, :2, None]], [totals[g, None, :2], 1.0]])
        right = np.append(second[g, :2, 2], totals[g, 2])
        theta = np.linalg.solve(design, right)
        inverse = np.linalg.inv(design)
        # Five standard errors of the fit, and the noise of a sum.
        error = np.sqrt(np.exp(drawn.log_variance[g]) * np.diag(inverse) / 1e8)
        slack = 5 * error + 40 * asked.regression.noise_scale / 1e8 * np.abs(inverse).sum(axis=1)
        assert (np.abs(theta - drawn.theta[g]) < slack).all()


def test_a_given_spread_is_in_the_user_s_units_at_the_covariates_mean() -> None:
    """Bounds of unequal widths, far from zero: medians of the prior."""
    asked = question(100)
    units = Units(np.array([2010.0, 0.0, 50.0]), np.array([10.0, 1.0, 50.0]))
    given = priors.Population(spread={"pir": 2.0, "intercept": 1.0})
    asked = replace(asked, regression=replace(asked.regression, units=units), prior=given)
    law = pooled_population.draw_law(
        np.random.default_rng(0), asked.shape, asked.problem.prior, 4000
    )
    # As reported, at zero; and the level at the population's own mean.
    drawn = asked.named(law)
    root = np.asarray(law.factor)[2, :, :, 0]
    level = 50 * np.sqrt((root**2).sum(axis=0))
    assert np.median(drawn["sd of pir"]) == pytest.approx(2.0, rel=0.1)
    assert np.median(level) == pytest.approx(1.0, rel=0.1)


def test_knowing_the_units_alone_is_not_to_have_learnt() -> None:
    """Slopes, deviations and correlations of the prior, in columns that use little of the box."""
    asked = replace(question(100), prior=priors.Population())
    rng = np.random.default_rng(0)
    units = np.log([0.02, 0.03, 0.05, 1.0]) + rng.normal(0, 0.1, (2000, 4))
    units[:, -1] = pooled_population.draw_units(rng, 2, 2000)[:, -1]
    prior = asked.problem.prior
    after = pooled_population.draw_law(rng, asked.shape, prior, 2000, units)
    after = after._replace(x_mean=after.x_mean * 0.01 - 0.6)
    before = prior_population(asked, after)
    drawn = {name: v[None] for name, v in asked.named(after).items()}
    judged = PopulationPosterior(drawn, before).judgement
    known = {name for name, said in judged.items() if said == "learnt from data"}
    assert known == {"mean of group means of pir", "mean of group means of age"}


def test_trials_are_whole_releases_and_know_the_population(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = question(80)
    trials = pooled_simulate.from_prior(np.random.default_rng(1), asked, 3)
    assert len(trials.releases) == len(trials.truth) == 3
    assert trials.names[:4] == ("pir", "age", "intercept", "sigma2")
    assert {"wealth on pir", "sd of pir between county"} <= set(trials.names)
    slack = 80 + pooled_simulate.REACH * asked.regression.noise_scale
    for release in trials.releases:
        assert release.regression.z.shape == (GROUPS, 9)
        assert (np.abs(release.regression.z) <= slack).all()
    monkeypatch.setattr(pooled_simulate, "MAX_PROPOSALS", 3)
    far = replace(asked, prior=priors.Population(coefficients=1e4))
    with pytest.raises(ArgumentError, match="prior: none of 3 populations"):
        pooled_simulate.from_prior(np.random.default_rng(1), far, 1)


def test_a_plan_draws_groups_around_the_guess_and_reads_every_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = question(200)
    scene = pooled_scene(asked, 200, {"pir": 0.3, "spread:pir": 0.05}, 20, 3)
    assert scene.truth.shape == (20 * GROUPS, 4)
    slopes = scene.truth[:, 0]
    assert abs(slopes.mean() - 0.3) < 5 * 0.05 / np.sqrt(20 * GROUPS)
    assert slopes.std() == pytest.approx(0.05, rel=0.35)
    with pytest.raises(ArgumentError, match="spread:wealth"):
        pooled_scene(asked, 200, {"spread:wealth": 0.05}, 2, 3)
    trials = scene.trials(asked, 3)
    assert len(trials.releases) == 20

    def fake(self: PooledQuestion, seed: int, chains: int, draws: int) -> Any:
        shown = {name: np.full((GROUPS, 2, 5), float(seed)) for name in trials.names}
        return SimpleNamespace(
            draws=shown, population=None, keys=tuple(range(GROUPS)), converged=seed != 4
        )

    monkeypatch.setattr(PooledQuestion, "run", fake)
    outcome = pooled_simulate.run(trials, 3)
    assert outcome.draws.shape == (20 * GROUPS, 10, 4)
    np.testing.assert_array_equal(outcome.draws[:, 0, 0], 3.0 + np.arange(20).repeat(GROUPS))
    assert outcome.unconverged == 1 / 20

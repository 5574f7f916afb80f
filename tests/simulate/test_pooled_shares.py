"""Plans and checks of shares that learn from each other: whole releases of all groups."""

from __future__ import annotations

import numpy as np
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, Release
from noisewise.models.base import Question
from noisewise.models.exponential_family.simulated_sums import sums_at
from noisewise.simulate.pooled_trials import PooledTrials
from noisewise.simulate.trials import simulated

GROUPS = [f"area {i}" for i in range(12)]


def settings(epsilon: float) -> Release:
    return nw.release.exponential_family(
        nw.release.Blank(1200), column="owns", family="bernoulli", groups={"area": GROUPS},
        sizes="public", epsilon=epsilon,
    )  # fmt: skip


def test_a_plan_tells_what_pooling_gives() -> None:
    guesses = {"p": 0.4, "spread:p": 0.05}
    pooled = nw.plan(settings, 100, [0.1], guesses=guesses, pool=True)
    alone = nw.plan(settings, 100, [0.1], guesses={"p": 0.4})
    assert pooled.guess == guesses
    assert pooled.settings["what"] == "owns, 12 groups pooled"
    row = pooled.row(0.1, "exact", "p")
    assert row.width < 0.8 * alone.row(0.1, "exact", "p").width
    assert row.coverage > 0.85
    # A share of 100 people: 1.96 · 2 · √(.24/100).
    assert pooled.without["p"] == pytest.approx(0.19, rel=0.1)


@pytest.mark.parametrize(
    ("guesses", "says"),
    [
        ({"p": 1.2}, "guess: p must be between 0 and 1"),
        ({"p": 0.4, "spread:p": 0.6}, "spread:p must be above zero and below 0.49, the most"),
        ({"rate": 1}, "guess: 'rate' is unknown; known are p, spread:p"),
    ],
)
def test_guesses_that_cannot_be(guesses: dict[str, float], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        nw.plan(settings, 100, [1.0], guesses=guesses, pool=True)


def test_a_check_draws_the_population_and_all_groups() -> None:
    rng = np.random.default_rng(0)
    release = settings(1.0)
    simulator, problem = simulated(release, Question(), pool=True)
    trials = simulator.from_prior(rng, problem, 40)
    assert isinstance(trials, PooledTrials)
    assert trials.names == ("p", "mean of p", "sd of p")
    assert trials.truth.shape == (40, 3)
    assert len(trials.releases) == 40


@pytest.mark.evidence
def test_pooled_shares_are_calibrated_under_their_prior() -> None:
    found = nw.check(settings(1.0), pool=True, trials=100).methods[0]
    assert found.parameters == ("p", "mean of p", "sd of p")
    assert min(found.coverage) > 0.88
    assert min(found.p_values) > 0.001


def test_sums_of_groups_of_several_sizes_are_of_so_many_records() -> None:
    rng = np.random.default_rng(1)
    _, problem = simulated(settings(1.0), Question(), pool=True)
    sizes = np.array([0, 1, 50, 700] * 3)
    sums, _ = sums_at(rng, problem.groups, np.full((12, 1), 1 - 1e-12), sizes)
    assert sums[:, 0].tolist() == sizes.tolist()

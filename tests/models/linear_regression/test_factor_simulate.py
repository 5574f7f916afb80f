"""Simulated releases with factors: guessed truths, sums, widths without privacy, prior draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError
from noisewise.formula import parse
from noisewise.models.linear_regression import factor_simulate
from noisewise.models.linear_regression.factor_problem import FactorProblem, factor_problem

LEVELS = {"sex": ["f", "m"], "region": ["n", "e", "s"]}
BOUNDS = {"age": (0, 100), "wage": (0, 50)}
FORMULA = "wage ~ age + C(sex) + C(region) + age:C(sex)"


def blank(n: int = 4000, formula: str = FORMULA, **words: Any) -> FactorProblem:
    named = parse(formula).columns
    release = nw.release.linear_regression(
        nw.release.Blank(n), formula=formula, epsilon=1.0,
        bounds={c: b for c, b in BOUNDS.items() if c in named},
        levels={c: v for c, v in LEVELS.items() if c in named}, **words,
    )  # fmt: skip
    problem = factor_problem(release)
    assert isinstance(problem, FactorProblem)
    return problem


def test_default_guess_follows_from_bounds_and_levels() -> None:
    problem = blank()
    _, guess = factor_simulate.guessed(problem, {})
    assert guess["sex=m"] == 0.5
    assert guess["region=s"] == pytest.approx(1 / 3)
    assert (guess["mean:age"], guess["sd:age"]) == pytest.approx((50, 100 / 6))
    assert guess["age:C(sex)[T.m]"] == 0
    made = factor_simulate.scene(problem, 4000, {}, 10, 0)
    moments = made.plain.mean(axis=0) / 4000
    mean, square = moments[-2, -1], moments[-1, -1]
    # The response is in the middle of its bounds and fills them with three deviations either way.
    assert mean == pytest.approx(25, abs=0.3)
    assert np.sqrt(square - mean**2) == pytest.approx(50 / 6, rel=0.02)
    assert guess["sigma"] ** 2 == pytest.approx((50 / 6) ** 2 / 2)


def test_guesses_of_every_kind() -> None:
    given = {
        "age": "uniform", "slope:age": 0.2, "sex": {"f": 0.8}, "wage": (30, 5), "sigma": 4.0,
        "C(region)[T.s]": -1.5,
    }  # fmt: skip
    truth, guess = factor_simulate.guessed(blank(), given)
    assert (guess["age"], guess["sigma"], guess["C(region)[T.s]"]) == (0.2, 4.0, -1.5)
    assert guess["sex=m"] == pytest.approx(0.2)
    assert truth.theta[blank().x.index("age")] == 0.2
    for bad, says in (
        ({"height": 1.0}, "'height' is unknown"),
        ({"sex": 0.5}, "'sex' is unknown"),
        ({"sigma": -1.0}, "sigma must be above zero"),
        ({"age": "round"}, "one of binary"),
    ):
        with pytest.raises(ArgumentError, match=says):
            factor_simulate.guessed(blank(), bad)


def test_sums_are_of_clamped_records_and_add_up() -> None:
    """Counts add up to n; sums of a clamped column are at most the counts."""
    problem = blank(1000)
    made = factor_simulate.scene(problem, 1000, {"age": (90, 30)}, 3, 0)
    assert made.outside["age"] == pytest.approx(0.37, abs=0.03)
    places = dict(zip(problem.statistic.blocks, problem.statistic.slices, strict=True))
    for block, place in places.items():
        if not block.product:
            np.testing.assert_allclose(made.sums[:, place].sum(axis=1), 1000)
    assert (np.abs(made.sums) <= 1000).all()


def test_widths_without_privacy_are_the_textbook_ones() -> None:
    """A contrast of two halves: 2 · 1.96 σ √(4/n); 3 % for ten samples of 4,000 records."""
    problem = blank(formula="wage ~ age + C(sex)")
    made = factor_simulate.scene(problem, 4000, {"sigma": 5.0, "slope:age": 0.1}, 10, 0)
    widths = dict(zip(made.names, made.width_without_privacy(0, 0.95), strict=True))
    assert widths["C(sex)[T.m]"] == pytest.approx(2 * 1.96 * 5 * np.sqrt(4 / 4000), rel=0.03)
    assert widths["age"] == pytest.approx(2 * 1.96 * 5 / (100 / 6) / np.sqrt(4000), rel=0.03)
    assert made.coverage_without_noise(0, 0.95).min() >= 0.6


def test_trials_have_the_noise_of_the_release() -> None:
    problem = blank(1000)
    made = factor_simulate.scene(problem, 1000, {}, 40, 0)
    added = made.trials(problem, 0).problem.z - made.sums
    # 40 times 30 Laplace draws: their mean size is the scale, right to 3 %.
    assert np.abs(added).mean() == pytest.approx(problem.noise_scale, rel=0.15)


def test_a_secret_size_is_what_the_noisy_counts_say() -> None:
    problem = blank(1000, neighbours="add-remove")
    sizes = factor_simulate.scene(problem, 1000, {}, 5, 0).trials(problem, 0).problem.n
    assert (sizes != 1000).all()
    assert np.abs(sizes - 1000).max() < 30 * problem.noise_scale


def test_a_column_in_products_only_cannot_be_planned() -> None:
    problem = blank(formula="wage ~ I(age**2) + C(sex)")
    with pytest.raises(ArgumentError, match="age stands in products only"):
        factor_simulate.scene(problem, 1000, {}, 2, 0)


def test_prior_draws_are_valid_and_their_coefficients_are_those_of_the_sums() -> None:
    """With 20,000 records and no noise, least squares from the sums finds most truths."""
    problem = blank(20_000, "wage ~ C(sex)")
    trials = factor_simulate.from_prior(np.random.default_rng(0), problem, 200)
    z, truth = trials.problem.z, trials.truth
    assert trials.names == ("C(sex)[T.m]", "intercept", "sigma2")
    places = dict(zip([b[:] for b in problem.statistic.blocks], problem.statistic.slices,
                      strict=True))  # fmt: skip
    counts, sums = z[:, places[(), (0,)]], z[:, places[(0,), (0,)]]
    busy = counts.min(axis=1) > 2000
    means = 25 + 25 * sums / counts
    # Noise of scale 5 on sums of more than 2,000 moves means by 25 · 5/2000; records by σ/√2000.
    error = np.abs((means[:, 1] - means[:, 0]) - truth[:, 0])[busy]
    assert (error < 6 * np.sqrt(truth[busy, 2] / 1000) + 2.5).all()


def gram(*columns: np.ndarray) -> np.ndarray:
    design = np.column_stack([*columns, np.ones(len(columns[0]))])
    return (design.T @ design)[None]


@pytest.mark.parametrize("first", [0, 1990, 2000])
def test_years_and_their_squares_can_be_told_apart(first: int) -> None:
    year = np.random.default_rng(1).uniform(first, first + 20, 2000)
    assert factor_simulate._has_full_rank(gram(year, year**2)).all()


def test_columns_that_are_combinations_of_others_are_found() -> None:
    rng = np.random.default_rng(1)
    x, indicator = rng.normal(50, 9, 500), (rng.random(500) < 0.3).astype(float)
    full = factor_simulate._has_full_rank
    assert full(gram(x, indicator)).all()
    for last in (np.zeros(500), np.ones(500), 2 * x - 7, x - 3 * indicator, np.full(500, 0.1)):
        assert not full(gram(x, indicator, last)).any()

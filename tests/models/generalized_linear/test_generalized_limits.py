"""Posteriors without noise, of nothing but noise, and of few records, against oracles."""

from __future__ import annotations

import numpy as np
import pytest

from noisewise.models.generalized_linear import clt, naive
from noisewise.models.generalized_linear.problem import GeneralizedProblem
from tests.models.generalized_linear.problems import PRIOR, of_records, problem
from tests.models.linear_regression.agreement import apart
from tests.reference import generalized_reference as reference

pytestmark = pytest.mark.xdist_group("one-covariate")

NAMES = ("x0", "intercept")


def normal_records(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(0.1, 0.3, n)
    return x, reference.draw_responses(rng, "logistic", 0.4 + 3.0 * x)


def test_without_noise_it_solves_the_moment_equations() -> None:
    """Normal x, 4,000 records: means within .15 of an sd of the solution, sds within 10 %.

    Which is nearly maximum likelihood: within half an sd, and the sandwich's sd within 10 %.
    """
    x, y = normal_records(4000, 3)
    post = clt.run(of_records(x, y, 0.05), 1, 2, 1000)
    solution, deviation = reference.moment_solution("logistic", x[:, None], y)
    fit, sandwich = reference.maximum_likelihood("logistic", x[:, None], y)
    found = np.array([post.draws[n].mean() for n in NAMES])
    spread = np.array([post.draws[n].std() for n in NAMES])
    assert np.abs((found - solution) / deviation).max() < 0.15
    np.testing.assert_allclose(spread, deviation, rtol=0.1)
    assert np.abs((found - fit) / sandwich).max() < 0.5
    np.testing.assert_allclose(spread, sandwich, rtol=0.1)


def test_without_noise_the_naive_method_is_right() -> None:
    """Its draws are about the same solution, with the same deviation: .1 of an sd, 8 %."""
    x, y = normal_records(4000, 3)
    post = naive.run(of_records(x, y, 1e-6), 1, 4, 1000)
    solution, deviation = reference.moment_solution("logistic", x[:, None], y)
    found = np.array([post.draws[n].mean() for n in NAMES])
    spread = np.array([post.draws[n].std() for n in NAMES])
    assert np.abs((found - solution) / deviation).max() < 0.1
    np.testing.assert_allclose(spread, deviation, rtol=0.08)


def test_of_nothing_but_noise_the_prior_comes_back() -> None:
    """Noise of 10⁶ on sums of 50: shares below common quantiles within 4.5 standard errors."""
    x, y = normal_records(50, 4)
    given = of_records(x, y, 1e6)
    post = clt.run(given, 1, 2, 4000)
    prior = (given.level, given.level_sd, given.slope_sd)
    mean, sd, level, gamma = reference.draw_prior(np.random.default_rng(0), 50, 40_000, prior)
    wanted = {"x0": gamma / sd, "intercept": level - gamma / sd * mean}
    for name, draws in wanted.items():
        assert apart(post.draws[name][:, ::4], draws.reshape(2, -1)) < 4.5


def few_records(n: int, scale: float) -> GeneralizedProblem:
    """Few records of a deviation of half the box's half width, noise on their sums."""
    rng = np.random.default_rng(n)
    x = rng.normal(0.1, 0.5, n)
    y = reference.draw_responses(rng, "logistic", 0.4 + 1.5 * x)
    return of_records(x, y, scale, seed=n)


def compared(n: int, scale: float, size: int, draws: int) -> list[list[float]]:
    """For slope and intercept: the difference of means and of sds, in posterior sds, the standard
    error of the first, and the largest difference of shares below quantiles, with its own.

    Tails are clipped at the oracle's 1 and 99 %: a slope per unit has no mean where the noise lets
    the column's deviation be 0.
    """
    given = few_records(n, scale)
    post = clt.run(given, 2, 2, draws)
    prior = (PRIOR.level or 0.0, given.level_sd, given.slope_sd)
    *theirs, weight = reference.importance_sample(
        np.random.default_rng(n), "logistic", given.covariates[0], given.response[0],
        given.noise_scale, n, size, prior,
    )  # fmt: skip
    effective, rows = 1 / (weight**2).sum(), []
    for name, values in zip(NAMES, theirs, strict=True):
        order = np.argsort(values)
        share = np.cumsum(weight[order])
        quantiles = values[order][np.searchsorted(share, [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])]
        low, *inner, high = quantiles
        oracle = np.clip(values, low, high)
        ours = np.clip(post.draws[name].ravel(), low, high)
        mean = weight @ oracle
        sd = np.sqrt(weight @ (oracle - mean) ** 2)
        both = 1 / effective + 1 / float(np.min(post.ess[name]))
        off, error = [], []
        for q in inner:
            wanted = weight @ (values < q)
            off.append(abs(float((post.draws[name] < q).mean()) - wanted))
            error.append(np.sqrt(wanted * (1 - wanted) * both))
        worst = int(np.argmax(off))
        rows.append([
            abs(ours.mean() - mean) / sd, abs(ours.std() / sd - 1), np.sqrt(both), off[worst],
            error[worst],
        ])  # fmt: skip
        print(f"\nn {n} scale {scale} {name}: ESS of the oracle {effective:.0f}, " + ", ".join(
            f"{w} {v:.3f}" for w, v in zip(
                ("mean off", "sd off", "error", "share off", "its error"), rows[-1], strict=True
            )))  # fmt: skip
    return rows


def test_thirty_records_agree_with_whole_data_sets() -> None:
    """Half a million of them, and no central limit theorem: means and sds within .15 of an sd.

    Shares below quantiles within 4.5 standard errors, or .06, which is what .15 of an sd makes.
    """
    for mean, sd, error, share, its in compared(30, 1.0, 500_000, 3000):
        assert error < 0.05
        assert mean < 0.15
        assert sd < 0.15
        assert share < max(4.5 * its, 0.06)


@pytest.mark.evidence
@pytest.mark.parametrize("scale", [1.0, 3.0])
@pytest.mark.parametrize("n", [30, 60])
def test_few_records_agree_with_whole_data_sets(n: int, scale: float) -> None:
    """Five million data sets: the same bars, with smaller standard errors."""
    for mean, sd, error, share, its in compared(n, scale, 5_000_000, 6000):
        assert error < 0.03
        assert mean < 0.15
        assert sd < 0.15
        assert share < max(4.5 * its, 0.06)


@pytest.mark.evidence
@pytest.mark.parametrize("link", ["probit", "poisson"])
def test_other_links_without_noise_solve_the_moment_equations(link: str) -> None:
    """Two covariates: means within .2 of an sd, sds within 12 %."""
    given = problem(2, link=link, n=4000, scale=0.02)
    post = clt.run(given, 1, 4, 1000)
    # The same records as in ``problem``.
    rng = np.random.default_rng(1)
    x = rng.normal(0.1, 0.3, (4000, 2)) @ (np.eye(2) + 0.3 * np.tri(2, 2, -1))
    y = reference.draw_responses(rng, link, 0.2 + x.sum(axis=1))
    y = np.minimum(y, 12)
    solution, deviation = reference.moment_solution(link, x, y)
    for i, name in enumerate(("x0", "x1", "intercept")):
        assert abs(post.draws[name].mean() - solution[i]) < 0.2 * deviation[i]
        assert post.draws[name].std() == pytest.approx(deviation[i], rel=0.12)

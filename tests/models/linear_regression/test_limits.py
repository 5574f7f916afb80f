"""No noise recovers the conjugate posterior, nothing but noise recovers the prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from noisewise.inference import methods
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.priors import CovariateMoments
from tests.inference.agreement import TOLERANCE, departures, known, summary
from tests.inference.regressions import CHAINS, DRAWS, GROUPS, problem, table
from tests.reference import regression_reference as reference

pytestmark = pytest.mark.xdist_group("one-covariate")
LINEAR: Any = methods("linear-regression")


def tables(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [table(rng, n) for _ in range(GROUPS)]


def with_moments(given: RegressionProblem, chosen: list[np.ndarray]) -> RegressionProblem:
    """Exact monomials of x beside the noisy Gram matrix, as gibbs-noisy wants them."""
    powers = np.array([[np.sum(w[:, 0] ** k) for k in range(1, 5)] for w in chosen])
    exponents = tuple((0,) * k for k in range(1, 5))
    return RegressionProblem(**{**vars(given), "moments": powers, "exponents": exponents})


@pytest.mark.parametrize("method", ["exact", "gibbs-update", "gibbs-prior", "gibbs-noisy", "naive"])
def test_without_noise_the_posterior_is_the_conjugate_one(method: str) -> None:
    """Noise of 1e-4 on sums of 60 records: 6 comparisons on each of two tables."""
    chosen = tables(60)
    given = with_moments(problem(chosen, 1e-4), chosen)
    post = LINEAR[method](given, 0, CHAINS, DRAWS, None)
    assert post.converged, post.status
    p = reference.paper_priors()
    for group in range(2):
        first, second = reference.moments_given_statistic(reference.statistic(chosen[group]), 60, p)
        expected = known(first, np.sqrt(second - first**2))
        assert np.abs(departures(summary(post, group), expected)).max() < TOLERANCE


def prior_moments(p: reference.Priors) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd of (θ, σ²) before anything is seen."""
    variance = p.b0 / (p.a0 - 1)
    spread = np.sqrt(np.append(variance * np.diag(np.linalg.inv(p.lam0)), 0.0))
    spread[-1] = variance / np.sqrt(p.a0 - 2)
    return np.append(p.m0, variance), spread


def test_with_nothing_but_noise_exact_is_the_prior() -> None:
    """Noise of 1e5 on sums of 20 records; 6 comparisons on each of two data sets."""
    post = LINEAR["exact"](problem(tables(20), 1e5), 0, CHAINS, DRAWS, None)
    assert post.converged, post.status
    expected = known(*prior_moments(reference.paper_priors()))
    for group in range(2):
        assert np.abs(departures(summary(post, group), expected)).max() < TOLERANCE


@pytest.mark.parametrize("method", ["gibbs-update", "gibbs-prior"])
def test_with_nothing_but_noise_gibbs_is_nearly_the_prior(method: str) -> None:
    """The central limit theorem is an approximation: a fifth of the prior sd is allowed for it.

    A prior that says as much as 20 records, or the chain, which moves by what s leaves open, would
    need far longer.
    """
    p = reference.Priors(
        np.array([0.5, -0.2]), np.eye(2) * 20 * np.array([0.1, 1.0]), 20.0, 0.5,
        np.array([0.1]), 5.0, np.array([[4.8]]), 50.0,
    )  # fmt: skip
    post = LINEAR[method](problem(tables(100), 1e5, priors=p), 0, CHAINS, DRAWS, None)
    mean, sd = prior_moments(p)
    for group in range(2):
        found = summary(post, group)
        slack = 0.2 * sd
        assert (np.abs(found["mean"] - mean) < slack + TOLERANCE * found["mean_error"]).all()
        assert (np.abs(found["sd"] - sd) < slack + TOLERANCE * found["sd_error"]).all()


def test_given_moments_are_what_a_prior_with_these_moments_is() -> None:
    """gibbs-prior from a formula and from draws of the same prior: 12 comparisons."""
    given = problem(tables(60), 2.0)
    rng = np.random.default_rng(1)
    tau2 = 0.5 / rng.gamma(25.0, size=400_000)
    x = rng.normal(rng.normal(0, np.sqrt(tau2)), np.sqrt(tau2))
    drawn = CovariateMoments.from_draws(x[:, None])
    run = LINEAR["gibbs-prior"]
    formula = run(given, 0, CHAINS, DRAWS, None)
    other = run(RegressionProblem(**{**vars(given), "covariates": drawn}), 1, CHAINS, DRAWS, None)
    assert (formula.details["moments"], other.details["moments"]) == (
        "the prior's, in closed form",
        "given",
    )
    for group in range(2):
        off = departures(summary(formula, group), summary(other, group))
        assert np.abs(off).max() < TOLERANCE


def test_gibbs_that_has_not_converged_says_so() -> None:
    """A thousand records, much noise: the paper's own difficult case."""
    post = LINEAR["gibbs-update"](problem(tables(1000), 50.0), 0, CHAINS, DRAWS, None)
    assert not post.converged
    assert "not converged" in post.status
    assert "effective draws" in post.status

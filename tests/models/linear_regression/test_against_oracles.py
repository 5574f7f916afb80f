"""``exact`` against importance sampling, ``gibbs-update`` against Algorithm 1, both in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from noisewise.inference.results import Posterior
from noisewise.models.linear_regression import exact, gibbs_methods
from noisewise.models.linear_regression.problem import RegressionProblem
from tests.inference.agreement import TOLERANCE, departures, summary
from tests.inference.regressions import CHAINS, DRAWS, GROUPS, paper_table, problem, sensitivity
from tests.reference import regression_reference as reference

pytestmark = pytest.mark.xdist_group("one-covariate")


def paper_problem(n: int, epsilon: float, seed: int, groups: int = GROUPS) -> RegressionProblem:
    """Data sets drawn from the paper's priors, noise by errata E1."""
    rng = np.random.default_rng(seed)
    tables = [paper_table(rng, n) for _ in range(groups)]
    return problem(tables, sensitivity(2) / epsilon, seed=seed)


def against_importance(
    given: RegressionProblem, post: Posterior, group: int, draws: int
) -> tuple[np.ndarray, reference.Estimate]:
    n, p = int(given.n[group]), reference.paper_priors()
    for more in (1, 4, 16, 64):
        found = reference.importance(
            given.z[group], n, given.noise_scale, p, draws=more * draws, seed=group
        )
        if found.effective > 1000:
            break
    assert found.effective > 500, "the oracle itself knows too little here"
    return departures(summary(post, group), vars(found)), found


@pytest.mark.parametrize(("n", "epsilon"), [(10, 1.0), (100, 0.1)])
def test_exact_matches_importance_sampling(n: int, epsilon: float) -> None:
    """Mean and sd of three parameters on two data sets: 12 comparisons."""
    given = paper_problem(n, epsilon, seed=n)
    post = exact.run(given, 0, CHAINS, DRAWS)
    assert post.converged, post.status
    for group in range(2):
        off, _ = against_importance(given, post, group, 250_000)
        assert np.abs(off).max() < TOLERANCE


@pytest.mark.evidence
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("n", [10, 100, 1000])
def test_exact_matches_importance_sampling_on_many_data_sets(n: int, epsilon: float) -> None:
    """20 data sets, 120 comparisons; where noise hides the sign of the slope, both signs count."""
    given = paper_problem(n, epsilon, seed=1000 + n, groups=20)
    post = exact.run(given, 1, CHAINS, 2000)
    assert post.converged, post.status
    results = [against_importance(given, post, g, 500_000) for g in range(20)]
    worst = max(float(np.abs(off).max()) for off, _ in results)
    flips = sum(0.1 < found.positive < 0.9 for _, found in results)
    least = min(found.effective for _, found in results)
    print(f"n {n}, epsilon {epsilon}: worst {worst:.2f} standard errors, {flips} of 20 with both "
          f"signs, oracle's effective draws at least {least:.0f}")  # fmt: skip
    assert worst < TOLERANCE
    if epsilon == 0.1 and n <= 100:
        assert flips >= 5


@pytest.mark.evidence
def test_exact_with_gaussian_noise_matches_importance_sampling() -> None:
    """The oracle's half of proposals that are z plus noise are then normal."""
    rng = np.random.default_rng(3)
    tables = [paper_table(rng, 50) for _ in range(GROUPS)]
    given = problem(tables, 3.0, mechanism="gaussian")
    post = exact.run(given, 0, CHAINS, DRAWS)
    assert post.converged, post.status
    p = reference.paper_priors()
    for group in range(GROUPS):
        found = reference.importance(
            given.z[group], 50, 3.0, p, draws=2_000_000, mechanism="gaussian"
        )
        assert np.abs(departures(summary(post, group), vars(found))).max() < TOLERANCE


@pytest.mark.evidence
def test_exact_with_secret_n_matches_importance_sampling() -> None:
    """n flat over whole numbers; the oracle sums over them, so n must be well above one step."""
    rng = np.random.default_rng(4)
    tables = [paper_table(rng, n) for n in (40, 40, 60, 60)]
    given = problem(tables, 4.0, noisy_n=True)
    post = exact.run(given, 0, CHAINS, DRAWS)
    assert post.converged, post.status
    p = reference.paper_priors()
    for group in range(GROUPS):
        found = reference.importance_secret_n(given.z[group], 4.0, p, draws=4_000_000)
        off = departures(summary(post, group), vars(found))
        assert np.abs(off).max() < TOLERANCE, (group, off)


def blocked(slow: np.ndarray, blocks: int) -> dict[str, np.ndarray]:
    """Mean and sd of an oracle's chain, with standard errors from means over blocks of it."""
    parts = slow.reshape(blocks, -1, 3)
    means, sds = parts.mean(axis=1), np.sqrt(((parts - slow.mean(0)) ** 2).mean(axis=1))
    return {
        "mean": slow.mean(0),
        "sd": slow.std(0),
        "mean_error": means.std(0, ddof=1) / np.sqrt(blocks),
        "sd_error": sds.std(0, ddof=1) / np.sqrt(blocks),
    }


def test_exact_is_mcmc_over_individuals() -> None:
    """Ten records, all unknown, in plain NumPy: mean and sd of three parameters, 6 comparisons."""
    rng = np.random.default_rng(8)
    given = problem([paper_table(rng, 10) for _ in range(GROUPS)], 2.0)
    post = exact.run(given, 0, CHAINS, DRAWS)
    p = reference.paper_priors()
    slow = reference.mcmc_individual(given.z[0], 10, 2.0, p, iterations=6000, burn_in=300)
    assert np.abs(departures(summary(post, 0), blocked(slow, 20))).max() < TOLERANCE


def test_gibbs_update_is_algorithm_1() -> None:
    """Where it mixes (n = 30, little noise): mean and sd of three parameters, 6 comparisons."""
    rng = np.random.default_rng(5)
    given = problem([paper_table(rng, 30) for _ in range(GROUPS)], 0.3)
    post = gibbs_methods.run_update(given, 0, CHAINS, DRAWS)
    slow, share = reference.algorithm_1(
        given.z[0], 30, 0.3, reference.paper_priors(), iterations=1500, burn_in=100
    )
    assert np.abs(departures(summary(post, 0), blocked(slow, 30))).max() < TOLERANCE
    assert abs(share - post.details["projected_share"]) < 0.2

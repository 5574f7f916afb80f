"""What privacy cost: the deviation without noise is the conjugate posterior's own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from noisewise.models.exponential_family.posterior import noise_free_deviations as of_family
from noisewise.models.linear_regression import naive
from noisewise.models.linear_regression.posterior_draws import deviations_without_noise, prior_draws
from noisewise.priors import NormalInverseGamma
from tests.inference.regressions import problem, table
from tests.models.exponential_family.cases import CASES
from tests.models.exponential_family.cases import problem as family_problem


def test_regression_from_the_sums_themselves() -> None:
    """Sums known exactly leave the conjugate posterior: 4 × 20,000 draws of it, within 2 %."""
    rng = np.random.default_rng(1)
    given = problem([table(rng, 60, d=2), table(rng, 400, d=2)], scale=1e-9)
    alone = deviations_without_noise(given, {"s": np.repeat(given.z[:, None, None], 3, axis=2)})
    plain = naive.run(given, 0, 4, 20_000)
    for name, values in plain.draws.items():
        np.testing.assert_allclose(alone[name], values.std(axis=(1, 2)), rtol=0.02)


def test_uncertain_sums_are_averaged() -> None:
    rng = np.random.default_rng(2)
    given = problem([table(rng, 60)], scale=1e-9)
    one = deviations_without_noise(given, {"s": given.z[:, None, None]})
    other = problem([table(rng, 60)], scale=1e-9)
    two = deviations_without_noise(other, {"s": other.z[:, None, None]})
    both = deviations_without_noise(given, {"s": np.stack([given.z, other.z], axis=1)[:, None]})
    for name in one:
        assert both[name] == pytest.approx(np.sqrt((one[name] ** 2 + two[name] ** 2) / 2))


@pytest.mark.parametrize("name", ["poisson", "normal", "categorical"])
def test_families_at_a_known_parameter(name: str) -> None:
    """θ known: s is its mean, and the deviation SciPy's; 40,000 draws, within 5 %."""
    case = CASES[name]
    given = family_problem(case, [case.records(np.random.default_rng(0), 100)], 0.5)
    theta = np.broadcast_to(np.array(case.theta), (1, 4, 100, len(case.theta)))
    found = of_family(given, theta)
    if name == "normal":
        m, v = 0.5 / 4, 1.5 / 16
        s = 100 * np.array([m, m * m + v])
    elif name == "categorical":
        s = 100 * np.array(case.theta)
    else:
        s = 100 * np.array([case.law.mean()])
    wanted = [law.std() for law in case.posterior(s, 100)]
    np.testing.assert_allclose([v[0] for v in found.values()], wanted, rtol=0.05)


def test_prior_draws_of_a_regression() -> None:
    """σ² is inverse gamma, a coefficient Student's t: KS at a false-alarm rate of 0.1 % each."""
    prior = NormalInverseGamma([1.0, -2.0], [[2.0, 0.5], [0.5, 1.0]], 4.0, 3.0)
    drawn = prior_draws(prior, ("x", "intercept", "sigma2"), 5000, seed=3)
    covariance = np.linalg.inv(prior.precision) * prior.rate / prior.shape
    for i, name in enumerate(("x", "intercept")):
        law = stats.t(2 * prior.shape, prior.mean[i], np.sqrt(covariance[i, i]))
        assert stats.kstest(drawn[name], law.cdf).pvalue > 1e-3
    assert stats.kstest(drawn["sigma2"], stats.invgamma(4, scale=3).cdf).pvalue > 1e-3
    slope = np.cov(drawn["x"], drawn["intercept"])
    assert slope[0, 1] == pytest.approx(covariance[0, 1] * 8 / 6, rel=0.15)

"""Bounds that cut values off: moments against quadrature, the way back, and calibration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from experiments.real_tables import clamped
from experiments.real_tables.clamped import clamped_table
from noisewise.models.linear_regression import censoring, exact
from noisewise.models.linear_regression.censoring import Cuts
from tests.inference.regressions import CHAINS, DRAWS, GROUPS, problem
from tests.reference import clamped_normal_reference as reference

pytestmark = pytest.mark.xdist_group("one-covariate")

SIDES = {"both": (True, True), "upper": (False, True), "lower": (True, False)}


def limits(lower: bool, upper: bool) -> tuple[float, float]:
    """Return the bounds that cut, infinite where none does."""
    return -1.0 if lower else -np.inf, 1.0 if upper else np.inf


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize(("mu", "sigma"), [(0.2, 0.4), (-0.6, 0.9), (1.1, 0.8), (0.97, 0.01)])
def test_moments_of_a_clamped_column_and_the_way_back(sides: str, mu: float, sigma: float) -> None:
    """By quadrature; and the law that has those moments is found again."""
    ends = SIDES[sides]
    mean, variance = reference.margin(mu, sigma, *limits(*ends))
    at = censoring.clamped_margin(np.array(mu), np.array(sigma), *ends)
    np.testing.assert_allclose([at.mean, at.variance], [mean, variance], rtol=1e-7)
    back = censoring.unclamped_margin(np.array([mean]), np.array([variance]), *ends)
    np.testing.assert_allclose(np.ravel(back), [mu, sigma], rtol=1e-5)


@pytest.mark.parametrize("sides", SIDES)
def test_slopes_of_the_moments_are_their_derivatives(sides: str) -> None:
    """By μ and by log σ, from finite differences."""
    mu, log_sigma, step = 0.3, -0.4, 1e-5
    ends = SIDES[sides]

    def moments(mu: float, log_sigma: float) -> np.ndarray:
        at = censoring.clamped_margin(np.array(mu), np.exp(np.array(log_sigma)), *ends)
        return np.array([at.mean, at.variance])

    by_mu = (moments(mu + step, log_sigma) - moments(mu - step, log_sigma)) / (2 * step)
    by_log = (moments(mu, log_sigma + step) - moments(mu, log_sigma - step)) / (2 * step)
    at = censoring.clamped_margin(np.array(mu), np.exp(np.array(log_sigma)), *ends)
    np.testing.assert_allclose(at.mean_slopes, [by_mu[0], by_log[0]], rtol=1e-6)
    np.testing.assert_allclose(at.variance_slopes, [by_mu[1], by_log[1]], rtol=1e-6)


@pytest.mark.parametrize("rho", [-0.97, -0.3, 0.6, 0.97])
@pytest.mark.parametrize("sides", [("both", "both"), ("both", "upper"), ("lower", "upper")])
def test_covariance_of_two_clamped_columns(sides: tuple[str, str], rho: float) -> None:
    """Mehler's series against quadrature, and the correlation found again."""
    means, deviations = (0.3, -0.4), (0.6, 0.9)
    ends = [SIDES[s] for s in sides]
    wanted = reference.covariance(means, deviations, rho, (limits(*ends[0]), limits(*ends[1])))
    terms = [
        censoring.hermite_coefficients(np.array([m]), np.array([s]), *e)
        for m, s, e in zip(means, deviations, ends, strict=True)
    ]
    powers = rho ** np.arange(1, censoring.TERMS + 1)
    assert abs(powers @ (terms[0] * terms[1])[:, 0] - wanted) < 1e-5
    found = censoring.unclamped_correlation(np.array([wanted]), terms[0] * terms[1])
    assert abs(found[0] - rho) < 1e-4


def test_columns_that_are_not_cut_keep_their_law() -> None:
    """Exactly; and their covariance with a cut column is divided by its share inside."""
    mean, root = np.array([0.1, -0.2, 0.4]), np.array([[0.3, 0, 0], [0.1, 0.2, 0], [0.2, 0.1, 0.5]])
    covariance = root @ root.T
    cuts = Cuts(np.array([False, False, True]), np.array([False, False, True]))
    sigma = np.sqrt(covariance[2, 2])
    at = censoring.clamped_margin(mean[2], sigma, True, True)
    clamped, whole = np.append(mean[:2], at.mean), covariance.copy()
    whole[2, 2] = at.variance
    whole[2, :2] = whole[:2, 2] = covariance[2, :2] * at.mean_slopes[0]
    mu, law = censoring.unclamped_law(clamped[None], whole[None], cuts)
    np.testing.assert_allclose(mu[0], mean, rtol=1e-8)
    np.testing.assert_allclose(law[0], covariance, rtol=1e-8)
    np.testing.assert_array_equal(mu[0, :2], mean[:2])


@pytest.mark.parametrize("sides", SIDES)
def test_nearly_all_records_cut_off(sides: str) -> None:
    """One in twenty inside: the law is still found, if noise leaves its moments alone."""
    ends = SIDES[sides]
    mu = np.array([{"upper": 1 - norm.ppf(0.05), "lower": norm.ppf(0.05) - 1, "both": 0.5}[sides]])
    sigma = np.array([15.8 if sides == "both" else 1.0])
    at = censoring.clamped_margin(mu, sigma, *ends)
    assert at.mean_slopes[0] == pytest.approx(0.05, rel=0.02)
    back = censoring.unclamped_margin(at.mean, at.variance, *ends)
    np.testing.assert_allclose(np.ravel(back), [mu[0], sigma[0]], rtol=1e-6)


def test_impossible_moments_give_finite_laws() -> None:
    """Noise makes draws that no clamped record can have: means beyond the box, wild variances."""
    rng = np.random.default_rng(3)
    mean = rng.uniform(-1.3, 1.3, (500, 3))
    root = rng.normal(0, 1, (500, 3, 3)) * np.exp(rng.normal(-2, 3, (500, 1, 1)))
    covariance = root @ np.swapaxes(root, 1, 2)
    every = np.ones(3, bool)
    for cuts in (
        Cuts(every, every),
        Cuts(~every, every),
        Cuts(every, np.array([True, False, True])),
    ):
        mu, law = censoring.unclamped_law(mean, covariance, cuts)
        assert np.isfinite(mu).all()
        assert np.linalg.eigvalsh(law / law.max(axis=(1, 2))[:, None, None]).min() > -1e-8


def test_bounds_that_cut_nothing_change_nothing() -> None:
    """Records well inside their bounds: declared as cut or as natural, much the same posterior."""
    rng = np.random.default_rng(8)
    inside = [clamped_table(rng, 2000, 1, (0.0, 0.0))[0] for _ in range(GROUPS)]
    natural = replace(problem(inside, 0.01), scale_free=True)
    every = np.ones(2, bool)
    posts = [
        exact.run(p, 1, CHAINS, DRAWS) for p in (natural, replace(natural, cuts=Cuts(every, every)))
    ]
    for name in ("x1", "intercept", "sigma2"):
        plain, cut = (p.draws[name].reshape(GROUPS, -1) for p in posts)
        np.testing.assert_allclose(cut.mean(1), plain.mean(1), atol=0.2 * plain.std(1).min())
        np.testing.assert_allclose(cut.std(1), plain.std(1), rtol=0.1)


def test_a_third_of_the_response_cut_off_is_inferred() -> None:
    """Four tables, hardly any noise: natural bounds miss the slope, cut ones hold it.

    Given the seed nothing here is random.
    """
    rng = np.random.default_rng(4)
    made = [clamped_table(rng, 2000, 1, (0.0, 0.33)) for _ in range(GROUPS)]
    natural = replace(problem([t for t, _ in made], 0.01), scale_free=True)
    last = np.array([False, True])
    truth = made[0][1]
    wrong = exact.run(natural, 1, CHAINS, DRAWS)
    right = exact.run(replace(natural, cuts=Cuts(last, last)), 1, CHAINS, DRAWS)
    for name, value in zip(("x1", "intercept", "sigma2"), truth, strict=True):
        low, high = np.quantile(right.draws[name].reshape(GROUPS, -1), [0.005, 0.995], axis=1)
        assert ((low < value) & (value < high)).all()
    assert (np.quantile(wrong.draws["x1"].reshape(GROUPS, -1), 0.995, axis=1) < truth[0]).all()
    assert right.converged
    # The same law is behind all tables; latent draws are of it, too.
    deviation = np.sqrt(right.latent["tau2"][..., 0, 0]).mean()
    assert abs(deviation / 0.28 - 1) < 0.03


@pytest.mark.evidence
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
@pytest.mark.parametrize("n", [1000, 10_000])
@pytest.mark.parametrize(
    "outside",
    [
        (0.0, 0.05),
        (0.0, 0.15),
        (0.0, 0.33),
        (0.15, 0.0),
        (0.15, 0.15),
        (0.15, 0.0, 0.15, 0.0),
        (0.15, 0.0, 0.15, 0.15),
        (0.2, 0.1, 0.0, 0.3),
    ],
)
def test_coverage(outside: tuple[float, ...], n: int, epsilon: float) -> None:
    """Of 400 tables, every slope, the intercept and σ² in at least .92."""
    found = clamped.cell(outside, n, epsilon)
    print(found)
    assert min(found.coverage) >= 0.92
    assert found.converged >= 0.99

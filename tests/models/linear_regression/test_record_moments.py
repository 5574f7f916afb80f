"""μ_t and Σ_t: errata E10, the paper's formulas with E9, and Monte Carlo are one thing."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisewise.models.linear_regression import record_moments
from noisewise.models.linear_regression.gibbs_methods import normal_inverse_wishart_moments
from noisewise.priors import CovariateMoments, NormalInverseWishart
from tests.reference import regression_reference as reference

normal_law = jax.jit(record_moments.normal_moments)
given_law = jax.jit(record_moments.moments_given_x)


def rows_of(deviate: Callable[..., jax.Array], size: int, *given: object) -> np.ndarray:
    """Deviates of unit vectors: they are linear in white noise, so this is a square root."""
    over = jax.vmap(deviate, in_axes=(0, *(None for _ in given)))
    return np.asarray(jax.jit(over)(jnp.eye(size), *given))


def example(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Mean and covariance of x, θ with the intercept last, σ²."""
    rng = np.random.default_rng(d)
    root = rng.normal(0, 0.4, (d, d)) + 0.3 * np.eye(d)
    return rng.normal(0, 0.5, d), root @ root.T, rng.normal(0, 0.8, d + 1), 0.3


def normal_fourth(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """E[x̃⊗4] of a normal: the limit of a very certain normal-inverse-Wishart."""
    freedom, kappa = 1e13, 1e13
    prior = NormalInverseWishart(mean, kappa, covariance * freedom, freedom)
    fourth = normal_inverse_wishart_moments(prior)
    assert fourth is not None
    return fourth


def joint(
    mean: np.ndarray, covariance: np.ndarray, theta: np.ndarray, variance: float
) -> tuple[np.ndarray, np.ndarray]:
    """The law of (x, y)."""
    slopes = theta[:-1]
    cross = covariance @ slopes
    level = variance + slopes @ cross
    full = np.block([[covariance, cross[:, None]], [cross[None], np.array([[level]])]])
    return np.append(mean, slopes @ mean + theta[-1]), full


@pytest.mark.parametrize("d", [1, 2, 3])
def test_joint_normal_formula_equals_the_papers_formulas(d: int) -> None:
    mean, covariance, theta, variance = example(d)
    fourth = normal_fourth(mean, covariance)
    expected = reference.paper_moments(fourth, theta, variance)
    law = normal_law(*joint(mean, covariance, theta, variance))
    x, odd = record_moments.x_moments(fourth[None])
    given = given_law(jax.tree.map(lambda a: a[0], x), theta, variance)
    assert not odd[0]
    for found in (law, given):
        np.testing.assert_allclose(found.mean, expected[0], rtol=1e-9)
        np.testing.assert_allclose(found.covariance, expected[1], rtol=1e-8, atol=1e-10)


def test_the_formula_printed_in_the_main_text_is_another() -> None:
    """E9: with ξ_ij,kl for ξ_ik,jl in Cov(x_i y, x_j y) the oracle would notice."""
    mean, covariance, theta, _ = example(2)
    fourth = normal_fourth(mean, covariance)
    eta = fourth[:, :, -1, -1]
    xi = fourth - eta[:, :, None, None] * eta
    right = theta @ xi[0, :, 1, :] @ theta
    printed = theta @ xi[0, 1] @ theta
    assert abs(right - printed) > 0.01


@pytest.mark.parametrize("d", [1, 3])
def test_deviates_have_the_covariance(d: int) -> None:
    mean, covariance, theta, variance = example(d)
    m, c = joint(mean, covariance, theta, variance)
    size = (d + 1) * (d + 4) // 2
    factor = np.linalg.cholesky(c)
    rows = rows_of(record_moments.normal_deviate, size, m, factor)
    law = normal_law(m, c)
    np.testing.assert_allclose(rows.T @ rows, law.covariance, rtol=1e-9, atol=1e-12)
    x, _ = record_moments.x_moments(normal_fourth(mean, covariance)[None])
    x = jax.tree.map(lambda a: a[0], x)
    rows = rows_of(record_moments.deviate_given_x, size, x, theta, variance)
    given = given_law(x, theta, variance)
    np.testing.assert_allclose(rows.T @ rows, given.covariance, rtol=1e-7, atol=1e-9)


def test_moments_by_monte_carlo() -> None:
    """200,000 records, two covariates: every entry within 5 standard errors (1e-4 for all 54)."""
    mean, covariance, theta, variance = example(2)
    rng = np.random.default_rng(7)
    x = rng.multivariate_normal(mean, covariance, 200_000)
    y = x @ theta[:-1] + theta[-1] + rng.normal(0, np.sqrt(variance), len(x))
    w = np.column_stack([x, y])
    i, j = record_moments.pairs(3)
    full = np.column_stack([w, np.ones(len(w))])
    t = full[:, i] * full[:, j]
    law = normal_law(*joint(mean, covariance, theta, variance))
    off = t - np.asarray(law.mean)
    assert np.abs(off.mean(0) / (off.std(0) / np.sqrt(len(t)))).max() < 5
    for row in range(len(i)):
        products = off[:, row : row + 1] * off
        error = products.std(0) / np.sqrt(len(t))
        assert np.abs((products.mean(0) - np.asarray(law.covariance)[row]) / error).max() < 5


def test_moments_of_a_normal_inverse_wishart_by_monte_carlo() -> None:
    """Multivariate t with 30 degrees of freedom; 5 standard errors of 300,000 draws."""
    prior = NormalInverseWishart([0.3, -0.2], 2.0, [[1.0, 0.3], [0.3, 0.5]], 31.0)
    rng = np.random.default_rng(8)
    freedom = prior.df - 1
    shape = prior.scale * (prior.kappa + 1) / (prior.kappa * freedom)
    heavy = np.sqrt(freedom / rng.chisquare(freedom, 300_000))
    white = rng.standard_normal((300_000, 2)) @ np.linalg.cholesky(shape).T
    x = np.column_stack([prior.mean + white * heavy[:, None], np.ones(300_000)])
    fourth = normal_inverse_wishart_moments(prior)
    assert fourth is not None
    for index in np.ndindex(3, 3, 3, 3):
        product = np.prod(x[:, index], axis=1)
        error = product.std() / np.sqrt(len(product)) + 1e-12
        assert abs(product.mean() - fourth[index]) < 5 * error


def test_given_moments_change_units_like_draws_do() -> None:
    x = np.random.default_rng(9).gamma(2.0, 1.0, (500, 2))
    centre, unit = np.array([1.0, 3.0]), np.array([2.0, 0.5])
    mapped = CovariateMoments.from_draws(x).mapped(centre, unit)
    direct = CovariateMoments.from_draws((x - centre) / unit)
    np.testing.assert_allclose(mapped.fourth, direct.fourth, rtol=1e-8, atol=1e-8)
    assert direct.columns == 2


@pytest.mark.parametrize(
    ("fourth", "says"),
    [
        (np.ones((2, 2, 2)), "four axes"),
        (np.full((2, 2, 2, 2), np.nan), "finite"),
        (np.arange(16.0).reshape(2, 2, 2, 2), "exchanged"),
        (np.full((2, 2, 2, 2), 0.5), "some distribution"),
    ],
)
def test_odd_moments_are_refused(fourth: np.ndarray, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        CovariateMoments(fourth)


def test_noisy_moments_that_nobody_has_are_moved_to_ones_that_exist() -> None:
    fourth = CovariateMoments.from_draws(np.random.default_rng(1).normal(0, 0.3, (99, 1))).fourth
    spoilt = fourth.copy()
    spoilt[0, 0, 0, 0] = 0.0
    x, odd = record_moments.x_moments(np.stack([fourth, spoilt]))
    assert odd.tolist() == [False, True]
    assert np.linalg.eigvalsh(np.asarray(x.cross))[:, 0].min() > -1e-12

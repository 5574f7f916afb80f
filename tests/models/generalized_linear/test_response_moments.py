"""Mean and covariance of the response's sums, against simulated data sets."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisewise.models.generalized_linear.covariate_nodes import (
    GRID,
    CovariateNodes,
    gauss_rule,
    normal_nodes,
)
from noisewise.models.generalized_linear.links import LINKS
from noisewise.models.generalized_linear.response_moments import (
    NodeArrays,
    node_arrays,
    node_sums,
    normal_sums,
)
from tests.reference import generalized_reference as reference

SLOPES = {1: np.array([1.1]), 2: np.array([0.8, -0.6]), 4: np.array([0.5, -0.4, 0.3, 0.4])}
LEVELS = {"logistic": -0.8, "probit": -0.5, "poisson": 0.2}


def by_normal(link: str, a: float, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = normal_sums(LINKS[link], jnp.asarray(a), jnp.asarray(b))
    return np.asarray(found.mean), np.asarray(found.covariance)


def by_nodes(
    link: str, a: float, b: np.ndarray, nodes: CovariateNodes
) -> tuple[np.ndarray, np.ndarray]:
    arrays = NodeArrays(*(jnp.asarray(x) for x in node_arrays(nodes)))
    found = node_sums(LINKS[link], jnp.asarray(a), jnp.asarray(b), arrays)
    return np.asarray(found.mean), np.asarray(found.covariance)


def slopes(link: str, d: int) -> np.ndarray:
    return SLOPES[d] * (0.6 if link == "poisson" else 1.0)


def product(x: np.ndarray, weight: np.ndarray, d: int) -> CovariateNodes:
    z = np.array(list(itertools.product(x, repeat=d)))
    return CovariateNodes(z, np.array([np.prod(w) for w in itertools.product(weight, repeat=d)]))


def agree(
    found: tuple[np.ndarray, np.ndarray], mean: np.ndarray, covariance: np.ndarray, n: int,
    within: float = 0.04,
) -> None:  # fmt: skip
    """Means within .03 deviations of the sums, covariances 4 % in the metric of R."""
    root = np.linalg.inv(np.linalg.cholesky(found[1]))
    assert np.abs(root @ (mean - found[0])).max() * np.sqrt(n) < 0.03
    np.testing.assert_allclose(root @ covariance @ root.T, np.eye(len(mean)), atol=within)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("link", list(LINKS))
def test_sums_given_normal_covariates_have_the_stated_law(link: str, d: int) -> None:
    """20,000 data sets of 300 records, whitened by their own mean and covariance."""
    a, b = LEVELS[link], slopes(link, d)
    drawn = reference.whitened_sums(np.random.default_rng([d, 1]), link, a, b, 300, 20_000)
    agree(by_normal(link, a, b), drawn.mean(axis=0), 300 * np.cov(drawn.T), 300)


@pytest.mark.parametrize("link", list(LINKS))
def test_stein_and_least_squares_give_the_same_moments(link: str) -> None:
    """The closed forms against projection along b by quadrature, for many (a, b), within 1e-6."""
    rng = np.random.default_rng(3)
    for size in (0.0, 0.2, 1.0, 2.0):
        for d in (1, 3, 6):
            a, b = rng.normal(), rng.standard_normal(d)
            b *= (0.5 if link == "poisson" else 1.0) * size / np.linalg.norm(b)
            found, wanted = by_normal(link, a, b), reference.normal_moments(link, a, b)
            for ours, theirs in zip(found, wanted, strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-6 * max(1, np.abs(theirs).max()))


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("link", list(LINKS))
def test_nodes_of_a_normal_law_give_the_closed_forms(link: str, d: int) -> None:
    """Gauss-Hermite nodes, 60 or 40 a column: within 1e-6."""
    x, weight = np.polynomial.hermite_e.hermegauss(60 if d == 1 else 40)
    a, b = LEVELS[link], slopes(link, d)
    found = by_nodes(link, a, b, product(x, weight / weight.sum(), d))
    for ours, theirs in zip(found, by_normal(link, a, b), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("link", list(LINKS))
def test_sums_given_uniform_covariates_have_the_stated_law(link: str) -> None:
    """20,000 data sets of 300 records; Gauss' nodes of the uniform law on the grid of the box."""
    x, weight = gauss_rule(GRID, np.full(len(GRID), 1 / len(GRID)), 32)
    a, b = LEVELS[link], slopes(link, 1)
    mean, covariance = reference.sums_given_covariates(
        np.random.default_rng(4), link, a, b, 300, 20_000,
        lambda rng, shape: rng.uniform(-np.sqrt(3), np.sqrt(3), shape),
    )  # fmt: skip
    agree(by_nodes(link, a, b, CovariateNodes(x[:, None], weight)), mean, covariance, 300)


@pytest.mark.parametrize("link", list(LINKS))
def test_sums_given_an_indicator_have_the_stated_law(link: str) -> None:
    """Of 300 records 90 are 1, always: given its sum, an indicator is the same in all data sets."""
    low, high = -np.sqrt(0.3 / 0.7), np.sqrt(0.7 / 0.3)
    z = np.repeat([high, low], [90, 210])[:, None]
    a, b = LEVELS[link], slopes(link, 1)
    rng = np.random.default_rng(5)
    y = reference.draw_responses(rng, link, np.tile(a + z @ b, (20_000, 1)))
    drawn = np.column_stack([y.mean(axis=1), y @ z / 300])
    found = by_nodes(link, a, b, CovariateNodes(np.array([[high], [low]]), np.array([0.3, 0.7])))
    agree(found, drawn.mean(axis=0), 300 * np.cov(drawn.T), 300)


@pytest.mark.parametrize("link", list(LINKS))
def test_scatter_of_many_covariates_is_nearly_that_of_few(link: str) -> None:
    """Four covariates take the short way: means within 1e-3, variances within 4 %, of a normal."""
    a, b = LEVELS[link], slopes(link, 4)
    mean, covariance = by_nodes(link, a, b, normal_nodes(4))
    wanted = by_normal(link, a, b)
    root = np.linalg.inv(np.linalg.cholesky(wanted[1]))
    np.testing.assert_allclose(mean, wanted[0], atol=1e-3)
    np.testing.assert_allclose(root @ covariance @ root.T, np.eye(5), atol=0.04)


@pytest.mark.evidence
@pytest.mark.parametrize("link", list(LINKS))
def test_scatter_of_many_uniform_covariates(link: str) -> None:
    """Four uniform columns, 20,000 data sets: the short way is within 5 %."""
    x, weight = gauss_rule(GRID, np.full(len(GRID), 1 / len(GRID)), 5)
    a, b = LEVELS[link], slopes(link, 4)
    mean, covariance = reference.sums_given_covariates(
        np.random.default_rng(6), link, a, b, 600, 20_000,
        lambda rng, shape: rng.uniform(-np.sqrt(3), np.sqrt(3), shape),
    )  # fmt: skip
    agree(by_nodes(link, a, b, product(x, weight, 4)), mean, covariance, 600, within=0.05)


@pytest.mark.parametrize("link", list(LINKS))
def test_moments_are_smooth_where_all_slopes_are_zero(link: str) -> None:
    """At b = 0 the mean moves by b g1 and R not at all to first order; slopes are finite there."""
    a, law = jnp.asarray(LEVELS[link]), LINKS[link]

    def whole(b: jax.Array) -> jax.Array:
        sums = normal_sums(law, a, b)
        return jnp.concatenate([sums.mean, sums.covariance.ravel()])

    slope = np.asarray(jax.jacfwd(whole)(jnp.zeros(2)))
    step = 1e-4
    for k, e in enumerate(np.eye(2)):
        difference = (whole(jnp.asarray(step * e)) - whole(jnp.asarray(-step * e))) / (2 * step)
        np.testing.assert_allclose(slope[:, k], difference, atol=1e-6)
    at = by_normal(link, float(a), np.zeros(2))[1]
    mean = reference.mean_response(link, np.asarray(a))
    variance = reference.second_moment(link, np.asarray(a)) - mean**2
    np.testing.assert_allclose(at, variance * np.eye(3), atol=1e-7)

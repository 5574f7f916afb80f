"""Sampling noise that cells share, against enumeration, quadrature and simulation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from noisewise.models.graphical_model import fisher_information
from noisewise.models.graphical_model.marginal_oracle import choose_oracle
from noisewise.models.graphical_model.structure import structure
from noisewise.numerics.distributions import normal_laplace_log_density
from tests.reference.graphical_reference import covariance, indicators, joint, normal_laplace

SIZES = {"a": 2, "b": 3, "c": 2}
CLIQUES = (("a", "b"), ("b", "c"), ("a", "c"))
MODEL = structure(SIZES, CLIQUES)
ORACLE = choose_oracle(MODEL)
THETA = np.random.default_rng(5).normal(size=MODEL.dimension)


def sandwich(n: float, scale: float, tau: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """H, J and K of ``fisher_information.py``, written down."""
    g = n * covariance(SIZES, CLIQUES, THETA)
    w = np.asarray(
        fisher_information.normal_laplace_information(jnp.asarray(np.diag(g)), jnp.asarray(scale))
    )
    k = np.outer(w, w) * g
    np.fill_diagonal(k, w)
    prior = np.eye(len(g)) / tau**2
    return g.T @ np.diag(w) @ g + prior, g.T @ k @ g + prior, k


def omega(n: float, scale: float, tau: float = 1.3) -> np.ndarray:
    given = (jnp.asarray(THETA), jnp.asarray(n), jnp.asarray(scale), jnp.asarray(tau))
    return np.asarray(fisher_information.sandwich_correction(ORACLE, "laplace", *given))


def test_the_covariance_is_that_of_enumeration() -> None:
    found = fisher_information.cell_covariance(ORACLE, jnp.asarray(THETA))
    np.testing.assert_allclose(found, covariance(SIZES, CLIQUES, THETA), atol=1e-12)


@pytest.mark.parametrize("variance", [1e-4, 0.3, 2.0, 50.0])
def test_information_is_the_squared_score(variance: float) -> None:
    scale, step = 1.7, 1e-5

    def part(x: float) -> float:
        low, high = (normal_laplace(x + s, variance, scale) for s in (-step, step))
        return float(((high - low) / (2 * step)) ** 2 * np.exp(normal_laplace(x, variance, scale)))

    near = 10 * np.sqrt(variance)
    pieces = [(0.0, near), (near, near + 60 * scale)]
    wanted = 2 * sum(quad(part, *piece, limit=200)[0] for piece in pieces)
    found = fisher_information.normal_laplace_information(
        jnp.asarray([variance]), jnp.asarray(scale)
    )
    assert float(found[0]) == pytest.approx(wanted, rel=2e-3)


def test_information_without_one_of_the_noises() -> None:
    found = fisher_information.normal_laplace_information(jnp.asarray([0.0, 1e8]), jnp.asarray(2.0))
    np.testing.assert_allclose(found, [1 / 4, 1e-8], rtol=1e-4)


def test_the_score_varies_as_it_says() -> None:
    """Cells' scores of 40,000 simulated releases; the largest of 120 z-values (1 in 10,000: 5)."""
    n, scale, many = 2000, 4.0, 40_000
    rng = np.random.default_rng(1)
    q = joint(SIZES, CLIQUES, THETA)[1].ravel()
    tables = rng.multinomial(n, q, size=many) @ indicators(SIZES, CLIQUES).T
    mean = n * indicators(SIZES, CLIQUES) @ q
    noisy = tables - mean + rng.laplace(scale=scale, size=tables.shape)
    variance = jnp.asarray(n * np.diag(covariance(SIZES, CLIQUES, THETA)))
    slope = jax.vmap(jax.grad(lambda x, v: normal_laplace_log_density(x, v, jnp.asarray(scale))))
    score = np.asarray(jax.vmap(lambda row: slope(row, variance))(jnp.asarray(noisy)))
    products = score[:, :, None] * score[:, None, :]
    error = products.std(axis=0) / np.sqrt(many)
    _, _, k = sandwich(n, scale, 1.0)
    off = ~np.eye(len(k), dtype=bool)
    # First order in the correlations: up to 3 % of a product of scores is left out.
    size = np.sqrt(np.outer(np.diag(k), np.diag(k)))
    assert (np.abs(products.mean(axis=0) - k) < 5 * error + 0.03 * size).all()
    # And this test can fail: independent cells are far off.
    assert (np.abs(products.mean(axis=0))[off] > 5 * error[off] + 0.03 * size[off]).mean() > 0.5


def test_draws_are_spread_as_their_centre_errs() -> None:
    n, scale, tau = 5000.0, 3.0, 1.3
    believed, real, _ = sandwich(n, scale, tau)
    map_ = omega(n, scale, tau)
    spread, wanted = np.linalg.inv(believed), np.linalg.inv(believed)
    wanted = wanted @ real @ wanted
    np.testing.assert_allclose(map_ @ spread @ map_.T, wanted, atol=1e-8 * np.abs(wanted).max())
    # Sampling noise dominates: how many people have the first state of a varies as it should, where
    # cells taken as independent count every person in several tables as several.
    direction = np.concatenate([np.repeat([1.0, 0.0], 3), np.zeros(10)])
    g = n * covariance(SIZES, CLIQUES, THETA)
    before, after = (direction @ g @ s @ g @ direction for s in (spread, wanted))
    people = direction @ g @ direction
    assert before < 0.5 * people
    assert after == pytest.approx(people, rel=0.1)


def test_where_privacy_noise_dominates_nothing_changes() -> None:
    np.testing.assert_allclose(omega(100.0, 1000.0), np.eye(MODEL.dimension), atol=1e-4)
    mu = jnp.asarray([0.5, 0.5])
    assert not fisher_information.sampling_noise_matters(mu, 100, 2 * 1000.0**2)
    assert fisher_information.sampling_noise_matters(mu, 100, 2 * 10.0**2)

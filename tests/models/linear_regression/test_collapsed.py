"""The collapsed density against dense linear algebra, and that against brute force."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisewise.models.linear_regression.collapsed import conjugate, log_prior_predictive
from noisewise.models.linear_regression.coordinates import Point, Shape, full_rank, point, released
from noisewise.models.linear_regression.initial_values import prior_statistics
from tests.inference.regressions import problem, table
from tests.reference import regression_reference as reference


def vague(d: int) -> reference.Priors:
    """No zero, no identity: every term of every formula counts."""
    rng = np.random.default_rng(d)
    root = rng.normal(0, 0.3, (d + 1, d + 1)) + np.eye(d + 1)
    return reference.Priors(
        rng.normal(0, 0.3, d + 1), root @ root.T, 3.0, 0.4,
        rng.normal(0, 0.2, d), 0.7, root[:d, :d] @ root[:d, :d].T, d + 4.0,
    )  # fmt: skip


@pytest.mark.parametrize("noisy_n", [False, True])
@pytest.mark.parametrize("d", [1, 3])
def test_density_in_coordinates_is_the_dense_one_times_the_jacobian(d: int, noisy_n: bool) -> None:
    """Up to one constant; with n secret, of n too: 3 to 3,000 records under one constant."""
    p = vague(d)
    prior = problem([table(np.random.default_rng(0), 9, d)], 1.0, priors=p).box_prior
    rng = np.random.default_rng(5)
    q, shape = d + 1, full_rank(d + 1, noisy_n=noisy_n)

    @jax.jit
    def both(v: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        def sums(v: jax.Array) -> jax.Array:
            return released(point(v, shape, n), noisy_n=noisy_n)

        value = log_prior_predictive(point(v, shape, n), prior, noisy_n=noisy_n)
        return value, sums(v), jnp.linalg.slogdet(jax.jacfwd(sums)(v))[1]

    offsets = []
    for n in (q + 2.0, 11.0, 80.0, 3000.0) if noisy_n else (40.0,) * 4:
        v = rng.normal(0, 0.4, shape.dimension)
        if noisy_n:
            v[-1] = np.log(n)
        value, s, log_jacobian = both(jnp.asarray(v), jnp.asarray(n))
        dense = reference.log_density(np.asarray(s)[: q * (q + 3) // 2], n, p)
        offsets.append(float(value) - float(dense) - float(log_jacobian))
    np.testing.assert_allclose(offsets, offsets[0], atol=1e-6)


@pytest.mark.parametrize("n", [4, 7, 25])
def test_dense_density_by_brute_force(n: int) -> None:
    """p(z | n) two ways: noise averaged over tables drawn record by record, density over noise.

    Every constant counts. Known to 5 %; 4.5 standard errors, a false alarm in 150,000.
    """
    p = replace(reference.paper_priors(), lam0=np.diag([1.0, 2.0]))
    rng = np.random.default_rng(n)
    z, scale = reference.brute_statistics(rng, n, p, 1)[0], 0.06 * n
    drawn = reference.brute_statistics(rng, n, p, 150_000)
    tables = np.exp(reference.log_laplace(z, drawn, scale))
    s = z + rng.laplace(0, scale, (300_000, 5))
    dense = np.exp(reference.log_density(s, n, p))
    error = np.hypot(tables.std() / np.sqrt(len(tables)), dense.std() / np.sqrt(len(dense)))
    assert error < 0.05 * tables.mean()
    assert abs(tables.mean() - dense.mean()) < 4.5 * error


def test_bartlett_draws_are_draws_of_records() -> None:
    """The oracle's shortcut: means of s and of its squares, 5 standard errors of 200,000."""
    p, rng = reference.paper_priors(), np.random.default_rng(3)
    quick = reference.prior_statistics(rng, 6, p, 200_000)
    slow = reference.brute_statistics(rng, 6, p, 200_000)
    for a, b in ((quick, slow), (quick**2, slow**2), (np.abs(quick) ** 0.5, np.abs(slow) ** 0.5)):
        error = np.sqrt((a.var(0) + b.var(0)) / len(a))
        assert np.abs((a.mean(0) - b.mean(0)) / error).max() < 5


@pytest.mark.parametrize("d", [1, 3])
def test_conjugate_posterior_is_that_of_the_raw_table(d: int) -> None:
    p = vague(d)
    w = table(np.random.default_rng(1), 50, d)
    prior = problem([w], 1.0, priors=p).box_prior
    mean = w.mean(axis=0)
    factor = np.linalg.cholesky(np.cov(w.T, bias=True))
    arrays = (mean, factor, np.log(np.diagonal(factor)), 50.0)
    found = jax.jit(conjugate)(Point(*(jnp.asarray(a) for a in arrays)), prior)
    centre, precision, shape, rate = reference.raw_posterior(w[:, :d], w[:, d], p)
    np.testing.assert_allclose(found.mean, centre, rtol=1e-9)
    np.testing.assert_allclose(found.factor @ found.factor.T, precision, rtol=1e-9)
    np.testing.assert_allclose(found.rate, rate, rtol=1e-9)
    assert float(found.shape) == shape


@pytest.mark.parametrize("n", [3, 4, 5])
def test_conjugate_posterior_of_few_records(n: int) -> None:
    """d = 4: the scatter has rank n - 1 < q, and a trapezoidal factor."""
    d, p = 4, vague(4)
    w = table(np.random.default_rng(1), n, d)
    prior = problem([w], 1.0, priors=p).box_prior
    mean = w.mean(axis=0)
    # L Qᵀ = centred records / √n, in a basis of the n - 1 dimensions they span.
    basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, : n - 1]]))[0][:, 1:]
    spanned = (w - mean).T @ basis / np.sqrt(n)
    factor = np.linalg.qr(spanned.T)[1].T
    factor = factor * np.sign(np.diagonal(factor))
    arrays = (mean, factor, np.log(np.diagonal(factor)), float(n))
    found = jax.jit(conjugate)(Point(*(jnp.asarray(a) for a in arrays)), prior)
    centre, precision, shape, rate = reference.raw_posterior(w[:, :d], w[:, d], p)
    np.testing.assert_allclose(found.mean, centre, rtol=1e-9)
    np.testing.assert_allclose(found.factor @ found.factor.T, precision, rtol=1e-9)
    np.testing.assert_allclose(found.rate, rate, rtol=1e-9)
    assert float(found.shape) == shape


@pytest.mark.parametrize(("d", "n"), [(1, 3), (1, 40), (3, 3), (3, 4), (3, 5), (3, 30)])
def test_density_is_that_of_exact_prior_draws(d: int, n: int) -> None:
    """Stein: E[h'(v) + h(v) ∂ log f(v)] = 0 in each coordinate, for draws of the density f only.

    Draws come from Bartlett's decomposition, singular scatters among them (n ≤ d + 1); the density
    is ours. 4.5 standard errors, at most 15 coordinates: a false alarm in 10,000.
    """
    p, q = vague(d), d + 1
    prior = problem([table(np.random.default_rng(0), 9, d)], 1.0, priors=p).box_prior
    shape = Shape(q, min(q, n - 1), noisy_n=False)
    rng = np.random.default_rng(n)
    drawn = prior_statistics(rng, np.array([float(n)]), prior, 40_000, shape.rank, n_noise=None)
    v = jnp.asarray(drawn.coordinates(noisy_n=False)[0])
    assert v.shape[1] == shape.dimension

    def density(v: jax.Array) -> jax.Array:
        at = point(v, shape, jnp.asarray(float(n)))
        return log_prior_predictive(at, prior, noisy_n=False)

    slope = np.asarray(jax.jit(jax.vmap(jax.grad(density)))(v))
    h = np.tanh(v)
    found = 1 - h**2 + h * slope
    error = found.std(axis=0) / np.sqrt(len(found))
    assert np.abs(found.mean(axis=0) / error).max() < 4.5

"""The move that draws noise anew: its map, its Jacobian, and the law it must leave alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments.regression_paper.simulate import simulate
from noisewise.infer.linear import collapsed, refresh
from noisewise.infer.linear.coordinates import Shape, point, released
from noisewise.infer.linear.starts import prior_statistics

Q, N = 3, 40


def prior_draws(number: int) -> tuple[np.ndarray, collapsed.Prior]:
    problem, _ = simulate(number, N, 1.0, Q - 1, 1)
    rng = np.random.default_rng(2)
    drawn = prior_statistics(rng, problem.n, problem.box_prior, 1, Q, n_noise=None)
    return drawn.coordinates(noisy_n=False)[:, 0], problem.box_prior


def sums_of(v: jax.Array, shape: Shape, n: jax.Array) -> jax.Array:
    return released(point(v, shape, n), noisy_n=shape.noisy_n)


@pytest.mark.parametrize("secret", [False, True])
def test_sums_and_coordinates_are_inverse_and_the_jacobian_is_right(secret: bool) -> None:
    shape, n = Shape(Q, Q, secret), jnp.asarray(float(N))
    found = []
    for v in prior_draws(3)[0]:
        at = jnp.asarray(np.append(v, np.log(N)) if secret else v)
        sums = sums_of(at, shape, n)
        np.testing.assert_allclose(refresh.coordinates(sums, at, shape, n), at, rtol=1e-9)
        free = len(v)

        def some(part: jax.Array, at: jax.Array = at, free: int = free) -> jax.Array:
            return sums_of(at.at[:free].set(part), shape, n)[:free]

        slope = jax.jit(jax.jacobian(some))(at[:free])
        found.append(np.linalg.slogdet(slope)[1] - float(refresh.log_jacobian(at, shape, n)))
    # Up to one constant.
    np.testing.assert_allclose(found, found[0], rtol=1e-9)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.5, 20.0])
def test_the_posterior_is_left_alone(mechanism: str, scale: float) -> None:
    """(s, z) from the model, then s moved given z: s must keep its law (KS, 2 laws, level 1e-4)."""
    start, prior = prior_draws(3000)
    shape, n = Shape(Q, Q, False), jnp.asarray(float(N))
    rng = np.random.default_rng(3)
    draw = rng.laplace if mechanism == "laplace" else rng.normal
    v = jnp.asarray(start)
    z = jax.vmap(lambda v: sums_of(v, shape, n))(v) + scale * draw(size=(len(v), Q * (Q + 3) // 2))

    def predictive(v: jax.Array) -> jax.Array:
        return collapsed.log_prior_predictive(point(v, shape, n), prior, noisy_n=False)

    def moved(key: jax.Array, v: jax.Array, z: jax.Array) -> jax.Array:
        def log_density(v: jax.Array) -> jax.Array:
            e = (sums_of(v, shape, n) - z) / scale
            noise = jnp.abs(e).sum() if mechanism == "laplace" else 0.5 * (e**2).sum()
            return predictive(v) - noise

        def again(v: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
            args = (z, n, jnp.asarray(scale), log_density, shape, mechanism)
            return refresh.refreshed(key, v, *args), None

        return jax.lax.scan(again, v, jax.random.split(key, 20))[0]

    after = jax.jit(jax.vmap(moved))(jax.random.split(jax.random.key(4), len(v)), v, z)
    assert (np.asarray(after) != np.asarray(v)).any(axis=1).mean() > 0.9
    for law in (predictive, lambda v: sums_of(v, shape, n)[0]):
        before, later = (np.asarray(jax.vmap(law)(a)) for a in (v, after))
        assert stats.ks_2samp(before, later, method="asymp").pvalue > 1e-4

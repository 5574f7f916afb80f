"""Trajectories through kinks: the flow, the map to coordinates, and the law they must keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments.regression_paper.simulate import simulate
from noisewise.artifact import Mechanism
from noisewise.models.linear_regression import collapsed, exact, kinked_hmc
from noisewise.models.linear_regression.coordinates import (
    Shape,
    from_released,
    log_volume,
    point,
    released,
)
from noisewise.models.linear_regression.initial_values import prior_statistics
from tests.inference.agreement import TOLERANCE, departures, summary
from tests.inference.regressions import problem, table

Q, N = 3, 40
Flow = Callable[[jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array]]


def prior_draws(number: int) -> tuple[np.ndarray, Any]:
    problem, _ = simulate(number, N, 1.0, Q - 1, 1)
    rng = np.random.default_rng(2)
    drawn = prior_statistics(rng, problem.n, problem.box_prior, 1, Q, n_noise=None)
    return drawn.coordinates(noisy_n=False)[:, 0], problem.box_prior


def sums_of(v: jax.Array, shape: Shape, n: jax.Array) -> jax.Array:
    return released(point(v, shape, n), noisy_n=shape.noisy_n)


@pytest.mark.parametrize(
    ("follow", "force"),
    [
        (kinked_hmc.laplace_flow, np.sign),
        (kinked_hmc.normal_flow, lambda r: r),
    ],
)
def test_the_flow_is_that_of_its_energy(
    follow: Callable[..., Any], force: Callable[..., Any]
) -> None:
    """Against half a million plain leapfrog steps, several crossings of the kink among them."""
    rng = np.random.default_rng(1)
    r, p = rng.laplace(size=50), rng.normal(size=50)
    r[:5] *= 1e-3
    t, steps = 5.3, 50_000
    there, speed = np.asarray(follow(jnp.asarray(r), jnp.asarray(p), jnp.asarray(t)))
    h, crossed = t / steps, 0
    for _ in range(steps):
        p = p - h / 2 * force(r)
        new = r + h * p
        crossed += int(np.sum(np.sign(new) != np.sign(r)))
        r = new
        p = p - h / 2 * force(r)
    assert crossed > 50
    np.testing.assert_allclose(there, r, atol=5e-3)
    np.testing.assert_allclose(speed, p, atol=5e-3)


@pytest.mark.parametrize("secret", [False, True])
def test_sums_and_coordinates_are_inverse_and_the_volume_is_right(secret: bool) -> None:
    shape, n = Shape(Q, Q, secret), jnp.asarray(float(N))
    found = []
    for v in prior_draws(3)[0]:
        at = jnp.asarray(np.append(v, np.log(N + v[0])) if secret else v)
        sums = sums_of(at, shape, n)
        np.testing.assert_allclose(from_released(sums, shape, n), at, rtol=1e-9)
        slope = jax.jit(jax.jacobian(lambda v: sums_of(v, shape, n)))(at)
        found.append(np.linalg.slogdet(slope)[1] - float(log_volume(point(at, shape, n), shape)))
    # Up to one constant.
    np.testing.assert_allclose(found, found[0], rtol=1e-9)


@pytest.mark.parametrize(("mechanism", "scale"), [("laplace", 0.1), ("gaussian", 0.01)])
def test_the_posterior_is_left_alone(mechanism: str, scale: float) -> None:
    """(s, z) from the model, then s moved given z: s must keep its law (KS, 2 laws, level 1e-4)."""
    start, prior = prior_draws(3000)
    shape, n = Shape(Q, Q, False), jnp.asarray(float(N))
    rng = np.random.default_rng(3)
    draw = rng.laplace if mechanism == "laplace" else rng.normal
    v = jnp.asarray(start)
    s = jax.vmap(lambda v: sums_of(v, shape, n))(v)
    noise = jnp.asarray(draw(size=s.shape))

    def moved(key: jax.Array, s: jax.Array, noise: jax.Array) -> jax.Array:
        data = exact.DensityData(s + scale * noise, n, jnp.asarray(scale), prior)

        def again(r: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
            return kinked_hmc.trajectory(key, r, jnp.log(0.3), data, shape, mechanism)[0], None

        r = jax.lax.scan(again, -noise, jax.random.split(key, 20))[0]
        return from_released(data.z + scale * r, shape, n)

    after = jax.jit(jax.vmap(moved))(jax.random.split(jax.random.key(4), len(v)), s, noise)
    assert (np.abs(np.asarray(after - v)) > 1e-6).any(axis=1).mean() > 0.5

    def predictive(v: jax.Array) -> jax.Array:
        return collapsed.log_prior_predictive(point(v, shape, n), prior, noisy_n=False)

    for law in (predictive, lambda v: sums_of(v, shape, n)[0]):
        before, later = (np.asarray(jax.vmap(law)(a)) for a in (v, after))
        assert stats.ks_2samp(before, later, method="asymp").pvalue > 1e-4


@pytest.mark.parametrize(("mechanism", "secret"), [("laplace", False), ("gaussian", True)])
def test_both_samplers_give_one_posterior(
    monkeypatch: pytest.MonkeyPatch, mechanism: Mechanism, secret: bool
) -> None:
    """Seven covariates, noise that matters and that either can sample (tolerance: agreement.py)."""
    w = table(np.random.default_rng(5), 2000, 7)
    given = problem([w], 2.0, mechanism=mechanism, noisy_n=secret)
    given = replace(given, keys=None)
    flown: list[bool] = []
    sample = kinked_hmc.sample

    def seen(*args: Any) -> jax.Array | None:
        drawn = sample(*args)
        flown.append(drawn is not None)
        return drawn

    monkeypatch.setattr(kinked_hmc, "sample", seen)
    one = exact.run(given, 1, 4, 1000)
    assert flown == [True]
    monkeypatch.setattr(kinked_hmc, "sample", lambda *args: None)
    other = exact.run(given, 2, 4, 1000)
    assert one.converged
    assert other.converged
    assert np.abs(departures(summary(one), summary(other))).max() < TOLERANCE

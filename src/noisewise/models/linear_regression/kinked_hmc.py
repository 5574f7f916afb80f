"""Hamiltonian Monte Carlo that passes the kinks of Laplace noise exactly, for many covariates.

Each of a thousand noisy sums has a kink, and a leapfrog must step carefully over all of them. Where
the sums are large against their noise, the posterior of s is nearly z minus noise, so state it in
r = (s - z) / scale: then log π = smooth(r) - Σ|r_i|, with a prior predictive that varies little
over a unit of noise. A step kicks the momentum by the smooth part and then follows
H = p²/2 + |r| (for normal noise H = p²/2 + r²/2) exactly, component by component.

Where noise is as large as the small eigenvalues of the scatter, invalid statistics are near and the
smooth part is anything but smooth: a pilot run then ends with small steps, and ``sample`` declines.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference.adaptation import dual_averaged
from noisewise.models.linear_regression import collapsed, scale_free
from noisewise.models.linear_regression.coordinates import (
    Shape,
    from_released,
    log_volume,
    point,
    released,
)
from noisewise.numerics.compilation import compiled

TRAJECTORY_LENGTH = 2.2
"""Length of a trajectory, in units of the noise (chosen)."""
MAX_STEPS = 15
"""Steps of a trajectory at the most: where more are needed, the general sampler (``inference.hmc``)
does better (chosen)."""
PILOT = 60
"""Iterations after which the step size says whether this sampler is suitable (chosen)."""
WARM_UP = 100
"""Iterations after the pilot in which the step size is still adapted (chosen)."""
ITERATIONS_PER_CALL = 20
"""Iterations of one compiled call; all other lengths are multiples of it (chosen)."""
THIN = 4
"""Iterations per kept draw: they are cheap, and a draw is kept for long (chosen)."""


class KinkedState(NamedTuple):
    """Noise r (chain, sum) in units of its scale, then unknown scales; and the search of a step."""

    position: jax.Array
    log_step: jax.Array
    averaged: jax.Array
    error: jax.Array
    anchor: jax.Array
    tuned: jax.Array


def laplace_flow(r: jax.Array, p: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return (r, p) after a time t under H = p²/2 + |r|: parabolas, joined where r changes sign."""
    side = jnp.where(r >= 0, 1.0, -1.0)
    outward = side * p
    peak = jnp.sqrt(outward**2 + 2 * jnp.abs(r))
    crossing = outward + peak
    after = t - crossing
    # A period is two arcs of 2 peak each; the arc reached says the side.
    arcs = jnp.floor(after / (2 * peak))
    within = after - 2 * peak * arcs
    other = -side * jnp.where(arcs % 2 == 0, 1.0, -1.0)
    early = t <= crossing
    r = jnp.where(
        early,
        side * (jnp.abs(r) + outward * t - t**2 / 2),
        other * (peak * within - within**2 / 2),
    )
    return r, jnp.where(early, side * (outward - t), other * (peak - within))


def normal_flow(r: jax.Array, p: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return (r, p) after a time t under H = p²/2 + r²/2: a rotation."""
    return r * jnp.cos(t) + p * jnp.sin(t), p * jnp.cos(t) - r * jnp.sin(t)


def flow(
    r: jax.Array, p: jax.Array, t: jax.Array, mechanism: str, sums: int
) -> tuple[jax.Array, jax.Array]:
    """Return (r, p) after a time t: noise by its mechanism's law, scales by a normal law."""
    noise = (normal_flow if mechanism == "gaussian" else laplace_flow)(r[:sums], p[:sums], t)
    scales = normal_flow(r[sums:], p[sums:], t)
    return jnp.concatenate([noise[0], scales[0]]), jnp.concatenate([noise[1], scales[1]])


def log_noise(r: jax.Array, mechanism: str, sums: int) -> jax.Array:
    """Return the log density whose flow is exact, up to a constant: of noise, and of scales."""
    noise = -0.5 * (r[:sums] ** 2) if mechanism == "gaussian" else -jnp.abs(r[:sums])
    return noise.sum() - 0.5 * (r[sums:] ** 2).sum()


def smooth(r: jax.Array, data: Any, shape: Shape) -> jax.Array:
    """Return the rest of the log density; -inf where no table has the sums z + scale r.

    That is the prior predictive of these sums and, where scales are unknown, the ratio of their
    density to the normal one in ``log_noise``.
    """
    sums, scales = r[: data.z.size], r[data.z.size :]
    centre, spread = scale_free.typical_scales(shape)
    u = centre + spread * scales
    v = from_released(data.z + data.noise * sums, shape, data.n)
    valid = jnp.isfinite(v).all()
    if shape.noisy_n:
        valid = valid & (v[-1] > jnp.log(shape.q + 1.0))
    if shape.scale_free:
        valid = valid & (jnp.abs(v[: shape.q]) < 1).all() & (jnp.abs(u) < scale_free.FARTHEST).all()
    v = jnp.concatenate([jnp.where(valid, v, 1.0), u])
    at = point(v, shape, data.n)
    prior, density = scale_free.prior_at(at, v, shape, data.prior)
    value = collapsed.log_prior_predictive(at, prior, noisy_n=shape.noisy_n) - log_volume(at, shape)
    return jnp.where(valid, value + density + 0.5 * (scales**2).sum(), -jnp.inf)


def trajectory(
    key: jax.Array, r: jax.Array, log_step: jax.Array, data: Any, shape: Shape, mechanism: str
) -> tuple[jax.Array, jax.Array]:
    """Return one position after a trajectory, and the change of energy that decided on it."""
    lengths, jitter, momentum, uniform = jax.random.split(key, 4)
    sums = data.z.size
    reach = TRAJECTORY_LENGTH * jax.random.uniform(lengths, minval=0.6, maxval=1.4)
    step = jnp.exp(log_step)
    count = jnp.clip(jnp.round(reach / step), 1, MAX_STEPS).astype(jnp.int32)
    step = step * jax.random.uniform(jitter, minval=0.9, maxval=1.1)
    slope = jax.value_and_grad(lambda r: smooth(r, data, shape))

    def leap(_: int, at: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        r, p, gradient = at[0], at[1], at[3]
        r, p = flow(r, p + 0.5 * step * gradient, step, mechanism, sums)
        value, gradient = slope(r)
        # Beyond the boundary there is no gradient, and a trajectory that ends there is refused.
        gradient = jnp.where(jnp.isfinite(gradient), gradient, 0.0)
        return r, p + 0.5 * step * gradient, value, gradient

    p = jax.random.normal(momentum, r.shape)
    value, gradient = slope(r)
    new, last, reached, _ = jax.lax.fori_loop(0, count, leap, (r, p, value, gradient))
    before = value + log_noise(r, mechanism, sums) - 0.5 * (p**2).sum()
    change = reached + log_noise(new, mechanism, sums) - 0.5 * (last**2).sum() - before
    change = jnp.where(jnp.isfinite(change), change, -jnp.inf)
    return jnp.where(jnp.log(jax.random.uniform(uniform)) < change, new, r), change


@partial(compiled, static_argnums=(0, 1))
def advance(
    shape: Shape, mechanism: str, state: KinkedState, data: Any, key: jax.Array, adapt: jax.Array
) -> tuple[KinkedState, jax.Array]:
    """Run a block of iterations; return the state and every THIN-th position (draw, chain, sum)."""

    def body(state: KinkedState, key: jax.Array) -> tuple[KinkedState, jax.Array]:
        keys = jax.random.split(key, len(state.position))
        moved, change = jax.lax.map(
            lambda now: trajectory(now[0], now[1], state.log_step, data, shape, mechanism),
            (keys, state.position),
        )
        accepted = jnp.exp(jnp.minimum(change, 0)).mean()
        tuned = dual_averaged(state, accepted, TRAJECTORY_LENGTH)
        state = jax.tree.map(partial(jnp.where, adapt), tuned, state)
        return state._replace(position=moved), moved

    state, positions = jax.lax.scan(body, state, jax.random.split(key, ITERATIONS_PER_CALL))
    return state, positions[THIN - 1 :: THIN]


@partial(compiled, static_argnums=2)
def _noise(starts: jax.Array, data: Any, shape: Shape) -> jax.Array:
    """Return the noise r (chain, sum) that the starting coordinates (chain, coordinate) imply."""

    centre, spread = scale_free.typical_scales(shape)

    def one(v: jax.Array) -> jax.Array:
        sums: jax.Array = released(point(v, shape, data.n), noisy_n=shape.noisy_n)
        scales = (v[shape.statistic :] - centre) / spread
        return jnp.concatenate([(sums - data.z) / data.noise, scales])

    noise: jax.Array = jax.lax.map(one, starts)
    return noise


@partial(compiled, static_argnums=2)
def _coordinates(r: jax.Array, data: Any, shape: Shape) -> jax.Array:
    """Return the coordinates (…, coordinate) of the sums that noise r (…, sum) implies."""
    flat = r.reshape(-1, r.shape[-1])
    count = data.z.size
    centre, spread = scale_free.typical_scales(shape)

    def one(r: jax.Array) -> jax.Array:
        v = from_released(data.z + data.noise * r[:count], shape, data.n)
        return jnp.concatenate([v, centre + spread * r[count:]])

    v = jax.lax.map(one, flat)
    return jnp.reshape(v, (*r.shape[:-1], -1))


def sample(
    key: jax.Array,
    starts: jax.Array,
    data: Any,
    shape: Shape,
    mechanism: str,
    draws: int,
    tick: Callable[[float], None],
) -> jax.Array | None:
    """Draw positions (draw, coordinate, chain), or return None where this sampler does not suit.

    Args:
        key: the source of randomness.
        starts: starting coordinates (coordinate, chain).
        data: the exact method's ``DensityData`` of one release of one group, without batch axes.
        shape: of the statistic, which must have full rank.
        mechanism: ``"laplace"`` or ``"gaussian"``.
        draws: how many per chain.
        tick: called with the share of the work that each block was.
    """
    # Strong types, as the search returns them: otherwise the second block compiles again.
    begin, zero = jnp.asarray(np.log([0.5, 1.0]))
    state = KinkedState(_noise(starts.T, data, shape), begin, begin, zero, begin, zero)
    kept = []
    blocks = -(-(PILOT + WARM_UP + draws * THIN) // ITERATIONS_PER_CALL)
    for number in range(blocks):
        done = number * ITERATIONS_PER_CALL
        if done == PILOT and state.averaged < np.log(TRAJECTORY_LENGTH / MAX_STEPS):
            return None
        if done == PILOT + WARM_UP:
            state = state._replace(log_step=state.averaged)
        adapt = jnp.asarray(done < PILOT + WARM_UP)
        fresh = jax.random.fold_in(key, number)
        state, positions = advance(shape, mechanism, state, data, fresh, adapt)
        if done >= PILOT:
            tick(1 / (blocks - PILOT // ITERATIONS_PER_CALL))
        if done >= PILOT + WARM_UP:
            kept.append(positions)
    return jnp.swapaxes(_coordinates(jnp.concatenate(kept)[:draws], data, shape), 1, 2)

"""The one driver of chains: batched Hamiltonian Monte Carlo over (group, chain).

Trajectories follow a smooth surrogate of the density; acceptance uses the true one, so a kinked
density (Laplace noise) costs no bias. Step sizes and scales are adapted per group, from all its
chains; the number of leapfrog steps is shared by the batch in each iteration, because a batch runs
in lock-step. Every iteration ends with Metropolis reflections, which connect mirrored modes.

One compiled function advances a block of iterations; warm-up and sampling differ only in the
schedule they feed it, so there is one compilation per problem shape.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Data = Any
Density = Callable[[jax.Array, Data, jax.Array], jax.Array]
"""(position, data of one group, heat) → log density; heat widens the noise during warm-up."""


class Target(NamedTuple):
    """What is sampled. ``information`` is a guess of the curvature at a position: a matrix."""

    true: Density
    smooth: Density
    information: Density
    reflections: tuple[tuple[float, ...], ...]


class State(NamedTuple):
    """Chains and their adaptation; arrays lead with (group, chain) or (group,)."""

    position: jax.Array
    basis: jax.Array
    inverse: jax.Array
    scale: jax.Array
    log_step: jax.Array
    averaged: jax.Array
    error: jax.Array
    anchor: jax.Array
    tuned: jax.Array
    collected: jax.Array
    moments: jax.Array
    centre: jax.Array


class Schedule(NamedTuple):
    """Per iteration: heat, and which adaptation happens."""

    heat: Any
    adapt: Any
    remeasure: Any
    collect: Any
    close: Any


TRAJECTORY = 2.0
LONGEST = 40
ACCEPTANCE = 0.8


def warmup_schedule(
    rungs: int = 5, rung: int = 20, windows: tuple[int, ...] = (60, 100, 140)
) -> Schedule:
    """Cool from 4^(rungs-1) times the noise to the noise itself, then settle scales and steps."""
    heat = np.concatenate([np.full(rung, 4.0**i) for i in reversed(range(rungs))])
    total = len(heat) + sum(windows)
    heat = np.concatenate([heat, np.ones(total - len(heat))])
    remeasure, collect, close = (np.zeros(total, bool) for _ in range(3))
    remeasure[: rungs * rung : rung] = True
    start = rungs * rung
    for window in windows[:-1]:
        remeasure[start] = True
        collect[start + window // 3 : start + window] = True
        close[start + window - 1] = True
        start += window
    return Schedule(heat, np.ones(total, bool), remeasure, collect, close)


def sampling_schedule(iterations: int) -> Schedule:
    """Nothing adapts."""
    off = np.zeros(iterations, bool)
    return Schedule(np.ones(iterations), off, off, off, off)


def start(position: jax.Array, spread: jax.Array) -> State:
    """Chains at their starting points (group, chain, dim), with spreads (group, dim)."""
    groups, _, size = position.shape
    zero = jnp.zeros(groups)
    # A strong type, as adaptation returns it: otherwise the second block compiles again.
    step = jnp.full(groups, jnp.log(0.5), jnp.float64)
    return State(
        position=position,
        basis=jax.vmap(jnp.diag)(spread),
        inverse=jax.vmap(jnp.diag)(1 / spread),
        scale=jnp.ones((groups, size)),
        log_step=step,
        averaged=step,
        error=zero,
        anchor=step,
        tuned=zero,
        collected=zero,
        moments=jnp.zeros((groups, 4, size)),
        centre=position.mean(axis=1),
    )


@partial(jax.jit, static_argnums=0)
def advance(
    target: Target, state: State, data: Data, spread: jax.Array, key: jax.Array, schedule: Schedule
) -> tuple[State, tuple[jax.Array, jax.Array]]:
    """A block of iterations; returns positions (iteration, group, chain, dim) and acceptance."""
    keys = jax.random.split(key, schedule.heat.shape[0])

    def body(state: State, now: tuple[jax.Array, Schedule]) -> tuple[State, Any]:
        key, plan = now
        state = jax.lax.cond(
            plan.remeasure,
            lambda s: _remeasure(target, s, data, spread, plan.heat),
            lambda s: s,
            state,
        )
        state, accepted, gradient = _step(target, state, data, key, plan.heat)
        state = _adapted(state, accepted.mean(axis=1), gradient, plan)
        return state, (state.position, accepted.mean(axis=1))

    return jax.lax.scan(body, state, (keys, schedule))


def _over(function: Density) -> Callable[..., jax.Array]:
    """One position of one group → all chains of all groups."""
    return jax.vmap(jax.vmap(function, in_axes=(0, None, None)), in_axes=(0, 0, None))


def _step(
    target: Target, state: State, data: Data, key: jax.Array, heat: jax.Array
) -> tuple[State, jax.Array, jax.Array]:
    lengths, jitter, momentum, accept, mirror = jax.random.split(key, 5)
    true, gradient_of = _over(target.true), _over(jax.grad(target.smooth))
    groups = state.log_step.shape[0]
    step = jnp.exp(state.log_step)
    reach = TRAJECTORY * jax.random.uniform(lengths, minval=0.6, maxval=1.4)
    count = jnp.clip(jnp.ceil(reach / jnp.median(step)), 1, LONGEST).astype(jnp.int32)
    # A group whose steps are much larger than the batch's would overshoot its trajectory.
    step = jnp.minimum(step, 2 * reach / count)
    step = step * jax.random.uniform(jitter, (groups,), minval=0.9, maxval=1.1)
    pace = (step[:, None] * state.scale)[:, None, :]

    def slope(x: jax.Array) -> jax.Array:
        """Gradient along the basis, in which the target is nearly white."""
        return jnp.einsum("gcd,gde->gce", gradient_of(x, data, heat), state.basis)

    def leap(_: int, at: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        x, p, g = at
        p = p + 0.5 * pace * g
        x = x + jnp.einsum("gde,gce->gcd", state.basis, pace * p)
        g = slope(x)
        return x, p + 0.5 * pace * g, g

    x, p = state.position, jax.random.normal(momentum, state.position.shape)
    before = true(x, data, heat)
    begin = before - 0.5 * jnp.sum(p**2, axis=-1)
    first = slope(x)
    new, p, last = jax.lax.fori_loop(0, count, leap, (x, p, first))
    after = true(new, data, heat)
    change = after - 0.5 * jnp.sum(p**2, axis=-1) - begin
    change = jnp.where(jnp.isfinite(change), change, -jnp.inf)
    taken = jnp.log(jax.random.uniform(accept, change.shape)) < change
    x = jnp.where(taken[..., None], new, x)
    gradient = jnp.where(taken[..., None], last, first)
    x = _reflect(target, x, jnp.where(taken, after, before), data, mirror, heat)
    return state._replace(position=x), jnp.exp(jnp.minimum(change, 0)), gradient


def _reflect(
    target: Target, x: jax.Array, density: jax.Array, data: Data, key: jax.Array, heat: jax.Array
) -> jax.Array:
    """Volume-preserving sign changes, accepted by the true density."""
    true = _over(target.true)
    for signs, draw in zip(
        target.reflections, jax.random.split(key, len(target.reflections)), strict=True
    ):
        mirrored = x * jnp.array(signs)
        new = true(mirrored, data, heat)
        taken = jnp.log(jax.random.uniform(draw, new.shape)) < new - density
        x = jnp.where(taken[..., None], mirrored, x)
        density = jnp.where(taken, new, density)
    return x


def _remeasure(
    target: Target, state: State, data: Data, spread: jax.Array, heat: jax.Array
) -> State:
    """A basis from prior spread and local information, and a fresh search for the step."""
    information = _over(target.information)(state.position, data, heat).mean(axis=1)
    # Work in units of the spread: the matrix is then the identity plus what the data add.
    scaled = jnp.eye(spread.shape[1]) + information * spread[:, :, None] * spread[:, None, :]
    factor = jnp.linalg.cholesky(scaled)
    inverse = jax.scipy.linalg.solve_triangular(
        factor, jnp.broadcast_to(jnp.eye(spread.shape[1]), factor.shape), lower=True
    )
    basis = spread[:, :, None] * jnp.swapaxes(inverse, 1, 2)
    good = jnp.isfinite(basis).all(axis=(1, 2), keepdims=True)
    back = factor / spread[:, :, None]
    state = state._replace(
        basis=jnp.where(good, basis, state.basis), inverse=jnp.where(good, back, state.inverse)
    )
    return _restarted(state._replace(scale=jnp.ones_like(state.scale)))


def _restarted(state: State) -> State:
    zero = jnp.zeros_like(state.tuned)
    return state._replace(
        error=zero,
        tuned=zero,
        anchor=state.log_step + jnp.log(2.0),
        averaged=state.log_step,
        collected=zero,
        moments=jnp.zeros_like(state.moments),
        centre=state.position.mean(axis=1),
    )


def _adapted(state: State, accepted: jax.Array, gradient: jax.Array, plan: Schedule) -> State:
    """Dual averaging (Hoffman and Gelman 2014), and scales √(sd of position / sd of gradient)."""
    tuned = state.tuned + 1
    error = (1 - 1 / (tuned + 10)) * state.error + (ACCEPTANCE - accepted) / (tuned + 10)
    log_step = state.anchor - jnp.sqrt(tuned) / 0.05 * error
    weight = tuned**-0.75
    averaged = weight * log_step + (1 - weight) * state.averaged
    searched = state._replace(tuned=tuned, error=error, log_step=log_step, averaged=averaged)
    state = jax.tree.map(partial(jnp.where, plan.adapt), searched, state)
    off = state.position - state.centre[:, None]
    # In the basis: its inverse is kept, since it changes only when the basis does.
    off = jnp.einsum("gde,gcd->gce", state.inverse, off)
    sums = jnp.stack([off, off**2, gradient, gradient**2], axis=1).mean(axis=2)
    state = state._replace(
        moments=state.moments + jnp.where(plan.collect, sums, 0.0),
        collected=state.collected + plan.collect,
    )
    closed: State = jax.lax.cond(plan.close, _closed, lambda s: s, state)
    return closed


def _closed(state: State) -> State:
    """End of a window: new scales from what it collected."""
    mean = state.moments / jnp.maximum(state.collected, 1.0)[:, None, None]
    var_x, var_g = mean[:, 1] - mean[:, 0] ** 2, mean[:, 3] - mean[:, 2] ** 2
    ratio = jnp.maximum(var_x, 1e-300) / jnp.maximum(var_g, 1e-300)
    scale = jnp.where(jnp.isfinite(ratio), ratio**0.25, state.scale)
    return _restarted(state._replace(scale=scale, log_step=state.averaged))

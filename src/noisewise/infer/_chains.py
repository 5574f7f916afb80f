"""The one driver of chains: batched Hamiltonian Monte Carlo over (chain, group).

Trajectories follow a smooth surrogate of the density; acceptance uses the true one, so a kinked
density (Laplace noise) costs no bias. Step sizes and metrics are adapted per group, from all its
chains; the number of leapfrog steps is shared by the batch in each iteration, because a batch runs
in lock-step. Every iteration ends with one Metropolis reflection: they connect mirrored modes.

The coordinate axis leads, groups come last: each coordinate is then one long vector, which is what
both kinds of processor are fast at. One compiled function advances a block of iterations; warm-up
and sampling differ only in the schedule they feed it: one compilation per problem shape.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.numerics.triangular import Matrix, entries, listed, stacked

Data = Any
Density = Callable[[Matrix, Data, jax.Array], tuple[jax.Array, jax.Array]]
"""(position, data, heat) → smooth and true log density; heat widens the noise during warm-up."""


class Target(NamedTuple):
    """What is sampled.

    ``residual`` holds what the data see, in units of their noise: its slope gives a guess of the
    curvature. Both take a vector of entries (chain, group), or, where ``looped``, one position of
    the only group as an array: large matrices are better left to LAPACK.
    """

    density: Density
    residual: Callable[[Matrix, Data, jax.Array], Matrix]
    reflections: tuple[tuple[float, ...], ...]
    looped: bool


class State(NamedTuple):
    """Positions (coordinate, chain, group); the rest ends with (group,)."""

    position: jax.Array
    basis: jax.Array
    inverse: jax.Array
    log_step: jax.Array
    averaged: jax.Array
    error: jax.Array
    anchor: jax.Array
    tuned: jax.Array
    collected: jax.Array
    first: jax.Array
    second: jax.Array
    slopes: jax.Array
    centre: jax.Array


class Schedule(NamedTuple):
    """Per iteration: heat, and which adaptation happens."""

    heat: Any
    adapt: Any
    remeasure: Any
    collect: Any
    close: Any


TRAJECTORY = 2.5
LONGEST = 40
ACCEPTANCE = 0.8
DIVERGENT = 1000.0
"""An energy error that no accurate trajectory makes (Stan's threshold)."""
SMALL = 9
"""Up to this many coordinates, products with a metric are written out."""
DENSE = 64
"""Up to this many coordinates, the chains' own covariance is learnt; above, only scales."""
GRAPHS = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUSTOM_CALL,CONDITIONAL,WHILE",
    "xla_gpu_graph_min_graph_size": 1,
}
"""On a GPU, whole trajectories are launched as one graph: small kernels cost mostly launches."""
PULL = 5.0
"""A learnt covariance counts as this many draws per coordinate of the guessed metric."""


def warmup_schedule(
    rungs: int = 5, rung: int = 20, windows: tuple[int, ...] = (60, 100, 140)
) -> Schedule:
    """Cool from 4^(rungs-1) times the noise to the noise itself, then settle metric and steps."""
    heat = np.concatenate([np.full(rung, 4.0**i) for i in reversed(range(rungs))])
    total = len(heat) + sum(windows)
    heat = np.concatenate([heat, np.ones(total - len(heat))])
    remeasure, collect, close = (np.zeros(total, bool) for _ in range(3))
    remeasure[: rungs * rung : rung] = True
    start = rungs * rung
    remeasure[start] = True
    for window in windows[:-1]:
        collect[start + window // 3 : start + window] = True
        close[start + window - 1] = True
        start += window
    return Schedule(heat, np.ones(total, bool), remeasure, collect, close)


def sampling_schedule(iterations: int) -> Schedule:
    """Nothing adapts."""
    off = np.zeros(iterations, bool)
    return Schedule(np.ones(iterations), off, off, off, off)


def start(position: jax.Array, spread: jax.Array) -> State:
    """Chains at their starting points (coordinate, chain, group), spreads (coordinate, group)."""
    size, _, groups = position.shape
    zero = jnp.zeros(groups)
    # A strong type, as adaptation returns it: otherwise the second block compiles again.
    step = jnp.full(groups, jnp.log(0.5), jnp.float64)
    eye = jnp.eye(size)[..., None]
    return State(
        position=position,
        basis=eye * spread,
        inverse=eye / spread,
        log_step=step,
        averaged=step,
        error=zero,
        anchor=step,
        tuned=zero,
        collected=zero,
        first=jnp.zeros((size, groups)),
        second=jnp.zeros((size, size, groups) if size <= DENSE else (size, groups)),
        slopes=jnp.zeros((2, size, groups)),
        centre=position.mean(axis=1),
    )


@partial(jax.jit, static_argnums=0, compiler_options=GRAPHS)
def advance(
    target: Target, state: State, data: Data, spread: jax.Array, key: jax.Array, schedule: Schedule
) -> tuple[State, tuple[jax.Array, jax.Array]]:
    """Iterations; positions (iteration, coordinate, chain, group) and divergences (group)."""
    keys = jax.random.split(key, schedule.heat.shape[0])

    def body(state: State, now: tuple[jax.Array, Schedule]) -> tuple[State, Any]:
        key, plan = now
        state = jax.lax.cond(
            plan.remeasure,
            lambda s: _remeasure(target, s, data, spread, plan.heat),
            lambda s: s,
            state,
        )
        state, change, gradient = _step(target, state, data, key, plan.heat)
        accepted = jnp.exp(jnp.minimum(change, 0)).mean(axis=0)
        state = _adapted(state, accepted, gradient, plan)
        return state, (state.position, (change < -DIVERGENT).sum(axis=0))

    state, (positions, diverged) = jax.lax.scan(body, state, (keys, schedule))
    return state, (positions, diverged.sum(axis=0))


def _times(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    """Matrix (d, e, group) times vectors (e, chain, group)."""
    if len(vector) <= SMALL:
        return sum((matrix[:, e, None] * vector[e] for e in range(len(vector))), jnp.zeros(()))
    if vector.shape[2] == 1:
        return (matrix[..., 0] @ vector[..., 0])[..., None]
    return jnp.einsum("deg,ecg->dcg", matrix, vector)


def _transposed_times(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    if len(vector) <= SMALL:
        return sum((matrix[e, :, None] * vector[e] for e in range(len(vector))), jnp.zeros(()))
    if vector.shape[2] == 1:
        return (matrix[..., 0].T @ vector[..., 0])[..., None]
    return jnp.einsum("edg,ecg->dcg", matrix, vector)


def _density(
    target: Target, x: jax.Array, data: Data, heat: jax.Array
) -> tuple[jax.Array, jax.Array]:
    if target.looped:
        smooth, true = jax.lax.map(lambda v: target.density(v, data, heat), x[:, :, 0].T)
        return smooth[:, None], true[:, None]
    return target.density(entries(x, 1), data, heat)


def _slope(
    target: Target, x: jax.Array, data: Data, heat: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Gradient of the smooth density, and the true density, for one evaluation."""
    if target.looped:

        def one(v: jax.Array) -> tuple[jax.Array, jax.Array]:
            slope: tuple[jax.Array, jax.Array]
            slope = jax.grad(target.density, has_aux=True)(v, data, heat)
            return slope

        gradient, true = jax.lax.map(one, x[:, :, 0].T)
        return gradient.T[:, :, None], true[:, None]

    def total(coordinates: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
        smooth, true = target.density(listed(coordinates), data, heat)
        return smooth.sum(), true

    # By coordinate, not by slices of one array: their gradients would be padded, and slow.
    gradient, true = jax.grad(total, has_aux=True)(list(x))
    return jnp.stack(gradient), true


def _step(
    target: Target, state: State, data: Data, key: jax.Array, heat: jax.Array
) -> tuple[State, jax.Array, jax.Array]:
    lengths, jitter, momentum, uniform = jax.random.split(key, 4)
    groups = state.log_step.shape[0]
    step = jnp.exp(state.log_step)
    reach = TRAJECTORY * jax.random.uniform(lengths, minval=0.6, maxval=1.4)
    typical = jnp.exp(jnp.mean(state.log_step))
    count = jnp.clip(jnp.ceil(reach / typical), 1, LONGEST).astype(jnp.int32)
    # A group whose steps are much larger than the batch's would overshoot its trajectory.
    step = jnp.minimum(step, 2 * reach / count)
    step = step * jax.random.uniform(jitter, (groups,), minval=0.9, maxval=1.1)
    # The basis makes the target nearly white; its steps are the same everywhere.
    along = step * state.basis

    def leap(_: int, at: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        x, p, g = at[:3]
        p = p + 0.5 * g
        x = x + _times(along, p)
        slope, true = _slope(target, x, data, heat)
        g = _transposed_times(along, slope)
        return x, p + 0.5 * g, g, true

    x, p = state.position, jax.random.normal(momentum, state.position.shape)
    slope, before = _slope(target, x, data, heat)
    first = _transposed_times(along, slope)
    begin = before - 0.5 * jnp.sum(p**2, axis=0)
    new, p, last, after = jax.lax.fori_loop(0, count, leap, (x, p, first, before))
    change = after - 0.5 * jnp.sum(p**2, axis=0) - begin
    change = jnp.where(jnp.isfinite(change), change, -jnp.inf)
    luck = jax.random.uniform(uniform, (3, *change.shape))
    taken = jnp.log(luck[0]) < change
    x = jnp.where(taken, new, x)
    gradient = jnp.where(taken, last, first) / step
    x = _reflect(target, x, jnp.where(taken, after, before), data, luck[1:], heat)
    return state._replace(position=x), change, gradient


def _reflect(
    target: Target, x: jax.Array, density: jax.Array, data: Data, luck: jax.Array, heat: jax.Array
) -> jax.Array:
    """A volume-preserving sign change, picked at random, accepted by the true density."""
    which = jnp.floor(luck[0] * len(target.reflections))
    signs = jnp.asarray(target.reflections)[:, :, None, None]
    mirrored = sum((jnp.where(which == k, x * s, 0.0) for k, s in enumerate(signs)), jnp.zeros(()))
    _, new = _density(target, mirrored, data, heat)
    return jnp.where(jnp.log(luck[1]) < new - density, mirrored, x)


def _information(target: Target, state: State, data: Data, heat: jax.Array) -> jax.Array:
    """Curvature that the data give, averaged over chains: (coordinate, coordinate, group)."""
    if target.looped:

        def one(v: jax.Array) -> jax.Array:
            slope: jax.Array = jax.jacfwd(lambda v: target.residual(v, data, heat))(v)
            return slope.T @ slope

        mean: jax.Array = jax.lax.map(one, state.position[:, :, 0].T).mean(axis=0)
        return mean[..., None]

    def push(tangent: jax.Array) -> jax.Array:
        wide = jnp.broadcast_to(tangent[:, None, None], state.position.shape)

        def residual(v: jax.Array) -> jax.Array:
            return stacked(target.residual(entries(v, 1), data, heat))

        pushed: jax.Array = jax.jvp(residual, (state.position,), (wide,))[1]
        return pushed

    slope = jax.vmap(push)(jnp.eye(len(state.position)))
    return jnp.einsum("drcg,ercg->deg", slope, slope) / state.position.shape[1]


def _remeasure(
    target: Target, state: State, data: Data, spread: jax.Array, heat: jax.Array
) -> State:
    """A basis from prior spread and local information, and a fresh search for the step."""
    information = _information(target, state, data, heat)
    # Work in units of the spread: the matrix is then the identity plus what the data add.
    eye = jnp.eye(len(spread))[..., None]
    scaled = eye + information * spread[:, None] * spread[None]
    factor, inverse = _factors(scaled)
    basis = spread[:, None] * jnp.swapaxes(inverse, 0, 1)
    back = jnp.swapaxes(factor, 0, 1) / spread[None]
    return _restarted(_with_basis(state, basis, back))


def _factors(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cholesky factor and its inverse, of (d, d, group) matrices."""
    leading = jnp.moveaxis(matrix, -1, 0)
    factor = jnp.linalg.cholesky(leading)
    eye = jnp.broadcast_to(jnp.eye(leading.shape[-1]), leading.shape)
    inverse = jax.scipy.linalg.solve_triangular(factor, eye, lower=True)
    return jnp.moveaxis(factor, 0, -1), jnp.moveaxis(inverse, 0, -1)


def _with_basis(state: State, basis: jax.Array, inverse: jax.Array) -> State:
    good = jnp.isfinite(basis).all(axis=(0, 1)) & jnp.isfinite(inverse).all(axis=(0, 1))
    return state._replace(
        basis=jnp.where(good, basis, state.basis), inverse=jnp.where(good, inverse, state.inverse)
    )


def _restarted(state: State) -> State:
    zero = jnp.zeros_like(state.tuned)
    return state._replace(
        error=zero,
        tuned=zero,
        anchor=state.log_step + jnp.log(2.0),
        averaged=state.log_step,
        collected=zero,
        first=jnp.zeros_like(state.first),
        second=jnp.zeros_like(state.second),
        slopes=jnp.zeros_like(state.slopes),
        centre=state.position.mean(axis=1),
    )


def _adapted(state: State, accepted: jax.Array, gradient: jax.Array, plan: Schedule) -> State:
    """Dual averaging (Hoffman and Gelman 2014), and moments of the positions in the basis."""
    tuned = state.tuned + 1
    error = (1 - 1 / (tuned + 10)) * state.error + (ACCEPTANCE - accepted) / (tuned + 10)
    # Steps longer than a trajectory are cut anyway: without a limit the search would run away.
    log_step = jnp.minimum(state.anchor - jnp.sqrt(tuned) / 0.05 * error, jnp.log(TRAJECTORY))
    weight = tuned**-0.75
    averaged = weight * log_step + (1 - weight) * state.averaged
    searched = state._replace(tuned=tuned, error=error, log_step=log_step, averaged=averaged)
    state = jax.tree.map(partial(jnp.where, plan.adapt), searched, state)
    state = jax.lax.cond(plan.collect, lambda s: _collected(s, gradient), lambda s: s, state)
    closed: State = jax.lax.cond(plan.close, _closed, lambda s: s, state)
    return closed


def _collected(state: State, gradient: jax.Array) -> State:
    # In the basis: its inverse is kept, since it changes only when the basis does.
    off = _times(state.inverse, state.position - state.centre[:, None])
    if state.second.ndim == 3:
        second = (off[:, None] * off[None]).mean(axis=2)
    else:
        second = (off**2).mean(axis=1)
    slopes = jnp.stack([gradient.mean(axis=1), (gradient**2).mean(axis=1)])
    return state._replace(
        first=state.first + off.mean(axis=1),
        second=state.second + second,
        slopes=state.slopes + slopes,
        collected=state.collected + 1,
    )


def _closed(state: State) -> State:
    """End of a window: a new basis from what it collected."""
    size, chains, _ = state.position.shape
    mean, second = state.first / state.collected, state.second / state.collected
    state = state._replace(log_step=state.averaged)
    if second.ndim == 2:
        slopes = state.slopes / state.collected
        ratio = (second - mean**2) / jnp.maximum(slopes[1] - slopes[0] ** 2, 1e-300)
        scale = jnp.clip(ratio, 1e-12, 1e12) ** 0.25
        basis, inverse = state.basis * scale[None], state.inverse / scale[:, None]
        return _restarted(_with_basis(state, basis, inverse))
    # Shrunk towards the metric that was guessed, as far as the draws are few.
    draws = state.collected * chains
    weight = draws / (draws + PULL * size)
    covariance = weight * (second - mean[:, None] * mean[None])
    factor, inverse = _factors(covariance + (1 - weight) * jnp.eye(size)[..., None])
    basis = jnp.einsum("deg,efg->dfg", state.basis, factor)
    return _restarted(_with_basis(state, basis, jnp.einsum("deg,efg->dfg", inverse, state.inverse)))

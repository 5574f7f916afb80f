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

from noisewise.inference.adaptation import TRAJECTORY, Schedule, State, adapted, remeasured
from noisewise.numerics.batched_matrices import times, transposed_times
from noisewise.numerics.small_matrices import Matrix, entries, listed, stacked

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


LONGEST = 80
DIVERGENT = 1000.0
"""An energy error that no accurate trajectory makes (Stan's threshold)."""
GRAPHS = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUSTOM_CALL,CONDITIONAL,WHILE",
    "xla_gpu_graph_min_graph_size": 1,
}
"""On a GPU, whole trajectories are launched as one graph: small kernels cost mostly launches."""


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
            lambda s: remeasured(s, _information(target, s, data, plan.heat), spread),
            lambda s: s,
            state,
        )
        state, change, gradient = _step(target, state, data, key, plan.heat)
        accepted = jnp.exp(jnp.minimum(change, 0)).mean(axis=0)
        state = adapted(state, accepted, gradient, plan)
        return state, (state.position, (change < -DIVERGENT).sum(axis=0))

    state, (positions, diverged) = jax.lax.scan(body, state, (keys, schedule))
    return state, (positions, diverged.sum(axis=0))


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
    count = jnp.clip(jnp.round(reach / typical), 1, LONGEST).astype(jnp.int32)
    # A group whose steps are much larger than the batch's would overshoot its trajectory.
    step = jnp.minimum(step, 2 * reach / count)
    step = step * jax.random.uniform(jitter, (groups,), minval=0.9, maxval=1.1)

    move = _plain(state, step) if target.looped else _whitened(state, step)

    def leap(_: int, at: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        x, p, g = at[:3]
        p = p + 0.5 * g
        x = x + move.drift(p)
        slope, true = _slope(target, x, data, heat)
        g = move.kick(slope)
        return x, p + 0.5 * g, g, true

    x, white = state.position, jax.random.normal(momentum, state.position.shape)
    slope, before = _slope(target, x, data, heat)
    first = move.kick(slope)
    begin = before - 0.5 * jnp.sum(white**2, axis=0)
    at = x, move.momentum(white), first, before
    new, p, last, after = jax.lax.fori_loop(0, count, leap, at)
    change = after - move.energy(p) - begin
    change = jnp.where(jnp.isfinite(change), change, -jnp.inf)
    luck = jax.random.uniform(uniform, (3, *change.shape))
    taken = jnp.log(luck[0]) < change
    x = jnp.where(taken, new, x)
    gradient = move.gradient(jnp.where(taken, last, first))
    x = _reflect(target, x, jnp.where(taken, after, before), data, luck[1:], heat)
    return state._replace(position=x), change, gradient


class _Move(NamedTuple):
    """A trajectory's arithmetic: its momentum, what a step does, its energy, and, from a kick, the
    gradient in the basis.
    """

    momentum: Callable[[jax.Array], jax.Array]
    drift: Callable[[jax.Array], jax.Array]
    kick: Callable[[jax.Array], jax.Array]
    energy: Callable[[jax.Array], jax.Array]
    gradient: Callable[[jax.Array], jax.Array]


def _whitened(state: State, step: jax.Array) -> _Move:
    """Momenta in the basis, where they are white: a product before each gradient and one after."""
    along = step * state.basis
    return _Move(
        lambda white: white,
        lambda p: times(along, p),
        lambda slope: transposed_times(along, slope),
        lambda p: 0.5 * jnp.sum(p**2, axis=0),
        lambda kick: kick / step,
    )


def _plain(state: State, step: jax.Array) -> _Move:
    """The same trajectory, momenta in plain coordinates: one product, of a matrix kept for it.

    Worth it where the matrix does not fit a cache.
    """
    return _Move(
        lambda white: transposed_times(state.inverse, white),
        lambda p: step * times(state.metric, p),
        lambda slope: step * slope,
        lambda p: 0.5 * jnp.sum(p * times(state.metric, p), axis=0),
        lambda kick: transposed_times(state.basis, kick / step),
    )


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

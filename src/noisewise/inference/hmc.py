"""Hamiltonian Monte Carlo, batched over (chain, group).

Trajectories follow a smooth surrogate of the density; acceptance uses the true one, so a kinked
density (Laplace noise) costs no bias. Step sizes and metrics are adapted per group, from all its
chains (``adaptation.py``); the number of leapfrog steps is shared by the batch in each iteration,
because a batch runs in lock-step. Every iteration ends with one Metropolis reflection, which
connects mirrored modes.

The coordinate axis leads, groups come last: each coordinate is then one long vector, which is what
both kinds of processor are fast at. One compiled function advances a block of iterations; warm-up
and sampling differ only in the schedule they feed it: one compilation per problem shape.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from noisewise.inference.adaptation import (
    TARGET_ACCEPTANCE,
    TRAJECTORY_LENGTH,
    ChainState,
    Schedule,
    adapted,
    remeasured,
)
from noisewise.numerics.compilation import compiled
from noisewise.numerics.matrices import (
    Matrix,
    batched_times,
    batched_transposed_times,
    entries,
    listed,
    stacked,
)

Each = TypeVar("Each")

Data = Any
"""Whatever the density reads: an argument of the compiled function, so it must be a JAX pytree."""
Density = Callable[[Matrix, Data, jax.Array], tuple[jax.Array, jax.Array]]
"""(position, data, heat) → smooth and true log density; heat widens the noise during warm-up."""


class Target(NamedTuple):
    """The distribution to be sampled.

    ``residual`` holds what the data see, in units of their noise: its slope gives a guess of the
    curvature. Both take a vector of entries (chain, group), or, where ``looped``, one position as
    an array: large matrices are better left to LAPACK. The data of a looped target are those of the
    only group, or, of several, have the group axis first. ``reach`` is the length of a trajectory
    in standard deviations, ``acceptance`` what the step size aims at.
    """

    density: Density
    residual: Callable[[Matrix, Data, jax.Array], Matrix]
    reflections: tuple[tuple[float, ...], ...]
    looped: bool
    side_by_side: bool = False
    reach: float = TRAJECTORY_LENGTH
    acceptance: float = TARGET_ACCEPTANCE

    def of_chains(self, f: Callable[[jax.Array], Each], x: jax.Array) -> Each:
        """Return f (chain, …) at every position (coordinate, chain) of one group, if looped.

        ``side_by_side`` evaluates all chains at once: better where matrices are so small that an
        operation costs more to begin than to carry out.
        """
        return jax.vmap(f)(x.T) if self.side_by_side else jax.lax.map(f, x.T)


MAX_LEAPFROG_STEPS = 80
"""Leapfrog steps of one trajectory at the most (chosen)."""
DIVERGENT_ENERGY = 1000.0
"""An energy error that no accurate trajectory makes (Stan's threshold)."""


@partial(compiled, static_argnums=0)
def advance(
    target: Target,
    state: ChainState,
    data: Data,
    spread: jax.Array,
    key: jax.Array,
    schedule: Schedule,
) -> tuple[ChainState, tuple[jax.Array, jax.Array]]:
    """Run the iterations of a schedule.

    Returns:
        The state after them; positions (iteration, coordinate, chain, group) and the number of
        divergent trajectories (group).
    """
    keys = jax.random.split(key, schedule.heat.shape[0])

    def body(state: ChainState, now: tuple[jax.Array, Schedule]) -> tuple[ChainState, Any]:
        key, plan = now
        state, diverged = iterate(target, state, data, spread, key, plan)
        return state, (state.position, diverged)

    state, (positions, diverged) = jax.lax.scan(body, state, (keys, schedule))
    return state, (positions, diverged.sum(axis=0))


def iterate(
    target: Target,
    state: ChainState,
    data: Data,
    spread: jax.Array,
    key: jax.Array,
    plan: Schedule,
) -> tuple[ChainState, jax.Array]:
    """Return the state after one iteration, and how many trajectories diverged (group)."""
    state = jax.lax.cond(
        plan.remeasure,
        lambda s: remeasured(s, _information(target, s, data, plan.heat), spread),
        lambda s: s,
        state,
    )
    state, change, gradient = _step(target, state, data, key, plan.heat)
    accepted = jnp.exp(jnp.minimum(change, 0)).mean(axis=0)
    state = adapted(state, accepted, gradient, plan, target.acceptance)
    return state, (change < -DIVERGENT_ENERGY).sum(axis=0)


def _slope(
    target: Target, x: jax.Array, data: Data, heat: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the gradient of the smooth density and the true density, from one evaluation."""
    if target.looped:

        def of_group(own: jax.Array, data: Data) -> tuple[jax.Array, jax.Array]:
            def one(v: jax.Array) -> tuple[jax.Array, jax.Array]:
                slope: tuple[jax.Array, jax.Array]
                slope = jax.grad(target.density, has_aux=True)(v, data, heat)
                return slope

            return target.of_chains(one, own)

        if x.shape[2] > 1:
            gradient, true = jax.vmap(of_group, in_axes=(2, 0))(x, data)
            return gradient.T, true.T
        gradient, true = of_group(x[:, :, 0], data)
        return gradient.T[:, :, None], true[:, None]

    def total(coordinates: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
        smooth, true = target.density(listed(coordinates), data, heat)
        return smooth.sum(), true

    # By coordinate, not by slices of one array: their gradients would be padded, and slow.
    gradient, true = jax.grad(total, has_aux=True)(list(x))
    return jnp.stack(gradient), true


def _step(
    target: Target, state: ChainState, data: Data, key: jax.Array, heat: jax.Array
) -> tuple[ChainState, jax.Array, jax.Array]:
    """Run one trajectory and one reflection of every chain.

    Returns:
        The new state, the change of energy (chain, group), and the gradient in the basis.
    """
    lengths, jitter, momentum, uniform = jax.random.split(key, 4)
    groups = state.log_step.shape[0]
    step = jnp.exp(state.log_step)
    reach = target.reach * jax.random.uniform(lengths, minval=0.6, maxval=1.4)
    typical = jnp.exp(jnp.mean(state.log_step))
    count = jnp.clip(jnp.round(reach / typical), 1, MAX_LEAPFROG_STEPS).astype(jnp.int32)
    # A group whose steps are much larger than the batch's would overshoot its trajectory.
    step = jnp.minimum(step, 2 * reach / count)
    step = step * jax.random.uniform(jitter, (groups,), minval=0.9, maxval=1.1)

    move = (_plain_momenta if target.looped else _white_momenta)(state, step)
    white = jax.random.normal(momentum, state.position.shape)
    uniforms = jax.random.uniform(uniform, (3, *state.position.shape[1:]))

    def leap(number: jax.Array, at: _Trajectory) -> _Trajectory:
        """Move on by a step; not before the first evaluation, which is of the start."""
        p = at.momentum + 0.5 * at.here.kick
        moved = jnp.where(number > 0, at.here.x + move.drift(p), at.here.x)
        return at._replace(here=at.here._replace(x=moved), momentum=p)

    def end(_: jax.Array, at: _Trajectory) -> _Trajectory:
        """Keep the trajectory's end or its start, and go to its mirror image."""
        change = at.here.density - move.energy(at.momentum)
        change = change - (at.kept.density - 0.5 * jnp.sum(white**2, axis=0))
        change = jnp.where(jnp.isfinite(change), change, -jnp.inf)
        taken = jnp.log(uniforms[0]) < change
        kept = jax.tree.map(partial(jnp.where, taken), at.here, at.kept)
        mirrored = at.here._replace(x=_mirrored(target, kept.x, uniforms[1]))
        return at._replace(here=mirrored, kept=kept, change=change)

    def visit(number: jax.Array, at: _Trajectory) -> _Trajectory:
        at = jax.lax.cond(number > count, end, leap, number, at)
        slope, density = _slope(target, at.here.x, data, heat)
        here = _Point(at.here.x, move.kick(slope), density)
        p = jnp.where(number > 0, at.momentum + 0.5 * here.kick, at.momentum)
        kept = jax.tree.map(lambda new, old: jnp.where(number > 0, old, new), here, at.kept)
        return at._replace(here=here, kept=kept, momentum=p)

    # The start, the steps and the mirror image in one loop: the gradient, most of what XLA has to
    # compile, is then there only once.
    x, none = state.position, jnp.zeros(state.position.shape[1:])
    start = _Point(x, jnp.zeros_like(x), none)
    at = _Trajectory(start, start, move.momentum(white), none)
    at = jax.lax.fori_loop(0, count + 2, visit, at)
    reflected = jnp.log(uniforms[2]) < at.here.density - at.kept.density
    x = jnp.where(reflected, at.here.x, at.kept.x)
    return state._replace(position=x), at.change, move.gradient(at.kept.kick)


class _Point(NamedTuple):
    """A position, the kick that momenta get there, and the true density (chain, group)."""

    x: jax.Array
    kick: jax.Array
    density: jax.Array


class _Trajectory(NamedTuple):
    """Where a trajectory is, the point it returns to if refused, and its change of energy."""

    here: _Point
    kept: _Point
    momentum: jax.Array
    change: jax.Array


class _Move(NamedTuple):
    """The arithmetic of a trajectory.

    ``momentum`` of white noise, ``drift`` of a position, ``kick`` by a slope, kinetic ``energy``,
    and, from a kick, the ``gradient`` in the basis.
    """

    momentum: Callable[[jax.Array], jax.Array]
    drift: Callable[[jax.Array], jax.Array]
    kick: Callable[[jax.Array], jax.Array]
    energy: Callable[[jax.Array], jax.Array]
    gradient: Callable[[jax.Array], jax.Array]


def _white_momenta(state: ChainState, step: jax.Array) -> _Move:
    """Return moves with momenta in the basis, where they are white: two products a gradient."""
    along = step * state.basis
    return _Move(
        lambda white: white,
        lambda p: batched_times(along, p),
        lambda slope: batched_transposed_times(along, slope),
        lambda p: 0.5 * jnp.sum(p**2, axis=0),
        lambda kick: kick / step,
    )


def _plain_momenta(state: ChainState, step: jax.Array) -> _Move:
    """Return the same moves with momenta in plain coordinates: one product a gradient.

    Its matrix is kept for that: worth it where the matrix does not fit a cache.
    """
    return _Move(
        lambda white: batched_transposed_times(state.inverse, white),
        lambda p: step * batched_times(state.metric, p),
        lambda slope: step * slope,
        lambda p: 0.5 * jnp.sum(p * batched_times(state.metric, p), axis=0),
        lambda kick: batched_transposed_times(state.basis, kick / step),
    )


def _mirrored(target: Target, x: jax.Array, uniform: jax.Array) -> jax.Array:
    """Return positions after a sign change that keeps volumes, picked at random for every chain."""
    which = jnp.floor(uniform * len(target.reflections))
    signs = jnp.asarray(target.reflections)[:, :, None, None]
    return sum((jnp.where(which == k, x * s, 0.0) for k, s in enumerate(signs)), jnp.zeros(()))


def _information(target: Target, state: ChainState, data: Data, heat: jax.Array) -> jax.Array:
    """Return the curvature that data give, averaged over chains (coordinate, coordinate, group)."""
    if target.looped:

        def of_group(both: tuple[jax.Array, Data]) -> jax.Array:
            own, data = both

            def one(v: jax.Array) -> jax.Array:
                slope: jax.Array = jax.jacfwd(lambda v: target.residual(v, data, heat))(v)
                return slope.T @ slope

            return target.of_chains(one, own).mean(axis=0)

        x = state.position
        if x.shape[2] == 1:
            return of_group((x[:, :, 0], data))[..., None]
        # One group after the other: all tangents of all groups at once would be a batch of
        # matrices that jaxlib gives to threads, which may wait for each other for ever.
        return jnp.moveaxis(jax.lax.map(of_group, (jnp.moveaxis(x, 2, 0), data)), 0, -1)

    def push(tangent: jax.Array) -> jax.Array:
        wide = jnp.broadcast_to(tangent[:, None, None], state.position.shape)

        def residual(v: jax.Array) -> jax.Array:
            return stacked(target.residual(entries(v, 1), data, heat))

        pushed: jax.Array = jax.jvp(residual, (state.position,), (wide,))[1]
        return pushed

    slope = jax.vmap(push)(jnp.eye(len(state.position)))
    return jnp.einsum("drcg,ercg->deg", slope, slope) / state.position.shape[1]

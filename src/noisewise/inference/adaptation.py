"""Adaptation of step sizes and metrics while chains warm up, and its schedule.

Step sizes by dual averaging (M. D. Hoffman, A. Gelman, "The No-U-Turn Sampler", JMLR 15, 2014);
metrics from the curvature that the data give, then from the chains' own covariance. Both per group,
from all its chains.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.numerics.compilation import placed
from noisewise.numerics.matrices import batched_times, factors, squared

TRAJECTORY_LENGTH = 2.5
"""Length of a trajectory, in standard deviations of the target (chosen: longer ones
are worth more, but not what they cost)."""
TARGET_ACCEPTANCE = 0.8
"""Mean acceptance that the step size aims at (the default of Stan and of numpyro)."""
MAX_DENSE_METRIC = 64
"""Up to this many coordinates, the chains' own covariance is learnt; above, only scales
(chosen)."""
METRIC_PRIOR_DRAWS = 5.0
"""Weight of the guessed metric against a learnt covariance, in draws per coordinate (chosen; Stan
uses five draws in all)."""


class ChainState(NamedTuple):
    """Positions (coordinate, chain, group) and what adaptation keeps; the rest ends with (group,).

    The basis makes the target nearly white; ``metric``, where it is kept, is basis basisᵀ.
    ``log_step`` to ``tuned`` belong to dual averaging; ``collected`` to ``centre`` are sums over
    the current window, in the basis.
    """

    position: jax.Array
    basis: jax.Array
    inverse: jax.Array
    metric: jax.Array
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


StepSearch = TypeVar("StepSearch", bound=Any)
"""A state of any sampler whose step size is searched."""


class Schedule(NamedTuple):
    """What happens in each iteration.

    ``heat`` multiplies the noise; ``adapt`` the step size; ``remeasure`` the basis by the local
    curvature; ``collect`` moments of the positions; ``close`` the window and take them as metric.
    """

    heat: Any
    adapt: Any
    remeasure: Any
    collect: Any
    close: Any


def warmup_schedule(
    rungs: int = 5, rung: int = 20, windows: tuple[int, ...] = (60, 100, 140)
) -> Schedule:
    """Return the schedule of a warm-up.

    It cools from 4^(rungs-1) times the noise to the noise itself, then settles metric and steps.

    Args:
        rungs: temperatures, each a quarter of the one before; the last is 1.
        rung: iterations at each.
        windows: iterations of each window of metric adaptation; the last adapts steps only.
    """
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
    """Return the schedule of sampling: nothing adapts."""
    off = np.zeros(iterations, bool)
    return Schedule(np.ones(iterations), off, off, off, off)


def in_blocks(schedule: Schedule, length: int) -> list[Schedule]:
    """Return the schedule in blocks of one length, so that one compilation serves all."""
    total = -(-len(schedule.heat) // length) * length
    padded = Schedule(*(np.pad(a, (0, total - len(a)), mode="edge") for a in schedule))
    return [Schedule(*(a[i : i + length] for a in padded)) for i in range(0, total, length)]


def start(position: jax.Array, spread: jax.Array, *, plain: bool = False) -> ChainState:
    """Return the state of chains that have not moved yet.

    Args:
        position: starting points (coordinate, chain, group).
        spread: scales of the coordinates (coordinate, group), the first guess of the metric.
        plain: whether momenta will be those of plain coordinates, which need the metric.
    """
    size, _, groups = position.shape
    # In NumPy: every small operation of JAX's own would be compiled by itself.
    at, wide = np.asarray(position), np.asarray(spread)
    zero, step = placed(np.zeros(groups)), placed(np.full(groups, np.log(0.5)))
    eye = np.eye(size)[..., None]
    return ChainState(
        position=placed(at),
        basis=placed(eye * wide),
        inverse=placed(eye / wide),
        metric=placed(eye * wide**2) if plain else zero,
        log_step=step,
        averaged=step,
        error=zero,
        anchor=step,
        tuned=zero,
        collected=zero,
        first=placed(np.zeros((size, groups))),
        second=placed(
            np.zeros((size, size, groups) if size <= MAX_DENSE_METRIC else (size, groups))
        ),
        slopes=placed(np.zeros((2, size, groups))),
        centre=placed(at.mean(axis=1)),
    )


def remeasured(state: ChainState, information: jax.Array, spread: jax.Array) -> ChainState:
    """Return the state with a basis from prior spread and local information.

    The search for the step size begins anew.
    """
    # Work in units of the spread: the matrix is then the identity plus what the data add.
    eye = jnp.eye(len(spread))[..., None]
    scaled = eye + information * spread[:, None] * spread[None]
    factor, inverse = factors(scaled)
    basis = spread[:, None] * jnp.swapaxes(inverse, 0, 1)
    back = jnp.swapaxes(factor, 0, 1) / spread[None]
    return _restarted(_with_basis(state, basis, back))


def _with_basis(state: ChainState, basis: jax.Array, inverse: jax.Array) -> ChainState:
    """Return the state with that basis; groups in which it is not finite keep theirs."""
    good = jnp.isfinite(basis).all(axis=(0, 1)) & jnp.isfinite(inverse).all(axis=(0, 1))
    metric = squared(basis) if state.metric.ndim == 3 else state.metric
    return state._replace(
        basis=jnp.where(good, basis, state.basis),
        inverse=jnp.where(good, inverse, state.inverse),
        metric=jnp.where(good, metric, state.metric),
    )


def _restarted(state: ChainState) -> ChainState:
    """Return the state with dual averaging and the window's sums begun anew."""
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


def dual_averaged(
    state: StepSearch, accepted: jax.Array, longest: float, aim: float = TARGET_ACCEPTANCE
) -> StepSearch:
    """Return the state after one step of dual averaging, with Hoffman and Gelman's constants.

    Args:
        state: any named tuple with the fields ``log_step``, ``averaged``, ``error``, ``anchor`` and
            ``tuned``.
        accepted: the mean acceptance of the iteration.
        longest: the largest step size allowed.
        aim: the mean acceptance that is wanted.
    """
    tuned = state.tuned + 1
    error = (1 - 1 / (tuned + 10)) * state.error + (aim - accepted) / (tuned + 10)
    # Steps longer than a trajectory are cut anyway: without a limit the search would run away.
    log_step = jnp.minimum(state.anchor - jnp.sqrt(tuned) / 0.05 * error, jnp.log(longest))
    weight = tuned**-0.75
    averaged = weight * log_step + (1 - weight) * state.averaged
    searched: StepSearch = state._replace(
        tuned=tuned, error=error, log_step=log_step, averaged=averaged
    )
    return searched


def adapted(
    state: ChainState, accepted: jax.Array, gradient: jax.Array, plan: Schedule, aim: float
) -> ChainState:
    """Return the state after an iteration's adaptation, as far as its plan asks for it."""
    tuned = dual_averaged(state, accepted, TRAJECTORY_LENGTH, aim)
    state = jax.tree.map(partial(jnp.where, plan.adapt), tuned, state)
    state = jax.lax.cond(plan.collect, lambda s: _collected(s, gradient), lambda s: s, state)
    closed: ChainState = jax.lax.cond(plan.close, _closed, lambda s: s, state)
    return closed


def _collected(state: ChainState, gradient: jax.Array) -> ChainState:
    """Return the state with moments of positions and gradients added to the window's sums."""
    # In the basis: its inverse is kept, since it changes only when the basis does.
    off = batched_times(state.inverse, state.position - state.centre[:, None])
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


def _closed(state: ChainState) -> ChainState:
    """Return the state at the end of a window: with a new basis from what it collected."""
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
    weight = draws / (draws + METRIC_PRIOR_DRAWS * size)
    covariance = weight * (second - mean[:, None] * mean[None])
    factor, inverse = factors(covariance + (1 - weight) * jnp.eye(size)[..., None])
    basis = jnp.einsum("deg,efg->dfg", state.basis, factor)
    return _restarted(_with_basis(state, basis, jnp.einsum("deg,efg->dfg", inverse, state.inverse)))

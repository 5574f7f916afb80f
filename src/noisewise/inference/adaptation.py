"""What chains learn while they warm up: step sizes, metrics, and when each is looked at.

Steps by dual averaging, metrics from the curvature that the data give and then from the chains' own
covariance; per group, from all its chains.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.numerics.batched_matrices import factors, squared, times

TRAJECTORY = 2.5
"""Length of a trajectory, in deviations: longer ones are worth more, but not what they cost."""
ACCEPTANCE = 0.8
DENSE = 64
"""Up to this many coordinates, the chains' own covariance is learnt; above, only scales."""
PULL = 5.0
"""A learnt covariance counts as this many draws per coordinate of the guessed metric."""


class State(NamedTuple):
    """Positions (coordinate, chain, group); the rest ends with (group,).

    The basis makes the target nearly white; ``metric``, where it is kept, is basis basisᵀ.
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


class Schedule(NamedTuple):
    """Per iteration: heat, and which adaptation happens."""

    heat: Any
    adapt: Any
    remeasure: Any
    collect: Any
    close: Any


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


def start(position: jax.Array, spread: jax.Array, *, plain: bool = False) -> State:
    """Chains at their starting points (coordinate, chain, group), spreads (coordinate, group).

    ``plain``: momenta will be those of plain coordinates, and need the metric.
    """
    size, _, groups = position.shape
    zero = jnp.zeros(groups)
    # A strong type, as adaptation returns it: otherwise the second block compiles again.
    step = jnp.full(groups, jnp.log(0.5), jnp.float64)
    eye = jnp.eye(size)[..., None]
    return State(
        position=position,
        basis=eye * spread,
        inverse=eye / spread,
        metric=eye * spread**2 if plain else zero,
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


def remeasured(state: State, information: jax.Array, spread: jax.Array) -> State:
    """A basis from prior spread and local information, and a fresh search for the step."""
    # Work in units of the spread: the matrix is then the identity plus what the data add.
    eye = jnp.eye(len(spread))[..., None]
    scaled = eye + information * spread[:, None] * spread[None]
    factor, inverse = factors(scaled)
    basis = spread[:, None] * jnp.swapaxes(inverse, 0, 1)
    back = jnp.swapaxes(factor, 0, 1) / spread[None]
    return _restarted(_with_basis(state, basis, back))


def _with_basis(state: State, basis: jax.Array, inverse: jax.Array) -> State:
    good = jnp.isfinite(basis).all(axis=(0, 1)) & jnp.isfinite(inverse).all(axis=(0, 1))
    metric = squared(basis) if state.metric.ndim == 3 else state.metric
    return state._replace(
        basis=jnp.where(good, basis, state.basis),
        inverse=jnp.where(good, inverse, state.inverse),
        metric=jnp.where(good, metric, state.metric),
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


def searched(state: Any, accepted: jax.Array, longest: float) -> Any:
    """Dual averaging (Hoffman and Gelman 2014) of any state that has the fields for it."""
    tuned = state.tuned + 1
    error = (1 - 1 / (tuned + 10)) * state.error + (ACCEPTANCE - accepted) / (tuned + 10)
    # Steps longer than a trajectory are cut anyway: without a limit the search would run away.
    log_step = jnp.minimum(state.anchor - jnp.sqrt(tuned) / 0.05 * error, jnp.log(longest))
    weight = tuned**-0.75
    averaged = weight * log_step + (1 - weight) * state.averaged
    return state._replace(tuned=tuned, error=error, log_step=log_step, averaged=averaged)


def adapted(state: State, accepted: jax.Array, gradient: jax.Array, plan: Schedule) -> State:
    """The step searched, and moments of the positions in the basis."""
    found = searched(state, accepted, TRAJECTORY)
    state = jax.tree.map(partial(jnp.where, plan.adapt), found, state)
    state = jax.lax.cond(plan.collect, lambda s: _collected(s, gradient), lambda s: s, state)
    closed: State = jax.lax.cond(plan.close, _closed, lambda s: s, state)
    return closed


def _collected(state: State, gradient: jax.Array) -> State:
    # In the basis: its inverse is kept, since it changes only when the basis does.
    off = times(state.inverse, state.position - state.centre[:, None])
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
    factor, inverse = factors(covariance + (1 - weight) * jnp.eye(size)[..., None])
    basis = jnp.einsum("deg,efg->dfg", state.basis, factor)
    return _restarted(_with_basis(state, basis, jnp.einsum("deg,efg->dfg", inverse, state.inverse)))

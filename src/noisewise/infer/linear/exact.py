"""Method ``exact``: the collapsed posterior, sampled without approximation.

The statistic s is sampled by the batched driver in coordinates where every point is valid, then
(θ, σ²) | s is drawn exactly. Laplace noise has a kink per component, which a leapfrog integrator
cannot see; trajectories follow a Huber surrogate and are accepted under the true density.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.infer import _chains
from noisewise.infer.linear import collapsed
from noisewise.infer.linear.assemble import assembled
from noisewise.infer.linear.coordinates import point, reflections, released
from noisewise.infer.linear.problem import Problem
from noisewise.infer.linear.starts import prior_statistics
from noisewise.infer.posterior import ESS, RHAT, Posterior
from noisewise.numerics.convergence import diagnose

PRIOR_DRAWS = 64
PRIOR_TOTAL = 2**16
BLOCK = 50
SIZES = {"cpu": (1, 16, 256), "gpu": (1, 256, 4096, 16384)}
"""Groups per batch: few sizes, since each is a compilation; as large as keeps the device busy."""
ROUNDS = (1, 2, 6)
"""First, second and third tries warm up, and sample, this many times as long."""

Report = Callable[[int, int], None]


class Group(NamedTuple):
    """The data of one group, as the density sees it."""

    z: jax.Array
    n: jax.Array
    noise: jax.Array
    prior: collapsed.Prior


class Sampled(NamedTuple):
    """Draws (parameter, group, chain, draw) in the user's units; R-hat and ESS per parameter."""

    user: np.ndarray
    rhat: np.ndarray
    ess: np.ndarray


@lru_cache(maxsize=64)
def target(q: int, mechanism: str, noisy_n: bool) -> _chains.Target:
    """Cached, because a compiled block is tied to the functions it was traced with."""
    components = q * (q + 3) // 2 + noisy_n
    knee = min(0.5, (1.5 / components) ** (1 / 3))

    def parts(v: jax.Array, g: Group, heat: jax.Array) -> tuple[jax.Array, jax.Array]:
        at = point(v, q, g.n, noisy_n=noisy_n)
        base = collapsed.log_prior_predictive(at, g.prior, noisy_n=noisy_n)
        return base, (released(at, noisy_n=noisy_n) - g.z) / (g.noise * heat)

    def true(v: jax.Array, g: Group, heat: jax.Array) -> jax.Array:
        base, r = parts(v, g, heat)
        return base - (jnp.sum(jnp.abs(r)) if mechanism == "laplace" else 0.5 * jnp.sum(r**2))

    def smooth(v: jax.Array, g: Group, heat: jax.Array) -> jax.Array:
        if mechanism == "gaussian":
            return true(v, g, heat)
        base, r = parts(v, g, heat)
        size = jnp.abs(r)
        huber = jnp.where(size < knee, r**2 / (2 * knee) + knee / 2, size)
        return base - jnp.sum(huber)

    def information(v: jax.Array, g: Group, heat: jax.Array) -> jax.Array:
        def residual(v: jax.Array) -> jax.Array:
            return parts(v, g, heat)[1]

        slope: jax.Array = jax.jacfwd(residual)(v)
        return 0.6 * slope.T @ slope

    signs = tuple(map(tuple, reflections(q, noisy_n=noisy_n).tolist()))
    return _chains.Target(true, smooth, information, signs)


def sample(key: jax.Array, problem: Problem, chains: int, draws: int, rounds: int = 1) -> Sampled:
    """Draws in the user's units, judged where they were made.

    ``rounds`` > 1 warms up longer and keeps every ``rounds``-th draw: a second try for groups that
    did not converge in the first.
    """
    q, groups = len(problem.x) + 1, len(problem.n)
    aim = target(q, problem.mechanism, problem.noisy_n)
    prior = jax.tree.map(lambda a: jnp.broadcast_to(a, (groups, *a.shape)), problem.box_prior)
    noise = jnp.full(groups, problem.noise_scale)
    data = Group(jnp.asarray(problem.z), jnp.asarray(problem.n), noise, prior)
    begin, run, finish = jax.random.split(key, 3)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(begin)))
    number = max(chains, min(PRIOR_DRAWS, PRIOR_TOTAL // groups))
    n_noise = problem.noise_scale if problem.noisy_n else None
    starts = prior_statistics(rng, problem.n, problem.box_prior, number, n_noise=n_noise)
    # Many groups share one prior: then a few draws each, and their common spread, will do.
    spread = np.std(starts, axis=1 if number == PRIOR_DRAWS else (0, 1), keepdims=True)
    spread = jnp.broadcast_to(spread[:, 0], (groups, starts.shape[-1]))
    state = _chains.start(jnp.asarray(starts[:, :chains]), spread)
    warm = _chains.warmup_schedule(
        rungs=_rungs(problem),
        rung=20 * rounds,
        windows=tuple(rounds * w for w in (50, 100, 150)),
    )
    steps = _pieces(warm) + _pieces(_chains.sampling_schedule(draws * rounds))
    kept: list[jax.Array] = []
    for number, schedule in enumerate(steps):
        state, (positions, _) = _chains.advance(
            aim, state, data, spread, jax.random.fold_in(run, number), schedule
        )
        if not schedule.adapt[0]:
            # Every rounds-th draw, counted across blocks.
            kept.append(positions[-(len(kept) * BLOCK) % rounds :: rounds])
        elif not steps[number + 1].adapt[0]:
            state = state._replace(log_step=state.averaged)
    back = problem.units.from_box
    positions = jnp.concatenate(kept)[:draws]
    return Sampled(*map(np.asarray, _finish(finish, positions, data, back, q, problem.noisy_n)))


def _rungs(problem: Problem) -> int:
    """Cooling starts where noise is as wide as the sums themselves."""
    ratio = float(problem.n.max()) / problem.noise_scale
    return int(np.clip(np.ceil(np.log(max(ratio, 1.0)) / np.log(4)) + 1, 3, 16))


def _pieces(schedule: _chains.Schedule) -> list[_chains.Schedule]:
    """Blocks of one length, so that one compilation serves all; lengths are multiples of it."""
    length = -(-len(schedule.heat) // BLOCK) * BLOCK
    padded = _chains.Schedule(*(np.pad(a, (0, length - len(a)), mode="edge") for a in schedule))
    return [_chains.Schedule(*(a[i : i + BLOCK] for a in padded)) for i in range(0, length, BLOCK)]


@partial(jax.jit, static_argnums=(4, 5))
def _finish(
    key: jax.Array,
    positions: jax.Array,
    data: Group,
    back: tuple[np.ndarray, np.ndarray],
    q: int,
    noisy_n: bool,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(θ, σ²) | s at every position (draw, group, chain, dim), in user's units, with R-hat, ESS."""
    keys = jax.random.split(key, positions.shape[:3])

    def one(key: jax.Array, v: jax.Array, g: Group) -> jax.Array:
        return collapsed.draw_parameters(key, point(v, q, g.n, noisy_n=noisy_n), g.prior)

    over_chains = jax.vmap(one, in_axes=(0, 0, None))
    over_groups = jax.vmap(over_chains, in_axes=(0, 0, 0))
    drawn = jax.vmap(over_groups, in_axes=(0, 0, None))(keys, positions, data)
    user = jnp.einsum("...j,ij->i...", drawn, back[0]) + back[1][:, None, None, None]
    user = jnp.moveaxis(user, 1, -1)
    return user, *diagnose(user)


def run(
    problem: Problem, seed: int, chains: int, draws: int, progress: Report | None = None
) -> Posterior:
    """All groups, slab by slab; those that did not converge get longer second and third tries."""
    groups, size = len(problem.n), len(problem.x) + 2
    user = np.empty((size, groups, chains, draws))
    rhat, ess = np.empty((size, groups)), np.empty((size, groups))
    tries = np.zeros(groups, int)
    todo = np.arange(groups)
    key = jax.random.key(seed)
    slab = _sizes()[-1]
    for attempt, rounds in enumerate(ROUNDS):
        for start in range(0, len(todo), slab):
            rows = todo[start : start + slab]
            fresh = jax.random.fold_in(jax.random.fold_in(key, attempt), start)
            made = sample(fresh, _subset(problem, _padded(rows)), chains, draws, rounds)
            for whole, part in zip((user, rhat, ess), made, strict=True):
                whole[:, rows] = part[:, : len(rows)]
            tries[rows] = attempt + 1
            if progress is not None:
                progress(min(start + slab, len(todo)), len(todo))
        todo = np.flatnonzero(~((rhat < RHAT) & (ess >= ESS)).all(axis=0))
        if not len(todo):
            break
    return assembled(problem, user, rhat, ess, "exact", {"tries": tries})


def _subset(problem: Problem, rows: np.ndarray) -> Problem:
    return dataclasses.replace(problem, z=problem.z[rows], n=problem.n[rows])


def _sizes() -> tuple[int, ...]:
    return SIZES["cpu" if jax.default_backend() == "cpu" else "gpu"]


def _padded(rows: np.ndarray) -> np.ndarray:
    """Repeat the last group up to one of few sizes: a new size is a new compilation."""
    size = next(s for s in _sizes() if s >= len(rows))
    return np.concatenate([rows, np.repeat(rows[-1:], size - len(rows))])

"""Method ``exact``: the collapsed posterior, sampled without approximation.

The statistic s is sampled by the batched driver in coordinates where every point is valid, then
(θ, σ²) | s is drawn exactly. Laplace noise has a kink per component, which a leapfrog integrator
cannot see; trajectories follow a Huber surrogate and are accepted under the true density.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache, partial
from threading import Lock
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference import _chains, _tuning
from noisewise.inference.observation import averaged
from noisewise.inference.posterior import Posterior
from noisewise.models.linear_regression import collapsed, flow, latent, slabs
from noisewise.models.linear_regression.posterior import assembled
from noisewise.models.linear_regression.collected import Collected, Sampled, shape_of
from noisewise.models.linear_regression.coordinates import Shape, point, reflections, released
from noisewise.models.linear_regression.problem import Problem
from noisewise.models.linear_regression.initial_values import Statistics, prior_statistics, towards
from noisewise.numerics.convergence import diagnose
from noisewise.numerics.small_matrices import (
    UNROLLED,
    Matrix,
    dot,
    each,
    entries,
    is_entries,
    joined,
    scaled,
)

PRIOR_DRAWS = 64
PRIOR_TOTAL = 2**16
BLOCK = 50
ROUNDS = (1, 4, 4)
"""First, second and third tries sample this many times as long (and warm up twice as long)."""

Report = Callable[[int, int], None]


class Group(NamedTuple):
    """Data as the density sees them: trailing axes (chain, group), or none where looped.

    ``others``: sums and noise scales of further releases of the same records.
    """

    z: jax.Array
    n: jax.Array
    noise: jax.Array
    prior: collapsed.Prior
    others: tuple[tuple[jax.Array, jax.Array], ...] = ()


@lru_cache(maxsize=64)
def target(shape: Shape, *mechanisms: str) -> _chains.Target:
    """Cached, because a compiled block is tied to the functions it was traced with.

    One mechanism for each release of the records: usually there is one.
    """
    q = shape.q
    components = (q * (q + 3) // 2 + shape.noisy_n) * len(mechanisms)
    knee = min(0.5, (1.5 / components) ** (1 / 3))

    def parts(v: Matrix, g: Group, heat: jax.Array) -> tuple[jax.Array, list[Matrix]]:
        prior = g.prior.entries() if is_entries(v) else g.prior
        at = point(v, shape, g.n)
        base = collapsed.log_prior_predictive(at, prior, noisy_n=shape.noisy_n)
        sums = released(at, noisy_n=shape.noisy_n)

        def apart(z: jax.Array, noise: jax.Array) -> Matrix:
            wanted = entries(z, 1) if is_entries(v) else z
            return scaled(1 / (noise * heat), sums - wanted)

        return base, [apart(g.z, g.noise), *(apart(z, noise) for z, noise in g.others)]

    def density(v: Matrix, g: Group, heat: jax.Array) -> tuple[jax.Array, jax.Array]:
        base, residuals = parts(v, g, heat)
        kinds = list(zip(residuals, mechanisms, strict=True))
        for r in (r for r, mechanism in kinds if mechanism == "gaussian"):
            base = base - 0.5 * dot(r, r)

        def huber(e: jax.Array) -> jax.Array:
            return jnp.where(jnp.abs(e) < knee, e**2 / (2 * knee) + knee / 2, jnp.abs(e))

        smooth = true = base
        for r in (r for r, mechanism in kinds if mechanism != "gaussian"):
            smooth, true = smooth - each(huber, r).sum(), true - each(jnp.abs, r).sum()
        return smooth, true

    def residual(v: Matrix, g: Group, heat: jax.Array) -> Matrix:
        first, *others = parts(v, g, heat)[1]
        return scaled(np.sqrt(0.6), joined(first, *others) if others else first)

    signs = tuple(map(tuple, reflections(shape).tolist()))
    return _chains.Target(density, residual, signs, q > UNROLLED)


def sample(
    key: jax.Array,
    problem: Problem,
    chains: int,
    draws: int,
    rounds: int = 1,
    tick: Callable[[float], None] = lambda share: None,
) -> Sampled:
    """Draws in the user's units, judged where they were made; one rank of scatter for all groups.

    ``rounds`` > 1 warms up longer and keeps every ``rounds``-th draw: a second try for groups that
    did not converge in the first. ``tick`` is told the share of the work that each step was.
    """
    shape = shape_of(problem)
    looped = shape.q > UNROLLED
    data = _data(problem, looped=looped)
    begin, run, finish = jax.random.split(key, 3)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(begin)))
    starts, spread = _starts(rng, problem, shape, chains)
    flowing = looped and shape.rank == shape.q and not problem.others and rounds == 1
    loud = (
        flow.sample(run, starts[..., 0], data, shape, problem.mechanism, draws, tick)
        if flowing
        else None
    )
    if loud is not None:
        positions, divergences = loud[..., None], np.zeros(1, int)
    else:
        positions, divergences = _hamiltonian(
            run, problem, starts, spread, data, draws, rounds, tick
        )
    user = _finish(finish, positions, data, problem.units.from_box, shape)
    keep = latent.fits(shape, draws * chains * len(problem.n))
    told = divergences, np.asarray(positions) if keep else None
    if jax.default_backend() == "cpu":
        return Sampled(np.asarray(user), *diagnose(np.asarray(user)), *told)
    rhat, ess = _diagnose(user)
    return Sampled(np.asarray(user), np.asarray(rhat), np.asarray(ess), *told)


def _hamiltonian(
    key: jax.Array,
    problem: Problem,
    starts: jax.Array,
    spread: jax.Array,
    data: Group,
    draws: int,
    rounds: int,
    tick: Callable[[float], None],
) -> tuple[jax.Array, np.ndarray]:
    """Positions (draw, coordinate, chain, group) and divergences (group), by the batched driver."""
    aim = target(shape_of(problem), problem.mechanism, *(o.mechanism for o in problem.others))
    state = _tuning.start(starts, spread, plain=aim.looped)
    slower = min(rounds, 2)
    warm = _tuning.warmup_schedule(
        rungs=2,
        rung=25 * slower,
        windows=tuple(slower * w for w in (40, 60, 100)),
    )
    steps = _pieces(warm) + _pieces(_tuning.sampling_schedule(draws * rounds))
    kept: list[jax.Array] = []
    divergences = jnp.zeros(len(problem.n), int)
    for number, schedule in enumerate(steps):
        state, (positions, diverged) = _chains.advance(
            aim, state, data, spread, jax.random.fold_in(key, number), schedule
        )
        tick(1 / len(steps))
        if not schedule.adapt[0]:
            divergences = divergences + diverged
            # Every rounds-th draw, counted across blocks.
            kept.append(positions[-(len(kept) * BLOCK) % rounds :: rounds])
        elif not steps[number + 1].adapt[0]:
            state = state._replace(log_step=state.averaged)
    return jnp.concatenate(kept)[:draws], np.asarray(divergences)


def _data(problem: Problem, *, looped: bool) -> Group:
    prior = problem.box_prior
    noise = jnp.asarray(problem.noise_scale)

    def sums(z: np.ndarray) -> jax.Array:
        return jnp.asarray(z[0] if looped else z.T[:, None])

    n = jnp.asarray(problem.n[0] if looped else problem.n[None])
    others = tuple((sums(o.z), jnp.asarray(o.noise_scale)) for o in problem.others)
    return Group(sums(problem.z), n, noise, prior, others)


def _starts(
    rng: np.random.Generator, problem: Problem, shape: Shape, chains: int
) -> tuple[jax.Array, jax.Array]:
    """Positions (coordinate, chain, group) and spreads (coordinate, group) from prior draws."""
    groups = len(problem.n)
    seen = problem.observation
    if problem.others:
        seen = averaged([seen, *problem.others])
    number = max(chains, min(PRIOR_DRAWS, PRIOR_TOTAL // groups))
    n_noise = seen.noise_scale if problem.noisy_n else None
    drawn = prior_statistics(rng, problem.n, problem.box_prior, number, shape.rank, n_noise=n_noise)
    v = drawn.coordinates(noisy_n=problem.noisy_n)
    # Many groups share one prior: then a few draws each, and their common spread, will do.
    # Its interquartile range: a vague prior has tails in which a standard deviation is an accident.
    over = 1 if number == PRIOR_DRAWS else (0, 1)
    low, high = np.quantile(v, [0.25, 0.75], axis=over, keepdims=True)
    spread = np.broadcast_to((high - low)[:, 0].T / 1.349, (v.shape[-1], groups))
    first = Statistics(*(a[:, :chains] for a in drawn))
    moved = towards(rng, first, seen.z, seen.noise_scale)
    v = moved.coordinates(noisy_n=problem.noisy_n)
    return jnp.asarray(v.transpose(2, 1, 0)), jnp.asarray(spread)


def _pieces(schedule: _tuning.Schedule) -> list[_tuning.Schedule]:
    """Blocks of one length, so that one compilation serves all; lengths are multiples of it."""
    length = -(-len(schedule.heat) // BLOCK) * BLOCK
    padded = _tuning.Schedule(*(np.pad(a, (0, length - len(a)), mode="edge") for a in schedule))
    return [_tuning.Schedule(*(a[i : i + BLOCK] for a in padded)) for i in range(0, length, BLOCK)]


_diagnose = jax.jit(diagnose)


@partial(jax.jit, static_argnums=4)
def _finish(
    key: jax.Array,
    positions: jax.Array,
    data: Group,
    back: tuple[np.ndarray, np.ndarray],
    shape: Shape,
) -> jax.Array:
    """(θ, σ²) | s at every position (draw, coordinate, chain, group), in user's units."""
    draws, size, chains, groups = positions.shape
    if shape.q > UNROLLED:
        flat = jnp.moveaxis(positions[..., 0], 2, 0).reshape(-1, size)

        def one(now: tuple[jax.Array, jax.Array]) -> jax.Array:
            key, v = now
            return collapsed.draw_parameters(key, point(v, shape, data.n), data.prior, ())

        drawn = jax.lax.map(one, (jax.random.split(key, len(flat)), flat))
        drawn = drawn.T.reshape(-1, 1, chains, draws)
    else:
        at = point(entries(jnp.moveaxis(positions, 0, 1), 1), shape, data.n)
        prior = data.prior.entries()
        drawn = collapsed.draw_parameters(key, at, prior, (draws, chains, groups))
        drawn = jnp.transpose(drawn, (0, 3, 2, 1))
    return jnp.einsum("ij,jgct->igct", back[0], drawn) + back[1][:, None, None, None]


def run(
    problem: Problem, seed: int, chains: int, draws: int, progress: Report | None = None
) -> Posterior:
    """All groups, slab by slab; those that did not converge get longer second and third tries."""
    begin, groups = time.perf_counter(), len(problem.n)
    made, todo = Collected(problem, chains, draws), np.arange(groups)
    key, lock = jax.random.key(seed), Lock()
    seconds: list[float] = []
    for attempt, rounds in enumerate(ROUNDS):
        parts = slabs.split(problem, todo, chains * draws)
        done = [0.0]

        def work(number: int, attempt: int = attempt, rounds: int = rounds) -> None:
            rows = parts[number]  # noqa: B023  # all work of one attempt ends before the next

            def tick(share: float) -> None:
                with lock:
                    done[0] += share * len(rows)  # noqa: B023
                    if progress is not None:
                        progress(round(done[0]), len(todo))  # noqa: B023

            fresh = jax.random.fold_in(jax.random.fold_in(key, attempt), number)
            some = slabs.subset(problem, slabs.padded(rows))
            part = sample(fresh, some, chains, draws, rounds, tick)
            with lock:
                made.put(rows, part)

        slabs.in_parallel(work, len(parts))
        seconds.append(round(time.perf_counter() - begin - sum(seconds), 3))
        todo = made.unconverged
        if not len(todo):
            break
    details = {
        "tries": made.tries,
        "divergences": made.divergences,
        "seconds": tuple(seconds),
    }
    more = made.latent(problem, seed)
    return assembled(problem, made.user, made.rhat, made.ess, "exact", details, more)

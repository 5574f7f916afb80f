"""Method ``clt``: the posterior of the covariates' sums and the coefficients, by Hamiltonian MC.

Covariates are integrated out exactly, the response's sums are normal given the covariates' (central
limit theorem). The law of the covariates is first taken as normal; its posterior tells the
covariates' mean and covariance, of which the law on the box is made (``covariate_nodes.py``), and
the chains go on under that. How far the coefficients move between the two is reported as the *shape
shift*: where it is large, the covariates' shape decides, which the release does not tell.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference import adaptation, hmc
from noisewise.inference.results import ESS, RHAT, Posterior
from noisewise.models.base import Progress
from noisewise.models.generalized_linear import covariate_density
from noisewise.models.generalized_linear.covariate_nodes import box_nodes, padded
from noisewise.models.generalized_linear.density import DensityData, Layout, target
from noisewise.models.generalized_linear.posterior import posterior_of
from noisewise.models.generalized_linear.problem import GeneralizedProblem, subset
from noisewise.models.generalized_linear.response_moments import NodeArrays, node_arrays
from noisewise.models.generalized_linear.starting_values import starting_values, variance_units
from noisewise.models.linear_regression import batching
from noisewise.numerics.compilation import compiled
from noisewise.numerics.convergence import diagnose_groups
from noisewise.numerics.matrices import UNROLLED, entries, listed, solve_upper, stacked

ITERATIONS_PER_CALL = 50
"""Iterations of one compiled call of the sampler (chosen)."""
ATTEMPTS = (1, 4)
"""The second attempt samples this many times as long and warms up twice as long (chosen)."""
LARGEST_BATCH = 4096
"""Most groups of a batch: each has nodes of its own (chosen)."""
FIRST_DRAWS = 300
"""Draws per chain under normal covariates, from which the box law is made (chosen)."""


class BatchDraws(NamedTuple):
    """Draws (parameter, group, chain, draw) in the user's units, and what the covariates were.

    ``shift`` (parameter, group): the shape shift; ``mean`` and ``covariance`` (group, …) of the
    covariates in the box, posterior means; ``divergences`` per group.
    """

    user: np.ndarray
    shift: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    divergences: np.ndarray


def layout_of(problem: GeneralizedProblem, *, nodes: bool) -> Layout:
    """Return the layout of a problem's coordinates."""
    return Layout(len(problem.x), problem.noisy_n, problem.link, problem.mechanism, nodes)


def sample(
    key: jax.Array,
    problem: GeneralizedProblem,
    chains: int,
    draws: int,
    rounds: int = 1,
    tick: Callable[[float], None] = lambda share: None,
) -> BatchDraws:
    """Draw from the posterior of one batch of groups.

    Args:
        key: the source of randomness.
        problem: of the batch.
        chains: independent chains per group.
        draws: kept per chain.
        rounds: above 1, warms up longer and keeps every ``rounds``-th draw.
        tick: called with the share of the work that each step was.
    """
    begin, first, second = jax.random.split(key, 3)
    layout = layout_of(problem, nodes=False)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(begin)))
    starts, spread = (jnp.asarray(a) for a in starting_values(rng, problem, layout, chains))
    data = density_data(problem, None)
    only = problem.law == "normal"
    wanted = draws if only else min(draws, FIRST_DRAWS)
    share = 1.0 if only else wanted / (wanted + draws)
    state = adaptation.start(starts, spread, plain=target(layout).looped)
    state, positions, divergences = advanced(
        first,
        target(layout),
        state,
        data,
        spread,
        wanted,
        rounds,
        lambda s: tick(share * s),
        cold=True,
    )
    normal, mean, covariance = _of_positions(positions, data, problem, layout)
    if only:
        return BatchDraws(normal, np.full(normal.shape[:2], np.nan), mean, covariance, divergences)
    nodes = layout._replace(nodes=True)
    data = density_data(problem, nodes_of(problem, mean, covariance))
    state, positions, divergences = advanced(
        second, target(nodes), state, data, spread, draws, rounds, lambda s: tick((1 - share) * s),
        cold=False,
    )  # fmt: skip
    user, mean, covariance = _of_positions(positions, data, problem, nodes)
    return BatchDraws(user, shape_shift(normal, user), mean, covariance, divergences)


def shape_shift(normal: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Return how far medians (parameter, group) move from one law to the other, in deviations."""
    moved = np.median(box, axis=(2, 3)) - np.median(normal, axis=(2, 3))
    low, high = np.quantile(box, [0.25, 0.75], axis=(2, 3))
    return np.asarray(np.abs(moved) / np.maximum((high - low) / 1.349, 1e-300))


def advanced(
    key: jax.Array,
    aim: hmc.Target,
    state: adaptation.ChainState,
    data: Any,
    spread: jax.Array,
    draws: int,
    rounds: int,
    tick: Callable[[float], None],
    *,
    cold: bool,
) -> tuple[adaptation.ChainState, jax.Array, np.ndarray]:
    """Return the state, positions (draw, coordinate, chain, group) and divergences (group)."""
    slower = min(rounds, 2)
    if cold:
        windows = tuple(slower * w for w in (60, 100, 140))
        warm = adaptation.warmup_schedule(rungs=3, rung=25 * slower, windows=windows)
    else:  # The chains are there already, and so is their metric.
        warm = adaptation.warmup_schedule(rungs=1, rung=1, windows=(49 * slower, 50 * slower))
        warm = warm._replace(remeasure=np.zeros_like(warm.remeasure))
    steps = [
        block
        for schedule in (warm, adaptation.sampling_schedule(draws * rounds))
        for block in adaptation.in_blocks(schedule, ITERATIONS_PER_CALL)
    ]
    kept: list[jax.Array] = []
    divergences = jnp.zeros(state.position.shape[-1], int)
    for number, schedule in enumerate(steps):
        state, (positions, diverged) = hmc.advance(
            aim, state, data, spread, jax.random.fold_in(key, number), schedule
        )
        tick(1 / len(steps))
        if not schedule.adapt[0]:
            divergences = divergences + diverged
            kept.append(positions[-(len(kept) * ITERATIONS_PER_CALL) % rounds :: rounds])
        elif not steps[number + 1].adapt[0]:
            state = state._replace(log_step=state.averaged)
    return state, jnp.concatenate(kept)[:draws], np.asarray(divergences)


def density_data(problem: GeneralizedProblem, nodes: NodeArrays | None) -> DensityData:
    """Return the data of a batch, or, where looped, of its only group without batch axes."""
    looped = len(problem.x) + 1 > UNROLLED

    def sums(z: np.ndarray) -> jax.Array:
        return jnp.asarray(z[0] if looped else z.T[:, None])

    def number(value: float) -> jax.Array:
        return jnp.asarray(value, jnp.float64)

    n = jnp.asarray(problem.n[0] if looped else problem.n[None])
    return DensityData(
        sums(problem.covariates), sums(problem.response), n, number(problem.noise_scale),
        sums(variance_units(problem)), number(problem.units.centre[-1]),
        number(problem.units.half[-1]), number(problem.level), number(problem.level_sd),
        number(problem.slope_sd), nodes,
    )  # fmt: skip


def nodes_of(problem: GeneralizedProblem, mean: np.ndarray, covariance: np.ndarray) -> NodeArrays:
    """Return the nodes of every group's covariates, as many for each."""
    groups = [box_nodes(m, c, problem.indicators) for m, c in zip(mean, covariance, strict=True)]
    # A new size is a compilation, so there are few: powers of two.
    size = 2 ** max(5, int(max(len(g.weight) for g in groups) - 1).bit_length())
    arrays = [node_arrays(padded(g, size)) for g in groups]
    if len(problem.x) + 1 > UNROLLED:
        return NodeArrays(*(jnp.asarray(a) for a in arrays[0]))
    return NodeArrays(*(jnp.asarray(np.stack(a, axis=-1)) for a in zip(*arrays, strict=True)))


def _of_positions(
    positions: jax.Array, data: DensityData, problem: GeneralizedProblem, layout: Layout
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return draws in the user's units, and posterior means of the covariates' moments."""
    box, mean, second = (np.asarray(a) for a in _box_draws(positions, data, layout))
    covariance = second - mean[:, None] * mean[None]
    return _in_user_units(box, problem), mean.T, np.moveaxis(covariance, -1, 0)


@partial(compiled, static_argnums=2)
def _box_draws(
    positions: jax.Array, data: DensityData, layout: Layout
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return (slopes, intercept) in the box (parameter, draw, chain, group), and moments of x.

    Moments are means over draws: of x̄ and of x̄ x̄ᵀ + S/n.
    """
    d, first = layout.d, layout.covariates

    def one(v: Any, unit: Any, n: jax.Array) -> tuple[Any, ...]:
        at, _ = covariate_density.covariates(v[:first], d, n, unit, noisy_n=layout.noisy_n)
        slopes = solve_upper(at.factor, v[first + 1 : first + 1 + d])
        intercept = v[first] - sum(s * m for s, m in zip(slopes, at.mean, strict=True))
        second = [
            [sum(at.factor[i, k] * at.factor[j, k] for k in range(min(i, j) + 1))
             + at.mean[i] * at.mean[j] for j in range(d)] for i in range(d)
        ]  # fmt: skip
        return [*slopes, intercept], list(at.mean), second

    if d + 1 > UNROLLED:
        return _looped_box_draws(positions[..., 0], data, layout)
    v = entries(jnp.moveaxis(positions, 0, 1), 1)
    theta, mean, second = one(v, entries(data.unit, 1), data.n)
    return (
        stacked(listed(theta)),
        _average(mean),
        jnp.stack([_average(row) for row in second]),
    )


def _average(values: list[jax.Array]) -> jax.Array:
    """Return means over draws and chains."""
    return jnp.stack([value.mean(axis=(0, 1)) for value in values])


def _looped_box_draws(
    positions: jax.Array, data: DensityData, layout: Layout
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the same of one group of many covariates, positions (draw, coordinate, chain)."""
    d, first = layout.d, layout.covariates

    def one(v: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        at, _ = covariate_density.covariates(
            v[:first], d, data.n, data.unit, noisy_n=layout.noisy_n
        )
        second = at.factor @ at.factor.T
        slopes = solve_upper(at.factor, v[first + 1 : first + 1 + d])
        theta = jnp.append(slopes, v[first] - slopes @ at.mean)
        return theta, at.mean, second + jnp.outer(at.mean, at.mean)

    theta, mean, second = jax.vmap(jax.vmap(one, 1))(positions)
    return (
        jnp.moveaxis(theta, -1, 0)[..., None],
        mean.mean(axis=(0, 1))[:, None],
        second.mean(axis=(0, 1))[..., None],
    )


def _in_user_units(box: np.ndarray, problem: GeneralizedProblem) -> np.ndarray:
    """Return draws (parameter, group, chain, draw) in the user's units and the user's order."""
    d = len(problem.x)
    slopes = np.empty_like(box[:d])
    slopes[problem.order] = box[:d]
    half, centre = problem.units.half[:d], problem.units.centre[:d]
    slopes /= half[:, None, None, None]
    intercept = box[d] - np.tensordot(centre, slopes, axes=1)
    return np.moveaxis(np.concatenate([slopes, intercept[None]]), (1, 2, 3), (3, 2, 1))


def _batches(groups: np.ndarray, d: int) -> list[np.ndarray]:
    """Return batches of groups; few groups go one by one through a CPU, as do large ones."""
    few = jax.default_backend() == "cpu" and len(groups) < batching.MIN_BATCHED
    sizes = [size for size in batching.batch_sizes() if size <= min(LARGEST_BATCH, len(groups))]
    largest = 1 if few or d + 1 > UNROLLED else max(sizes[-1], batching.batch_sizes()[1])
    return [groups[i : i + largest] for i in range(0, len(groups), largest)]


def run(
    problem: GeneralizedProblem,
    seed: int,
    chains: int,
    draws: int,
    progress: Progress | None = None,
) -> Posterior:
    """Sample all groups in batches; those that did not converge get a longer attempt."""
    begin, groups, d = time.perf_counter(), len(problem.n), len(problem.x)
    user = np.empty((d + 1, groups, chains, draws))
    rhat, ess, shift = (np.full((d + 1, groups), np.nan) for _ in range(3))
    mean, covariance = np.empty((groups, d)), np.empty((groups, d, d))
    tries, divergences = np.zeros(groups, int), np.zeros(groups, int)
    key, lock, todo = jax.random.key(seed), Lock(), np.arange(groups)
    seconds: list[float] = []
    for attempt, rounds in enumerate(ATTEMPTS):
        batches = _batches(todo, d)
        done = [0.0]

        def work(number: int, attempt: int = attempt, rounds: int = rounds) -> None:
            rows = batches[number]  # noqa: B023  # all work of one attempt ends before the next

            def tick(share: float) -> None:
                with lock:
                    done[0] += share * len(rows)  # noqa: B023
                    if progress is not None:
                        progress(round(done[0]), len(todo))  # noqa: B023

            fresh = jax.random.fold_in(jax.random.fold_in(key, attempt), number)
            some = subset(replace(problem, keys=None), batching.padded(rows))
            batch = sample(fresh, some, chains, draws, rounds, tick)
            count = len(rows)
            judged = [diagnose_groups(values[:count]) for values in batch.user]
            with lock:
                user[:, rows], shift[:, rows] = batch.user[:, :count], batch.shift[:, :count]
                rhat[:, rows], ess[:, rows] = (np.stack(s) for s in zip(*judged, strict=True))
                mean[rows], covariance[rows] = batch.mean[:count], batch.covariance[:count]
                divergences[rows] = batch.divergences[:count]
                tries[rows] += 1

        batching.in_parallel(work, len(batches))
        seconds.append(round(time.perf_counter() - begin - sum(seconds), 3))
        todo = np.flatnonzero(~((rhat < RHAT) & (ess >= ESS)).all(axis=0))
        if not len(todo):
            break
    details = {
        "tries": tries, "divergences": divergences, "seconds": tuple(seconds),
        "hidden": list(problem.hidden),
    }  # fmt: skip
    return posterior_of(problem, user, rhat, ess, "clt", details, shift, mean, covariance)

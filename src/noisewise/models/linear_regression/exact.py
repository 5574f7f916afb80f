"""Method ``exact``: the collapsed posterior, sampled without approximation.

The statistic s is sampled by ``inference.hmc`` in coordinates where every point is valid, then
(θ, σ²) | s is drawn exactly. Laplace noise has a kink per component, which a leapfrog integrator
cannot see; trajectories follow a Huber surrogate and are accepted under the true density.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache, partial
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference import adaptation, hmc
from noisewise.inference.combine import averaged
from noisewise.inference.results import Posterior
from noisewise.inference.summaries import GroupSummaries
from noisewise.models.base import Progress
from noisewise.models.linear_regression import (
    batching,
    collapsed,
    kinked_hmc,
    posterior_draws,
    scale_free,
)
from noisewise.models.linear_regression.batching import (
    BatchDraws,
    Collected,
    CollectedDraws,
    CollectedSummaries,
    shape_of,
)
from noisewise.models.linear_regression.coordinates import (
    Shape,
    point,
    reflections,
    released,
    reordered_coordinates,
)
from noisewise.models.linear_regression.initial_values import (
    DrawnStatistics,
    prior_statistics,
    towards,
)
from noisewise.models.linear_regression.posterior_draws import (
    draw_coefficients,
    latent_fit,
    posterior_from_user,
)
from noisewise.models.linear_regression.prior_check import hidden_columns
from noisewise.models.linear_regression.problem import RegressionProblem, reordered, subset
from noisewise.numerics.compilation import compiled, placed
from noisewise.numerics.convergence import diagnose
from noisewise.numerics.gram_packing import number_of_sums
from noisewise.numerics.matrices import (
    UNROLLED,
    Matrix,
    dot,
    each,
    entries,
    is_entries,
    joined,
    scaled,
    stacked,
)

PRIOR_DRAWS = 64
"""Draws from the prior per group, from which the spread of the coordinates is taken (chosen)."""
MAX_PRIOR_DRAWS = 2**16
"""Such draws of a batch in all; where groups are many, each has fewer (chosen)."""
ITERATIONS_PER_CALL = 50
"""Iterations of one compiled call of the sampler (chosen)."""
ATTEMPTS = (1, 4, 4)
"""First, second and third attempts sample this many times as long, and later ones warm up twice as
long (chosen)."""
MANY_COLUMNS_REACH = 5.0
"""Length of a trajectory where many columns have unknown scales, in standard deviations: at 2.5
σ² has a third of the effective draws (docs/evidence-real-tables.md)."""
MANY_COLUMNS_ACCEPTANCE = 0.65
"""Acceptance there, about the best for long trajectories (A. Beskos et al., "Optimal tuning of the
hybrid Monte Carlo algorithm", Bernoulli 19, 2013)."""
INFORMATION_SHARE = 0.6
"""Share of the residuals' squared slope that is taken for the curvature of the data's part, whose
kinks have none of their own (chosen)."""


class DensityData(NamedTuple):
    """Data as the density reads them: trailing axes (chain, group), or none where looped.

    ``prior``: None where every column's scale is unknown (``scale_free.py``), and ``unit`` then the
    noise of every column's variance. ``others``: sums and noise scales of further releases of the
    same records.
    """

    z: jax.Array
    n: jax.Array
    noise: jax.Array
    prior: collapsed.BoxPrior | None
    others: tuple[tuple[jax.Array, jax.Array], ...] = ()
    unit: jax.Array | None = None


def _plain(v: Matrix, data: DensityData, shape: Shape) -> tuple[Matrix, jax.Array]:
    """Return plain coordinates of the sampler's own, and the log volume."""
    if data.unit is None:
        return v, jnp.zeros(())
    unit = entries(data.unit, 1) if is_entries(v) else data.unit
    return scale_free.plain_coordinates(v, shape, unit)


@lru_cache(maxsize=64)
def target(shape: Shape, *mechanisms: str) -> hmc.Target:
    """Return the distribution of the coordinates, for the sampler.

    Cached, because a compiled block is tied to the functions it was traced with.

    Args:
        shape: of the statistic.
        mechanisms: one for each release of the records; usually there is one.
    """
    q = shape.q
    components = (number_of_sums(q) + shape.noisy_n) * len(mechanisms)
    # The Huber surrogate is off by knee/2 at most in every kink: the more kinks, the smaller.
    knee = min(0.5, (1.5 / components) ** (1 / 3))

    def parts(v: Matrix, g: DensityData, heat: jax.Array) -> tuple[jax.Array, list[Matrix]]:
        v, volume = _plain(v, g, shape)
        at = point(v, shape, g.n)
        prior, scales = scale_free.prior_at(at, v, shape, g.prior)
        base = volume + scales + collapsed.log_prior_predictive(at, prior, noisy_n=shape.noisy_n)
        sums = released(at, noisy_n=shape.noisy_n)

        def apart(z: jax.Array, noise: jax.Array) -> Matrix:
            wanted = entries(z, 1) if is_entries(v) else z
            return scaled(1 / (noise * heat), sums - wanted)

        return base, [apart(g.z, g.noise), *(apart(z, noise) for z, noise in g.others)]

    def density(v: Matrix, g: DensityData, heat: jax.Array) -> tuple[jax.Array, jax.Array]:
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

    def residual(v: Matrix, g: DensityData, heat: jax.Array) -> Matrix:
        first, *others = parts(v, g, heat)[1]
        return scaled(np.sqrt(INFORMATION_SHARE), joined(first, *others) if others else first)

    signs = tuple(map(tuple, reflections(shape).tolist()))
    if q <= UNROLLED or not shape.scale_free:
        return hmc.Target(density, residual, signs, q > UNROLLED)
    reach, acceptance = MANY_COLUMNS_REACH, MANY_COLUMNS_ACCEPTANCE
    return hmc.Target(density, residual, signs, True, reach=reach, acceptance=acceptance)


def sample(
    key: jax.Array,
    problem: RegressionProblem,
    chains: int,
    draws: int,
    rounds: int = 1,
    tick: Callable[[float], None] = lambda share: None,
) -> BatchDraws:
    """Draw from the posterior of one batch, in the user's units, with diagnostics.

    Args:
        key: the source of randomness.
        problem: groups whose scatters have one rank.
        chains: independent chains per group.
        draws: kept per chain.
        rounds: above 1, warms up longer and keeps every ``rounds``-th draw: a second attempt at
            groups that did not converge in the first.
        tick: called with the share of the work that each step was.
    """
    shape = shape_of(problem)
    looped = shape.q > UNROLLED
    # How long chains take depends on the order of the columns: see scale_free.py.
    # Few columns gain little, and draws of a group must not depend on those beside it.
    sort = shape.scale_free and shape.rank == shape.q and looped
    order = scale_free.visible_first(problem) if sort else np.arange(shape.q - 1)
    problem = reordered(problem, order) if sort else problem
    back = np.append(np.argsort(order), [shape.q - 1, shape.q])
    data = _data(problem, looped=looped)
    begin, run, finish = jax.random.split(key, 3)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(begin)))
    starts, spread = _starts(rng, problem, shape, chains)
    kinked = looped and shape.rank == shape.q and not problem.others and rounds == 1
    only = None
    if kinked:
        plain = _plain_positions(starts[None], data, shape)[0, ..., 0]
        only = kinked_hmc.sample(run, plain, data, shape, problem.mechanism, draws, tick)
    if only is not None:
        positions, divergences = only[..., None], np.zeros(1, int)
    else:
        positions, divergences = _hamiltonian(
            run, problem, starts, spread, data, draws, rounds, tick
        )
        positions = _plain_positions(positions, data, shape)
    user = draw_coefficients(
        finish, positions, data.n, data.prior, shape, problem.units.from_box, problem.cuts
    )
    keep = latent_fit(shape, draws * chains * len(problem.n))
    kept = np.asarray(positions) if keep else None
    if kept is not None and sort:
        kept = reordered_coordinates(kept, back[:-1], shape)
    rest = divergences, kept
    # Diagnostics are computed where the draws are: XLA's sort is slow on a CPU.
    on_cpu = jax.default_backend() == "cpu"
    rhat, ess = diagnose(np.asarray(user)) if on_cpu else _diagnose(user)
    found = [np.asarray(a)[back] if sort else np.asarray(a) for a in (user, rhat, ess)]
    return BatchDraws(found[0], found[1], found[2], *rest)


def _hamiltonian(
    key: jax.Array,
    problem: RegressionProblem,
    starts: jax.Array,
    spread: jax.Array,
    data: DensityData,
    draws: int,
    rounds: int,
    tick: Callable[[float], None],
) -> tuple[Any, np.ndarray]:
    """Return positions (draw, coordinate, chain, group) and divergences (group)."""
    aim = target(shape_of(problem), problem.mechanism, *(o.mechanism for o in problem.others))
    state = adaptation.start(starts, spread, plain=aim.looped)
    slower = min(rounds, 2)
    warm = adaptation.warmup_schedule(
        rungs=2,
        rung=25 * slower,
        windows=tuple(slower * w for w in (40, 60, 100)),
    )
    steps = [
        block
        for schedule in (warm, adaptation.sampling_schedule(draws * rounds))
        for block in adaptation.in_blocks(schedule, ITERATIONS_PER_CALL)
    ]
    # On a CPU by NumPy, which has nothing to compile.
    on_cpu = jax.default_backend() == "cpu"
    gathered, joint = (np.asarray, np.concatenate) if on_cpu else (jnp.asarray, jnp.concatenate)
    kept: list[Any] = []
    divergences: list[jax.Array] = []
    for number, schedule in enumerate(steps):
        state, (positions, diverged) = hmc.advance(
            aim, state, data, spread, jax.random.fold_in(key, number), schedule
        )
        tick(1 / len(steps))
        if not schedule.adapt[0]:
            divergences.append(diverged)
            # Every rounds-th draw, counted across blocks.
            # Copied, or the view would keep the whole block in memory.
            every = gathered(positions)[-(len(kept) * ITERATIONS_PER_CALL) % rounds :: rounds]
            kept.append(every.copy() if rounds > 1 else every)
        elif not steps[number + 1].adapt[0]:
            state = state._replace(log_step=state.averaged)
    return joint(kept)[:draws], np.sum([np.asarray(d) for d in divergences], axis=0)


def _data(problem: RegressionProblem, *, looped: bool) -> DensityData:
    """Return the data of a batch, or, where ``looped``, of its only group without batch axes."""
    prior = None if problem.scale_free else problem.box_prior

    def sums(z: np.ndarray) -> jax.Array:
        return placed(z[0] if looped else z.T[:, None])

    n = placed(problem.n[0] if looped else problem.n[None])
    others = tuple((sums(o.z), placed(o.noise_scale)) for o in problem.others)
    unit = sums(scale_free.variance_units(problem)) if problem.scale_free else None
    return DensityData(sums(problem.z), n, placed(problem.noise_scale), prior, others, unit)


def _starts(
    rng: np.random.Generator, problem: RegressionProblem, shape: Shape, chains: int
) -> tuple[jax.Array, jax.Array]:
    """Return starting positions (coordinate, chain, group) and spreads (coordinate, group)."""
    groups = len(problem.n)
    observed = problem.observation
    if problem.others:
        observed = averaged([observed, *problem.others])
    number = max(chains, min(PRIOR_DRAWS, MAX_PRIOR_DRAWS // groups))
    n_noise = observed.noise_scale if problem.noisy_n else None
    drawn = prior_statistics(rng, problem.n, problem.box_prior, number, shape.rank, n_noise=n_noise)
    v = _sampled_coordinates(rng, drawn, problem, shape)
    # Many groups share one prior: then a few draws each, and their common spread, will do.
    # By its interquartile range (1.349 deviations of a normal): a vague prior has tails in which a
    # standard deviation is an accident.
    over = 1 if number == PRIOR_DRAWS else (0, 1)
    low, high = np.quantile(v, [0.25, 0.75], axis=over, keepdims=True)
    spread = np.broadcast_to((high - low)[:, 0].T / 1.349, (v.shape[-1], groups))
    first = DrawnStatistics(*(a[:, :chains] for a in drawn))
    moved = towards(rng, first, observed.z, observed.noise_scale)
    v = _sampled_coordinates(rng, moved, problem, shape)
    return placed(v.transpose(2, 1, 0)), placed(spread)


def _sampled_coordinates(
    rng: np.random.Generator, drawn: DrawnStatistics, problem: RegressionProblem, shape: Shape
) -> np.ndarray:
    """Return what the sampler moves (group, draw, coordinate); scales start about the columns'."""
    v = drawn.coordinates(noisy_n=problem.noisy_n)
    if not shape.scale_free:
        return v
    v = scale_free.warped_coordinates(v, shape, scale_free.variance_units(problem))
    return np.concatenate([v, rng.standard_normal((*v.shape[:2], shape.q + 1))], axis=-1)


@partial(compiled, static_argnums=2)
def _plain_positions(positions: jax.Array, data: DensityData, shape: Shape) -> jax.Array:
    """Return plain coordinates of positions (draw, coordinate, chain, group)."""
    if not shape.scale_free:
        return positions
    if shape.q > UNROLLED:
        plain: jax.Array = jax.vmap(jax.vmap(lambda w: _plain(w, data, shape)[0], 1, 1))(
            positions[..., 0]
        )
        return plain[..., None]
    v, _ = _plain(entries(jnp.moveaxis(positions, 0, 1), 1), data, shape)
    return jnp.moveaxis(stacked(v), 0, 1)


_diagnose = compiled(diagnose)


def run(
    problem: RegressionProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Sample all groups in batches; those that did not converge get two longer attempts."""
    collected = CollectedDraws(problem, chains, draws)
    seconds = _attempts(problem, seed, chains, draws, progress, collected)
    details = {
        "tries": collected.tries,
        "divergences": collected.divergences,
        "seconds": seconds,
        "hidden": list(hidden_columns(problem)),
    }
    latent = collected.latent(problem, seed)
    return posterior_from_user(
        problem, collected.user, collected.rhat, collected.ess, "exact", details, latent
    )


def outline(problem: RegressionProblem) -> Posterior:
    """Return the posterior without its draws, as far as words are made of it."""
    details = {"hidden": list(hidden_columns(problem))}
    return posterior_draws.outline(problem, "exact", details)


def summarise(
    problem: RegressionProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> GroupSummaries:
    """Sample as ``run`` does, but hold the draws of a batch no longer than it takes to sum them up.

    The numbers are those of the draws that ``run`` gives.
    """
    collected = CollectedSummaries(problem)
    _attempts(problem, seed, chains, draws, progress, collected)
    return collected.summaries


def _attempts(
    problem: RegressionProblem,
    seed: int,
    chains: int,
    draws: int,
    progress: Progress | None,
    collected: Collected[Any],
) -> tuple[float, ...]:
    """Sample all groups, and again those that did not converge; return the seconds of each try."""
    begin, todo = time.perf_counter(), np.arange(len(problem.n))
    key, lock = jax.random.key(seed), Lock()
    seconds: list[float] = []
    for attempt, rounds in enumerate(ATTEMPTS):
        batches = batching.split(problem, todo, chains * draws)
        done = [0.0]

        def work(number: int, attempt: int = attempt, rounds: int = rounds) -> None:
            rows = batches[number]  # noqa: B023  # all work of one attempt ends before the next

            def tick(share: float) -> None:
                with lock:
                    done[0] += share * len(rows)  # noqa: B023
                    if progress is not None:
                        progress(round(done[0]), len(todo))  # noqa: B023

            fresh = jax.random.fold_in(jax.random.fold_in(key, attempt), number)
            some = subset(problem, batching.padded(rows))
            batch = collected.taken(sample(fresh, some, chains, draws, rounds, tick))
            with lock:
                collected.put(rows, batch)

        batching.in_parallel(work, len(batches))
        seconds.append(round(time.perf_counter() - begin - sum(seconds), 3))
        todo = collected.unconverged
        if not len(todo):
            break
    return tuple(seconds)

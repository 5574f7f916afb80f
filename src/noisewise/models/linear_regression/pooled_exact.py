"""Pooled regressions: sweeps over all groups and their population, until the population is known.

One sweep, in each chain with a population of its own: a Hamiltonian trajectory of every group given
the population (``pooled_density.py``); then the moves of ``pooled_moves.py``: conjugate draws,
random walks with the records fixed, and random walks that carry the records along.

After two heated rungs with the population fixed, windows adapt steps and metrics of the groups as
in ``exact.py``; the proposals of the population have the covariance of its recent draws in all
chains and are scaled, per chain, to an acceptance of 30 % (H. Robbins, S. Monro, "A stochastic
approximation method", 1951), in the warm-up only.

Sweeps go on, doubling, until the population has R-hat < 1.02 and 200 effective draws, and groups
have settled too; thinned draws are kept. Arithmetic that fails keeps old values, and is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference import adaptation, hmc
from noisewise.inference.population import POPULATION_ESS, POPULATION_RHAT
from noisewise.models.linear_regression import pooled_density, pooled_moves, pooled_population
from noisewise.models.linear_regression.coordinates import Shape, full_rank
from noisewise.models.linear_regression.pooled_density import GroupData, PooledData
from noisewise.models.linear_regression.pooled_moves import Groups, Setting
from noisewise.models.linear_regression.pooled_population import PopulationPrior, PopulationShape
from noisewise.models.linear_regression.pooled_start import (
    PooledProblem,
    start_law,
    starting_positions,
)
from noisewise.numerics.compilation import compiled
from noisewise.numerics.convergence import diagnose
from noisewise.numerics.matrices import entries, stacked

SWEEPS_PER_CALL = 50
"""Sweeps of one compiled call (chosen)."""
FEWEST_SWEEPS = 1000
"""Sweeps after which convergence is first judged (chosen)."""
MAX_SWEEPS = 16_000
"""Sweeps at the most (chosen: 4,000 suffice for 500 simulated groups, and of real tables whose
residuals the noise hides some have not converged after 8,000)."""
RUNG = 25
"""Sweeps of either heated rung, with the population fixed (chosen)."""
WINDOWS = (60, 100, 140)
"""Windows of adaptation (chosen)."""
ROUNDS = 2
"""Rounds of moves that carry records along, in a sweep (chosen)."""
MAX_JUDGED = 1000
"""Groups that are asked whether they have settled (chosen)."""
MAX_DOUBLES = 2**27
"""Numbers of the groups' draws that are kept in double precision: a gigabyte (chosen). More are
kept in single precision, whose rounding is far below the deviation of so many groups' noise."""
ACCEPTANCE = 0.3
"""Acceptance that the scales of proposals aim at (about that of the best random walks)."""


class Walk(NamedTuple):
    """A random walk: what of the population moves, in how many steps, how often in a sweep."""

    parts: tuple[str, ...]
    steps: int
    rounds: int = 1


_FIT = ("coefficients", "factor", "parent_factor", "size_exponent")
_SCATTER = ("x_scale", "x_df")

_UNITS = ("x_units", "y_units")

WALKS = {
    "fixed_groups": Walk(_UNITS, 10),
    "fixed_fit": Walk(_FIT, 8),
    "fixed_covariates": Walk(_SCATTER, 4),
    "carried_level": Walk(("level", "level_sd", "y_units"), 1, ROUNDS),
    "carried_covariates": Walk(("x_mean", "x_spread", *_SCATTER, "x_units"), 3, ROUNDS),
    "carried_units": Walk(("x_units",), 1, ROUNDS),
    "carried_fit": Walk((*_FIT, "y_units"), 3, ROUNDS),
}
"""The random walks of a sweep, by name in ``pooled_moves.py`` (numbers chosen)."""


def _walk_variates(
    key: jax.Array, shape: PopulationShape, chains: int
) -> dict[str, tuple[jax.Array, jax.Array]]:
    """Draw normals (round, step, block, chain) and log uniforms of all walks of a sweep together.

    Every sampler of its own would have to be compiled.
    """
    sizes = {
        name: (walk.rounds, walk.steps, len(shape.block(*walk.parts)))
        for name, walk in WALKS.items()
    }
    first, second = jax.random.split(key)
    white = jax.random.normal(first, (sum(a * b * c for a, b, c in sizes.values()), chains))
    uniform = jax.random.uniform(second, (sum(a * b for a, b, _ in sizes.values()), chains))
    variates, at, place = {}, 0, 0
    for name, (rounds, steps, block) in sizes.items():
        many = rounds * steps
        own = white[at : at + many * block].reshape(rounds, steps, block, chains)
        logs = jnp.log(uniform[place : place + many]).reshape(rounds, steps, chains)
        variates[name] = own, logs
        at, place = at + many * block, place + many
    return variates


class SweepState(NamedTuple):
    """All chains: groups (``ChainState``), φ (coordinate, chain), ω (p, chain, parent).

    ``log_scale`` (walk, chain) of the proposals, ``tuned`` how often they were changed since their
    covariance was; ``failures`` counts arithmetic that failed.
    """

    chain: adaptation.ChainState
    phi: jax.Array
    white_parents: jax.Array
    log_scale: jax.Array
    tuned: jax.Array
    failures: jax.Array


class SweepPlan(NamedTuple):
    """What happens in each sweep: to the groups' sampler, and whether the population moves."""

    schedule: adaptation.Schedule
    free: Any
    adapt: Any


class SweepDraws(NamedTuple):
    """Draws (sweep, …): θ (p, chain, group), log σ² (chain, group), φ; divergences by group."""

    theta: jax.Array
    log_variance: jax.Array
    phi: jax.Array


def setting_of(problem: PooledProblem) -> Setting:
    """Return the shapes and mechanisms of a problem."""
    regression = problem.regression
    d = len(regression.x)
    population = PopulationShape(d, problem.regressors.shape[1], problem.parents is not None)
    mechanisms = (regression.mechanism, *(o.mechanism for o in regression.others))
    return Setting(full_rank(d + 1, noisy_n=regression.noisy_n), population, mechanisms)


def _data(problem: PooledProblem) -> GroupData:
    """Return what was released, as the density reads it."""
    regression = problem.regression
    return GroupData(
        jnp.asarray(regression.z.T[:, None]),
        jnp.asarray(regression.n[None]),
        jnp.asarray(regression.noise_scale),
        jnp.asarray(problem.regressors.T[:, None]),
        jnp.asarray(problem.log_size[None]),
        None if problem.parents is None else jnp.asarray(problem.parents),
        tuple((jnp.asarray(o.z.T[:, None]), jnp.asarray(o.noise_scale)) for o in regression.others),
    )


@partial(compiled, static_argnums=0)
def advance(
    setting: Setting,
    state: SweepState,
    data: GroupData,
    prior: PopulationPrior,
    spread: jax.Array,
    steps: dict[str, jax.Array],
    key: jax.Array,
    plan: SweepPlan,
) -> tuple[SweepState, tuple[SweepDraws, jax.Array]]:
    """Run the sweeps of a plan.

    Args:
        setting: shapes and mechanisms.
        state: of all chains.
        data: what was released.
        prior: of the population.
        spread: scales of the groups' coordinates (coordinate, group).
        steps: factors of the proposals' covariances, by walk.
        key: the source of randomness.
        plan: of the sweeps.

    Returns:
        The state after them; the draws, and divergences (group).
    """
    aim = pooled_density.target(setting.shape, setting.mechanisms)
    keys = jax.random.split(key, plan.free.shape[0])

    def body(state: SweepState, now: tuple[jax.Array, SweepPlan]) -> tuple[SweepState, Any]:
        key, plan = now
        groups_key, theta_key, moves_key = jax.random.split(key, 3)
        law = pooled_population.law_of(state.phi, setting.population)
        centre = pooled_density.centre_of(law, state.white_parents, data)
        chain, diverged = hmc.iterate(
            aim, state.chain, PooledData(data, law, centre), spread, groups_key, plan.schedule
        )
        groups = _groups(chain.position, state.white_parents, data, setting.shape)
        theta = pooled_moves.draw_theta(theta_key, groups, law, data)
        draws = SweepDraws(
            pooled_density.intercepts(theta, law.x_mean),
            pooled_density.log_variance_of(groups.xi, law),
            state.phi,
        )
        state = jax.lax.cond(
            plan.free,
            lambda s: _population_moves(
                moves_key, s._replace(chain=chain), groups, theta, setting, data, prior, steps, plan
            ),
            lambda s: s._replace(chain=chain),
            state,
        )
        return state, (draws, diverged)

    state, (draws, diverged) = jax.lax.scan(body, state, (keys, plan))
    return state, (draws, diverged.sum(axis=0))


def _groups(position: jax.Array, white: jax.Array, data: GroupData, shape: Shape) -> Groups:
    """Return the groups at a position (coordinate, chain, group)."""
    v, xi, zeta = pooled_density.position_parts(entries(position, 1), shape)
    at, _ = pooled_density.statistic(v, shape, data.n)
    return Groups(at, xi, zeta, white)


def _population_moves(
    key: jax.Array,
    state: SweepState,
    groups: Groups,
    theta: jax.Array,
    setting: Setting,
    data: GroupData,
    prior: PopulationPrior,
    steps: dict[str, jax.Array],
    plan: SweepPlan,
) -> SweepState:
    """Return the state after the moves of the population; chains in which they fail keep theirs."""
    shape, old, before = setting.population, state.chain.position, state.phi
    keys = jax.random.split(key, 5)
    chains = before.shape[1]
    variates = _walk_variates(keys[3], shape, chains)
    law = pooled_population.law_of(state.phi, shape)
    law, groups = pooled_moves.conjugate_moves(keys[0], theta, groups, law, data, prior)
    groups = pooled_moves.draw_parents(keys[1], groups, law, data)
    law = pooled_moves.draw_coefficients(keys[2], groups, law, data, prior)
    phi = pooled_population.coordinates_of(law)
    scale = state.log_scale
    accepted = jnp.zeros_like(scale)

    def walk(
        name: str, number: Any, phi: jax.Array, groups: Groups, accepted: jax.Array
    ) -> tuple[jax.Array, Groups, jax.Array]:
        place = list(WALKS).index(name)
        view = getattr(pooled_moves, name)(
            groups, pooled_population.law_of(phi, shape), data, setting
        )
        step = steps[name][..., None] * jnp.exp(scale[place])
        white, log_uniform = (a[number] for a in variates[name])
        phi, chance = pooled_moves.random_walk(
            white, log_uniform, phi, view, shape.block(*WALKS[name].parts), step, prior, shape
        )
        groups = view.groups(pooled_population.law_of(phi, shape))
        return phi, groups, accepted.at[place].add(chance / WALKS[name].rounds)

    phi, groups, accepted = walk("fixed_groups", 0, phi, groups, accepted)
    phi, groups, accepted = walk("fixed_fit", 0, phi, groups, accepted)
    phi, groups, accepted = walk("fixed_covariates", 0, phi, groups, accepted)

    def round_of(number: int, now: Any) -> Any:
        phi, flat, accepted = now
        groups = _unflattened(flat, setting.shape)
        for name in ("carried_level", "carried_covariates", "carried_units", "carried_fit"):
            phi, groups, accepted = walk(name, number, phi, groups, accepted)
        return phi, _flattened(groups, old.shape[1:]), accepted

    begin = phi, _flattened(groups, old.shape[1:]), accepted
    phi, flat, accepted = jax.lax.fori_loop(0, ROUNDS, round_of, begin)
    groups = _unflattened(flat, setting.shape)
    v = pooled_density.coordinates_of(
        groups.at, entries(old, 1)[: setting.shape.statistic], setting.shape
    )
    position = jnp.concatenate([stacked(v), groups.xi[None], stacked(groups.zeta)])
    good = jnp.isfinite(phi).all(axis=0) & jnp.isfinite(position).all(axis=(0, 2))
    good = good & jnp.isfinite(groups.parents).all(axis=(0, 2))
    gain = jnp.minimum(0.5, 5 / (10 + state.tuned))
    tuned = jnp.clip(scale + gain * (accepted - ACCEPTANCE), -12.0, 3.0)
    return SweepState(
        state.chain._replace(position=jnp.where(good[:, None], position, old)),
        jnp.where(good, phi, before),
        jnp.where(good[:, None], groups.parents, state.white_parents),
        jnp.where(plan.adapt & jnp.isfinite(tuned), tuned, scale),
        state.tuned + 1,
        state.failures + (~good).sum(),
    )


def _flattened(groups: Groups, batch: tuple[int, ...]) -> tuple[Any, ...]:
    """Return groups as arrays, which a compiled loop can carry."""
    at = groups.at

    def whole(a: Any) -> jax.Array:
        return jnp.broadcast_to(jnp.asarray(a, float), batch)

    def arrays(m: np.ndarray) -> jax.Array:
        return jnp.stack([whole(e) for e in m.ravel()])

    d = len(at.x_mean)
    below = at.x_factor[np.tril_indices(d)]
    parts = (at.x_mean, below, at.fit, groups.zeta)
    return (*map(arrays, parts), whole(at.rss), whole(at.n), whole(groups.xi), groups.parents)


def _unflattened(flat: tuple[Any, ...], shape: Shape) -> Groups:
    """Return groups of arrays."""
    x_mean, below, fit, zeta, rss, n, xi, parents = flat
    d = shape.q - 1
    factor = np.zeros((d, d)).astype(object)
    factor[np.tril_indices(d)] = entries(below, 1)
    at = pooled_density.GroupStatistic(entries(x_mean, 1), factor, entries(fit, 1), rss, n)
    return Groups(at, xi, entries(zeta, 1), parents)


def first_steps(phi: np.ndarray, shape: PopulationShape) -> np.ndarray:
    """Return guessed deviations (coordinate) of φ, for the first proposals."""
    places = shape.blocks()
    deviations = np.full(len(phi), 0.3)
    size = np.abs(phi).mean(axis=1)
    spread = size[places["factor"][: shape.p]]
    deviations[places["coefficients"]] = 0.3 * np.tile(spread, shape.k)
    for name, number in (("factor", shape.p), ("parent_factor", shape.p), ("x_spread", shape.d)):
        own = places[name][:number]
        deviations[own] = 0.5 * size[own]
    deviations[places["x_mean"]] = 0.3 * size[places["x_spread"][: shape.d]]
    deviations[places["x_df"]] = 1.0
    deviations[np.concatenate([places["x_units"], places["y_units"]])] = 0.5
    return deviations


def _proposal_steps(covariance: np.ndarray, shape: PopulationShape) -> dict[str, jax.Array]:
    """Return the factors of proposals, by walk."""
    steps = {}
    for name, walk in WALKS.items():
        block = shape.block(*walk.parts)
        own = covariance[np.ix_(block, block)]
        steps[name] = jnp.asarray(np.linalg.cholesky(own) * 2.38 / np.sqrt(len(block)))
    return steps


def _learnt_covariance(history: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Return the covariance of φ (sweep, coordinate, chain), shrunk towards guessed deviations."""
    flat = np.moveaxis(history, 1, 0).reshape(history.shape[1], -1)
    own = np.cov(flat)
    deviations = np.sqrt(np.maximum(np.diag(own), 1e-8 * guess**2))
    weight = flat.shape[1] / (flat.shape[1] + 20 * len(guess))
    return np.asarray(weight * own + (1 - weight) * np.diag(deviations**2))


@dataclass
class PooledDraws:
    """Draws in the box: θ (draw, p, chain, group), log σ² (draw, chain, group), φ (draw, …, chain).

    ``rhat`` and ``ess`` of the numbers that were judged.
    """

    theta: np.ndarray
    log_variance: np.ndarray
    phi: np.ndarray
    rhat: np.ndarray
    ess: np.ndarray
    sweeps: int
    divergences: np.ndarray
    failures: int
    seconds: tuple[float, float]


def sample(
    problem: PooledProblem,
    seed: int,
    chains: int,
    draws: int,
    tick: Callable[[int], None] = lambda sweeps: None,
    judged: Callable[[np.ndarray], np.ndarray] = lambda phi: phi.transpose(1, 2, 0),
    settled: Callable[[np.ndarray, np.ndarray], bool] = lambda theta, log_variance: True,
    max_sweeps: int = MAX_SWEEPS,
    fixed: jax.Array | None = None,
) -> PooledDraws:
    """Sample groups and population together, until the population is known.

    Args:
        problem: groups, features and hyperprior.
        seed: of the analyst's own randomness.
        chains: independent populations.
        draws: kept per chain.
        tick: called with the number of sweeps done, after every block.
        judged: the numbers (…, chain, draw) whose convergence counts, of φ (draw, coordinate,
            chain).
        settled: tells of θ and log σ² of some groups whether these need no more sweeps.
        max_sweeps: after which it stops anyway.
        fixed: coordinates φ (coordinate, chain) of a population that is known, and does not move.
    """
    begin = time.perf_counter()
    setting, data = setting_of(problem), _data(problem)
    rng = np.random.default_rng([seed, 13])
    key = jax.random.key(seed)
    state, spread = start(rng, problem, setting, chains)
    if fixed is not None:
        state = state._replace(phi=fixed)
    free = fixed is None
    state, steps = _warm_up(key, state, problem, setting, data, spread, tick, free=free)
    warm = time.perf_counter() - begin
    first = -(-FEWEST_SWEEPS // draws)
    numbers = draws * chains * len(problem.regression.n) * (len(problem.regression.x) + 2)
    kept = _Kept(draws, first, np.float64 if numbers <= MAX_DOUBLES else np.float32)
    divergences = jnp.zeros(len(problem.regression.n), int)
    plan = _plan(adaptation.sampling_schedule(SWEEPS_PER_CALL), free=free, adapt=False)
    number = 0
    while True:
        fresh = jax.random.fold_in(jax.random.fold_in(key, 1), number)
        state, (block, diverged) = advance(
            setting, state, data, problem.prior, spread, steps, fresh, plan
        )
        number += 1
        divergences = divergences + diverged
        kept.add(block)
        tick(kept.sweeps)
        if kept.full:
            rhat, ess = diagnose(judged(kept.phi()))
            known = (rhat < POPULATION_RHAT).all() and (ess >= POPULATION_ESS).all()
            known = known and settled(*kept.some(MAX_JUDGED))
            if known or fixed is not None or 2 * kept.stride * draws > max_sweeps:
                break
            kept.thin()
    theta, log_variance, phi_kept = kept.arrays()
    kept.groups.clear()
    seconds = round(warm, 3), round(time.perf_counter() - begin - warm, 3)
    return PooledDraws(
        theta, log_variance, phi_kept, rhat, ess, kept.sweeps, np.asarray(divergences),
        int(state.failures), seconds,
    )  # fmt: skip


class _Kept:
    """Draws kept of the sweeps so far: every stride-th; those of the groups as ``dtype``."""

    def __init__(self, draws: int, stride: int, dtype: type[np.floating]) -> None:
        self.draws, self.stride, self.dtype, self.sweeps = draws, stride, dtype, 0
        self.groups: list[tuple[np.ndarray, ...]] = []

    def add(self, block: SweepDraws) -> None:
        """Keep a block."""
        begin = -(self.sweeps + 1) % self.stride
        rows = slice(begin, None, self.stride)
        theta, log_variance = (a[rows].astype(self.dtype) for a in block[:2])
        arrays = [np.asarray(a) for a in (theta, log_variance, block.phi[rows])]
        # Copies: views would keep the draws that are dropped later.
        self.groups += (tuple(map(np.array, row)) for row in zip(*arrays, strict=True))
        self.sweeps += len(block.phi)

    @property
    def full(self) -> bool:
        """Return whether as many draws are kept as were asked for."""
        return len(self.groups) >= self.draws

    def thin(self) -> None:
        """Drop every second draw, and keep half as many from now on."""
        self.groups = self.groups[1::2]
        self.stride *= 2

    def phi(self) -> np.ndarray:
        """Return the coordinates of the population that are kept, draws first."""
        return np.stack([row[2] for row in self.groups[: self.draws]])

    def some(self, number: int) -> tuple[np.ndarray, ...]:
        """Return what is kept of θ and log σ² of so many groups, spread evenly."""
        groups = self.groups[0][1].shape[-1]
        places = np.unique(np.linspace(0, groups - 1, min(groups, number)).astype(int))
        rows = self.groups[: self.draws]
        return tuple(np.stack([row[i][..., places] for row in rows]) for i in range(2))

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return what is kept, draws first."""
        return tuple(np.stack(parts) for parts in zip(*self.groups[: self.draws], strict=True))


def start(
    rng: np.random.Generator, problem: PooledProblem, setting: Setting, chains: int
) -> tuple[SweepState, jax.Array]:
    """Return the state of chains that have not moved yet, and the groups' spreads."""
    law = start_law(rng, problem, chains)
    position, spread = starting_positions(rng, problem, law, chains)
    parents = 1 if problem.parents is None else int(problem.parents.max()) + 1
    white = rng.standard_normal((setting.population.p, chains, parents))
    state = SweepState(
        adaptation.start(position, spread),
        pooled_population.coordinates_of(law),
        jnp.asarray(white if problem.parents is not None else 0 * white),
        jnp.zeros((len(WALKS), chains)),
        jnp.zeros(()),
        jnp.zeros((), int),
    )
    return state, spread


def _plan(schedule: adaptation.Schedule, *, free: bool, adapt: bool) -> SweepPlan:
    length = len(schedule.heat)
    return SweepPlan(schedule, np.full(length, free), np.full(length, adapt))


def _warm_up(
    key: jax.Array,
    state: SweepState,
    problem: PooledProblem,
    setting: Setting,
    data: GroupData,
    spread: jax.Array,
    tick: Callable[[int], None],
    *,
    free: bool,
) -> tuple[SweepState, dict[str, jax.Array]]:
    """Return chains that have adapted, and the proposals of the population."""
    schedule = adaptation.warmup_schedule(rungs=2, rung=RUNG, windows=WINDOWS)
    guess = first_steps(np.asarray(state.phi), setting.population)
    steps = _proposal_steps(np.diag(guess**2), setting.population)
    history: list[np.ndarray] = []
    blocks = adaptation.in_blocks(schedule, SWEEPS_PER_CALL)
    for number, block in enumerate(blocks):
        moves = free and number * SWEEPS_PER_CALL >= 2 * RUNG
        fresh = jax.random.fold_in(jax.random.fold_in(key, 0), number)
        plan = _plan(block, free=moves, adapt=True)
        state, (draws, _) = advance(setting, state, data, problem.prior, spread, steps, fresh, plan)
        tick(0)
        if moves:
            history.append(np.asarray(draws.phi))
        # The last block only settles the scales.
        if len(history) > 1 and number < len(blocks) - 1:
            recent = np.concatenate(history)[-(len(history) * SWEEPS_PER_CALL * 2) // 3 :]
            steps = _proposal_steps(_learnt_covariance(recent, guess), setting.population)
            state = state._replace(tuned=jnp.zeros(()))
    chain = state.chain._replace(log_step=state.chain.averaged)
    return state._replace(chain=chain), steps

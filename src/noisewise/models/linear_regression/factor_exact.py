"""Method ``exact`` of a regression with factors.

The sums behind the noise are sampled by ``inference.hmc`` in the coordinates of
``factor_density.py``, where every point is valid; then the coefficients of the formula are drawn
given the sums.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact.statistics import CellSum
from noisewise.inference import adaptation, hmc
from noisewise.inference.results import ESS, RHAT, Posterior
from noisewise.models.base import Progress
from noisewise.models.linear_regression.exact import ATTEMPTS, ITERATIONS_PER_CALL
from noisewise.models.linear_regression.factor_coefficients import (
    draw_coefficients,
    posterior_of_factors,
)
from noisewise.models.linear_regression.factor_density import (
    MAX_FACTORED,
    FactorData,
    Moments,
    Scales,
    atoms_gram,
    column_units,
    factored,
    layout,
    moments,
    observation,
    target,
)
from noisewise.models.linear_regression.factor_prior import prior_spreads, scale_names
from noisewise.models.linear_regression.factor_problem import FactorProblem, subset
from noisewise.models.linear_regression.factor_structure import Structure, rank
from noisewise.models.linear_regression.latent_cell_counts import (
    LOG_ASSOCIATION,
    LatentCounts,
    coordinate_sizes,
    first_latent_counts,
)
from noisewise.numerics import one_blas_thread
from noisewise.numerics.compilation import compiled
from noisewise.numerics.convergence import diagnose

MAX_TOGETHER = 16
"""Groups that are sampled side by side at the most (chosen: each takes a quarter of the time that
it takes alone, and more would save little and wait for the slowest)."""


def run(
    problem: FactorProblem,
    seed: int,
    chains: int,
    draws: int,
    progress: Progress | None = None,
    attempts: tuple[int, ...] = ATTEMPTS,
) -> Posterior:
    """Sample groups side by side; those that did not converge get two longer attempts, alone."""
    begin = time.perf_counter()
    names = (*problem.x, "intercept", "sigma2")
    groups = len(problem.n)
    shape = (len(names), groups)
    user, widths = np.empty((*shape, chains, draws)), np.empty(shape)
    rhat, ess = np.empty(shape), np.empty(shape)
    tries, divergences = np.zeros(groups, int), np.zeros(groups, int)
    spreads = np.empty((groups, len(problem.structure.y_terms)))
    key = jax.random.key(seed)

    left = np.arange(groups)
    with one_blas_thread():
        for attempt, rounds in enumerate(attempts):
            done = groups - len(left)
            together = 1 if attempt else side_by_side(problem.structure, chains)
            for rows, padding in _batches(left, together):
                many = subset(problem, np.append(rows, np.repeat(rows[-1], padding)))
                fresh = jax.random.fold_in(jax.random.fold_in(key, int(rows[0])), attempt)
                told = None if progress is None else partial(_told, progress, done, rows, groups)
                positions, diverged = sample(fresh, many, chains, draws, rounds, told)
                for place, row in enumerate(rows):
                    one = subset(problem, [row])
                    at = _moments(positions[..., place], _data(one), one.structure)
                    user[:, row], widths[:, row] = draw_coefficients(
                        np.random.default_rng([seed, row, attempt]), one, at
                    )
                    rhat[:, row], ess[:, row] = (a[:, 0] for a in diagnose(user[:, [row]]))
                    spreads[row] = np.asarray(at.tau).mean(axis=(0, 1))
                    divergences[row] = diverged[place]
                    tries[row] += 1
                done += len(rows)
            left = np.flatnonzero(~((rhat < RHAT) & (ess >= ESS)).all(axis=0))
            if not len(left):
                break
    if progress is not None:
        progress(groups, groups)
    details: dict[str, Any] = {
        "tries": tries,
        "divergences": divergences,
        "seconds": (round(time.perf_counter() - begin, 3),),
        "hidden": list(hidden_columns(problem)),
        "tau": spreads,
    }
    return posterior_of_factors(problem, user, rhat, ess, widths, "exact", details)


def side_by_side(structure: Structure, chains: int) -> int:
    """Return how many groups are sampled together: no more than their matrices allow."""
    return max(1, min(MAX_FACTORED // (factored(structure) * chains), MAX_TOGETHER))


def _batches(rows: np.ndarray, together: int) -> list[tuple[np.ndarray, int]]:
    """Return batches of about one size, and how many groups each lacks of the largest."""
    parts = np.array_split(rows, -(-len(rows) // together))
    return [(part, len(parts[0]) - len(part)) for part in parts]


def _told(progress: Progress, done: int, rows: np.ndarray, groups: int, share: float) -> None:
    """Report the groups that are done, and this share of a batch."""
    progress(done + int(share * len(rows)), groups)


def sample(
    key: jax.Array,
    problem: FactorProblem,
    chains: int,
    draws: int,
    rounds: int = 1,
    told: Callable[[float], None] | None = None,
) -> tuple[jax.Array, np.ndarray]:
    """Return positions (draw, coordinate, chain, group), and each group's divergent trajectories.

    ``told`` is told which share of the iterations is done.
    """
    structure, groups = problem.structure, len(problem.n)
    data = _data(problem)
    begin, sampling = jax.random.split(key)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(begin)))
    singles = [subset(problem, [row]) for row in range(groups)]
    starts = [np.stack([start(rng, one) for _ in range(chains)], axis=1) for one in singles]
    spread = jnp.asarray(np.repeat(prior_spread(structure)[:, None], groups, axis=1))
    aim = target(structure, problem.mechanism, chains * groups)
    state = adaptation.start(jnp.asarray(np.stack(starts, axis=-1)), spread, plain=True)
    slower = min(rounds, 2)
    warm = adaptation.warmup_schedule(
        rungs=2, rung=25 * slower, windows=tuple(slower * w for w in (60, 100, 90))
    )
    steps = [
        block
        for schedule in (warm, adaptation.sampling_schedule(draws * rounds))
        for block in adaptation.in_blocks(schedule, ITERATIONS_PER_CALL)
    ]
    kept: list[jax.Array] = []
    divergences = np.zeros(groups, int)
    for number, schedule in enumerate(steps):
        fresh = jax.random.fold_in(sampling, number)
        state, (positions, diverged) = hmc.advance(aim, state, data, spread, fresh, schedule)
        if not schedule.adapt[0]:
            divergences += np.asarray(diverged)
            kept.append(positions[-(len(kept) * ITERATIONS_PER_CALL) % rounds :: rounds])
        elif not steps[number + 1].adapt[0]:
            state = state._replace(log_step=state.averaged)
        if told is not None:
            positions.block_until_ready()
            told((number + 1) / len(steps))
    return jnp.concatenate(kept)[:draws], divergences


def _data(problem: FactorProblem) -> FactorData:
    """Return the data of the only group, or of several with the group axis first."""
    single = len(problem.n) == 1
    return FactorData(
        jnp.asarray(problem.z[0] if single else problem.z),
        jnp.asarray(
            problem.noise_scale if single else np.full(len(problem.n), problem.noise_scale)
        ),
        jnp.asarray(problem.n[0] if single else problem.n),
    )


@partial(compiled, static_argnums=2)
def _moments(positions: jax.Array, data: FactorData, structure: Structure) -> Moments:
    """Return the moments (chain, draw, …) at positions (draw, coordinate, chain)."""
    flat = jnp.moveaxis(positions, 2, 0)
    at: Moments = jax.lax.map(
        lambda chain: jax.lax.map(lambda v: moments(v, data, structure), chain), flat
    )
    return at


def prior_spread(structure: Structure) -> np.ndarray:
    """Return rough sizes of the coordinates before data are seen."""
    at = layout(structure)
    spread = np.ones(at.size)
    spread[at.tables] = coordinate_sizes(structure)
    spread[at.log_n] = 0.5
    strata = len(structure.stratum_levels)
    for place, length in at.x:
        own = np.ones((strata, length // strata))
        own[:, -1] = 3.0
        spread[place : place + length] = own.ravel()
    for place, (kind, f, g) in enumerate(scale_names(structure), at.scales.start):
        if kind == "association":
            # Given E, ν² is inverse-gamma with half as many degrees as E has entries.
            spread[place] = 1 / np.sqrt(1 + 0.5 * rank((f, g), structure.sizes))
    spread[at.y.stop - 1] = 3.0
    return spread


# -- where chains start ----------------------------------------------------------------------------


def start(rng: np.random.Generator, problem: FactorProblem) -> np.ndarray:
    """Return a valid point about as far from the released sums as their noise."""
    structure, noise = problem.structure, problem.noise_scale
    z = problem.z[0] + rng.laplace(0, noise, problem.z.shape[1])
    n, d = float(problem.n[0]), structure.covariates
    at = layout(structure)
    seen = [z[place] for place in problem.statistic.slices]
    names = scale_names(structure)
    centres = [LOG_ASSOCIATION if kind == "association" else 0.0 for kind, _, _ in names]
    logs = centres + rng.normal(0, 0.5, len(centres))
    scales = dict(zip(names, jnp.asarray(logs), strict=True))
    v, tables, atoms = start_of_covariates(structure, seen, n, noise, scales)
    v[at.scales] = logs
    blocks = list(zip(structure.blocks, observation(structure), seen, strict=True))
    own = [(b, m, sums) for b, (_, _, m), sums in blocks if b.product == (d,)]
    products = {b.product: sums for b, _, sums in blocks if len(b.product) == 2}
    sums = np.concatenate([_column_sums(own, tables), *(products[j, d] for j in range(d))])
    factor = np.linalg.cholesky(atoms)
    e, residual = _valid(factor[None], sums[None], products[d, d], noise)
    spread = prior_spreads(structure, scales, d)
    v[at.y] = _moved(factor[None], e, residual, spread, n, noise)[0]
    return v


def start_of_covariates(
    structure: Structure, seen: Sequence[np.ndarray], n: float, noise: float, scales: Scales
) -> tuple[np.ndarray, LatentCounts, np.ndarray]:
    """Return coordinates of valid sums of the covariates, their tables and the atoms' products.

    Args:
        structure: whose blocks were seen.
        seen: the sums of every block; those of the response are not read.
        n: records.
        noise: scale of the noise.
        scales: logarithms of the covariates' scales.
    """
    at, d = layout(structure), structure.covariates
    v = np.zeros(at.size)
    blocks = list(zip(structure.blocks, observation(structure), seen, strict=True))
    counts = {b.within: sums for b, _, sums in blocks if not b.product}
    v[at.tables], tables = first_latent_counts(structure, counts, n, noise)
    v[at.log_n] = np.log(n)
    strata, levels = len(structure.stratum_levels), len(structure.x_columns)
    whole = np.zeros((strata, levels + d, levels + d))
    whole[:, :levels, :levels] = np.asarray(tables.x_gram)
    products = {b.product: sums for b, _, sums in blocks if len(b.product) == 2}
    for j in range(d):
        own = [(b, m, sums) for b, (_, _, m), sums in blocks if b.product == (j,)]
        lines = _column_sums(own, tables).reshape(strata, levels)
        cross = np.array([products[i, j] for i in range(j)]).reshape(j, strata).T
        factor = np.linalg.cholesky(whole[:, : levels + j, : levels + j])
        e, residual = _valid(factor, np.concatenate([lines, cross], axis=1), products[j, j], noise)
        _extend(whole, levels + j, e, residual)
        place, length = at.x[j]
        spread = prior_spreads(structure, scales, j)
        v[place : place + length] = _moved(factor, e, residual, spread, n, noise).ravel()
    atoms = np.asarray(atoms_gram(structure, tables.y_gram, jnp.asarray(whole)))
    return v, tables, atoms


def _moved(
    factor: np.ndarray,
    e: np.ndarray,
    residual: np.ndarray,
    spread: jax.Array,
    n: float,
    noise: float,
) -> np.ndarray:
    """Return the coordinates (stratum, …) of e and R."""
    diagonal = jnp.asarray(np.diagonal(factor, axis1=1, axis2=2))
    size, scale = jnp.asarray(n), jnp.asarray(noise)
    units = jax.vmap(lambda own, r: column_units(own, r, spread, size, scale))(
        diagonal, jnp.asarray(residual)
    )
    return np.column_stack([e / np.asarray(units), _unsoft(residual / noise)])


def _column_sums(
    own: list[tuple[CellSum, np.ndarray, np.ndarray]], tables: LatentCounts
) -> np.ndarray:
    """Return sums of level columns from noisy sums within cells, means kept inside the box."""
    matrices, wanted = [], []
    for block, matrix, seen in own:
        limit = 0.9 * np.asarray(tables.cells(block.within))
        matrices.append(matrix)
        wanted.append(np.clip(seen, -limit, limit))
    fitted = np.linalg.lstsq(np.concatenate(matrices), np.concatenate(wanted), rcond=None)
    return np.asarray(fitted[0])


def _valid(
    factor: np.ndarray, sums: np.ndarray, square: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return e = L⁻¹ D'w and a residual sum of squares above zero."""
    e = np.linalg.solve(factor, sums[..., None])[..., 0]
    long = (e**2).sum(axis=-1)
    shrink = np.sqrt(np.minimum(1.0, 0.95 * np.maximum(square, 2 * noise) / np.maximum(long, 1e-9)))
    e = e * shrink[..., None]
    return e, np.maximum(square - (e**2).sum(axis=-1), 0.5 * noise)


def _extend(whole: np.ndarray, k: int, e: np.ndarray, residual: np.ndarray) -> None:
    """Write the products of one more column into the Gram matrices."""
    factor = np.linalg.cholesky(whole[:, :k, :k])
    whole[:, :k, k] = whole[:, k, :k] = np.einsum("skl,sl->sk", factor, e)
    whole[:, k, k] = (e**2).sum(axis=-1) + residual


def _unsoft(ratio: np.ndarray) -> np.ndarray:
    """Return t with log(1 + exp t) = ratio."""
    ratio = np.maximum(ratio, 1e-6)
    return np.asarray(ratio + np.log(-np.expm1(-ratio)))


def hidden_columns(problem: FactorProblem) -> tuple[str, ...]:
    """Return the numeric columns whose variance the noise hides; with groups, in most of them."""
    hidden = []
    places = list(zip(problem.structure.blocks, problem.statistic.slices, strict=True))
    for j, name in enumerate(problem.names):
        square = next(p for b, p in places if b.product == (j, j))
        lines = [p for b, p in places if b.product == (j,)]
        cells = min(p.stop - p.start for p in lines)
        line = next(p for p in lines if p.stop - p.start == cells)
        mean = problem.z[:, line].sum(axis=1) / problem.n
        variance = problem.z[:, square].sum(axis=1) / problem.n - mean**2
        error = problem.deviation / problem.n
        error = error * np.sqrt(square.stop - square.start + 4 * mean**2 * cells)
        if (variance < 6 * error).mean() > 0.5:
            hidden.append(name)
    return tuple(hidden)

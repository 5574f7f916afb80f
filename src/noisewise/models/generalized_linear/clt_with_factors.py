"""Method ``clt`` for releases by a formula: sums within the levels of factors.

As in ``clt.py``: a first run under normal covariates, nodes of the law on the box made of its
posterior means, and a second run under these. Groups are sampled one after the other.
"""

from __future__ import annotations

import time
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.inference import adaptation
from noisewise.inference.results import ESS, RHAT, Posterior
from noisewise.models.base import Progress
from noisewise.models.generalized_linear.cell_nodes import cell_nodes
from noisewise.models.generalized_linear.clt import (
    ATTEMPTS,
    FIRST_DRAWS,
    advanced,
    shape_shift,
)
from noisewise.models.generalized_linear.covariate_nodes import padded
from noisewise.models.generalized_linear.density_with_factors import (
    DensityData,
    Layout,
    parts,
    target,
)
from noisewise.models.generalized_linear.links import LINKS
from noisewise.models.generalized_linear.posterior_with_factors import posterior_with_factors
from noisewise.models.generalized_linear.problem_with_factors import FactorsProblem, subset
from noisewise.models.generalized_linear.response_moments import NodeArrays, node_arrays
from noisewise.models.linear_regression import factor_density, factor_exact
from noisewise.models.linear_regression.factor_prior import scale_names
from noisewise.models.linear_regression.latent_cell_counts import LOG_ASSOCIATION
from noisewise.numerics import one_blas_thread
from noisewise.numerics.compilation import compiled
from noisewise.numerics.convergence import diagnose

LEAST_SHARE = 0.02
"""Least share of events, and of their absence, at the start (chosen)."""


class GroupDraws(NamedTuple):
    """Draws (parameter, chain, draw) in the user's units, and what the covariates were.

    ``shift`` per parameter; ``second`` the posterior mean of the products of the design's atoms,
    per record.
    """

    user: np.ndarray
    shift: np.ndarray
    second: np.ndarray
    divergences: int


def layout_of(problem: FactorsProblem, *, nodes: bool) -> Layout:
    """Return the layout of a problem's coordinates."""
    return Layout(
        problem.structure, problem.link, problem.mechanism, problem.chosen, problem.sizes,
        problem.sums.cells.shape[1], nodes,
    )  # fmt: skip


def density_data(problem: FactorsProblem, nodes: NodeArrays | None) -> DensityData:
    """Return the data of a problem of one group."""

    def array(values: np.ndarray | float) -> jax.Array:
        return jnp.asarray(values, jnp.float64)

    sums = problem.sums
    return DensityData(
        array(problem.z[0]), array(problem.noise_scale), array(problem.n[0]),
        array(problem.response[0]), array(sums.of_covariates), array(sums.of_response),
        array(sums.cells), array(problem.level), array(problem.level_sd), array(problem.slope_sd),
        nodes,
    )  # fmt: skip


def nodes_of(problem: FactorsProblem, second: np.ndarray) -> NodeArrays:
    """Return the nodes of a group's covariates, a power of two of them."""
    mean = second[0, 1:]
    made = cell_nodes(mean, second[1:, 1:] - np.outer(mean, mean), problem.sizes)
    size = 2 ** max(5, int(len(made.weight) - 1).bit_length())
    return NodeArrays(*(jnp.asarray(a) for a in node_arrays(padded(made, size))))


def sample(
    key: jax.Array, problem: FactorsProblem, chains: int, draws: int, rounds: int = 1
) -> GroupDraws:
    """Draw from the posterior of one group."""
    begin, first, last = jax.random.split(key, 3)
    layout, only = layout_of(problem, nodes=False), problem.law == "normal"
    rng = np.random.default_rng(np.asarray(jax.random.key_data(begin)))
    starts = np.stack([start(rng, problem, layout) for _ in range(chains)], axis=1)
    spread = jnp.asarray(prior_spread(problem, layout))[:, None]
    data = density_data(problem, None)
    state = adaptation.start(jnp.asarray(starts)[..., None], spread, plain=True)
    wanted = draws if only else min(draws, FIRST_DRAWS)
    state, positions, diverged = advanced(
        first, target(layout), state, data, spread, wanted, rounds, _no_news, cold=True
    )
    normal, second = _of_positions(positions, data, problem, layout)
    if only:
        return GroupDraws(normal, np.full(len(normal), np.nan), second, int(diverged.sum()))
    layout = layout._replace(nodes=True)
    data = density_data(problem, nodes_of(problem, second))
    state, positions, diverged = advanced(
        last, target(layout), state, data, spread, draws, rounds, _no_news, cold=False
    )
    user, second = _of_positions(positions, data, problem, layout)
    shift = shape_shift(normal[:, None], user[:, None])[:, 0]
    return GroupDraws(user, shift, second, int(diverged.sum()))


def _no_news(share: float) -> None:
    """Do nothing."""


def _of_positions(
    positions: jax.Array, data: DensityData, problem: FactorsProblem, layout: Layout
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws in the user's units, and posterior means of the atoms' products per record."""
    theta, second = _coefficients(positions[..., 0], data, layout)
    user = np.linalg.solve(problem.change, np.asarray(theta).reshape(-1, len(problem.change)).T)
    chains, draws = positions.shape[2], positions.shape[0]
    return user.reshape(-1, chains, draws), np.asarray(second)


@partial(compiled, static_argnums=2)
def _coefficients(
    positions: jax.Array, data: DensityData, layout: Layout
) -> tuple[jax.Array, jax.Array]:
    """Return the atoms' coefficients (chain, draw, atom), and their mean products per record."""

    def one(v: jax.Array) -> tuple[jax.Array, jax.Array]:
        p = parts(v, data, layout)
        return p.theta, p.root @ p.root.T

    theta, second = jax.lax.map(lambda chain: jax.lax.map(one, chain),
                                jnp.moveaxis(positions, 2, 0))  # fmt: skip
    return theta, second.mean(axis=(0, 1))


def prior_spread(problem: FactorsProblem, layout: Layout) -> np.ndarray:
    """Return rough sizes of the coordinates before data are seen."""
    whole = factor_exact.prior_spread(layout.structure)
    scales = factor_density.layout(layout.structure).scales.start
    named = dict(zip(scale_names(layout.structure), whole[scales:], strict=True))
    k = len(layout.chosen)
    return np.concatenate([
        whole[: layout.covariates], [named[name] for name in layout.scale_names],
        [problem.level_sd], np.full(k - 1, problem.slope_sd),
        np.full(layout.dimension - layout.level - k, 1.3),
    ])  # fmt: skip


def start(rng: np.random.Generator, problem: FactorsProblem, layout: Layout) -> np.ndarray:
    """Return a valid point about as far from the released sums as their noise."""
    z = problem.start_z[0] + rng.laplace(0, problem.noise_scale, problem.start_z.shape[1])
    names = layout.scale_names
    centres = [LOG_ASSOCIATION if kind == "association" else 0.0 for kind, _, _ in names]
    logs = centres + rng.normal(0, 0.5, len(centres))
    v, _ = _valid_sums(problem, z, names, logs)
    k = len(layout.chosen)
    return np.concatenate([
        v[: layout.covariates], logs, [_level(problem) + 0.5 * rng.standard_normal()],
        0.3 * problem.slope_sd * rng.standard_normal(k - 1),
        0.5 * rng.standard_normal(layout.dimension - layout.level - k) - 0.5,
    ])  # fmt: skip


def _valid_sums(
    problem: FactorsProblem, z: np.ndarray, names: tuple[tuple[str, int, int], ...],
    logs: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return coordinates of valid sums of the covariates near some, and products of all atoms."""
    matrices = [m for _, _, m in factor_density.observation(problem.start)]
    seen = np.split(z, np.cumsum([len(m) for m in matrices])[:-1])
    scales = dict(zip(names, jnp.asarray(logs), strict=True))
    v, _, atoms = factor_exact.start_of_covariates(
        problem.start, seen, float(problem.n[0]), problem.noise_scale, scales
    )
    return v, atoms


def atoms_of_noisy_sums(problem: FactorsProblem) -> np.ndarray:
    """Return products of the design's atoms per record, as the noisy sums of one group have them.

    Made valid where they are not.
    """
    names = layout_of(problem, nodes=False).scale_names
    _, atoms = _valid_sums(problem, problem.start_z[0], names, np.zeros(len(names)))
    chosen = np.array(problem.chosen)
    return np.asarray(atoms[np.ix_(chosen, chosen)] / atoms[0, 0])


def _level(problem: FactorsProblem) -> float:
    """Return the predictor at which the mean response is the noisy one."""
    largest = problem.largest_count if LINKS[problem.link].counts else 1 - LEAST_SHARE
    mean = np.clip(problem.total[0] / problem.n[0], LEAST_SHARE, largest)
    return float(LINKS[problem.link].rough_predictor(mean))


def run(
    problem: FactorsProblem,
    seed: int,
    chains: int,
    draws: int,
    progress: Progress | None = None,
) -> Posterior:
    """Sample group after group; those that did not converge get a longer attempt."""
    begin, groups, k = time.perf_counter(), len(problem.n), len(problem.chosen)
    user = np.empty((k, groups, chains, draws))
    rhat, ess, shift = (np.full((k, groups), np.nan) for _ in range(3))
    second = np.empty((groups, k, k))
    tries, divergences = np.zeros(groups, int), np.zeros(groups, int)
    key = jax.random.key(seed)
    with one_blas_thread():
        for row in range(groups):
            one = subset(problem, row)
            for attempt, rounds in enumerate(ATTEMPTS):
                fresh = jax.random.fold_in(jax.random.fold_in(key, row), attempt)
                drawn = sample(fresh, one, chains, draws, rounds)
                user[:, row], shift[:, row] = drawn.user, drawn.shift
                second[row], divergences[row] = drawn.second, drawn.divergences
                rhat[:, row], ess[:, row] = (a[:, 0] for a in diagnose(user[:, [row]]))
                tries[row] += 1
                if (rhat[:, row] < RHAT).all() and (ess[:, row] >= ESS).all():
                    break
            if progress is not None:
                progress(row + 1, groups)
    details = {
        "tries": tries, "divergences": divergences,
        "seconds": (round(time.perf_counter() - begin, 3),),
    }  # fmt: skip
    return posterior_with_factors(problem, user, rhat, ess, "clt", details, shift, second)

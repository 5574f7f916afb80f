"""The sampler's mass matrix: the inverse of the posterior's covariance at a first estimate.

Up to a few thousand cells it is the whole matrix (``dense_mass_matrix``). Beyond, it is made set by
set (``block_mass_matrix``): a table y_C = N μ_C + noise informs about θ_C through
∂μ_C/∂θ_C = diag(μ) - μμᵀ, with precision 1/(b² + Nμ) per cell (Fisher information of Laplace noise
is 1/b²). In the coordinates of ``contrasts.py`` the information of all tables that contain a set S
of variables adds up to one block per S; across sets it is left out. Where n is large and noise
small that costs the chain many steps: what tables say about single columns and about pairs is
correlated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from noisewise.models.graphical_model import fisher_information
from noisewise.models.graphical_model.contrasts import Contrasts, helmert
from noisewise.models.graphical_model.marginal_oracle import Oracle
from noisewise.models.graphical_model.problem import TablesProblem

TAIL_SCALES = 5.0
"""Counts, in units of b, at which half of the spread is in the left tail of a log-potential
(chosen)."""
MAX_BLOCK = 1000
"""Coordinates of a dense block; of a larger one only the diagonal is used (chosen)."""


@dataclass(frozen=True, eq=False)
class MassMatrix:
    """A factor of its inverse: dense blocks by size (cells, factors), scales elsewhere.

    ``centred`` says for each coordinate how much data inform about it, from 0 (prior only) to 1.
    """

    blocks: tuple[tuple[np.ndarray, np.ndarray], ...]
    scales: np.ndarray
    centred: np.ndarray


def unwhiten(
    blocks: list[tuple[jax.Array, jax.Array]], scales: jax.Array, q: jax.Array
) -> jax.Array:
    """Return the coordinates of white ones."""
    z = scales * q
    for cells, factors in blocks:
        z = z.at[cells].set(jnp.einsum("sij,sj->si", factors, q[cells]))
    return z


def dense_mass_matrix(
    problem: TablesProblem, theta: jax.Array, contrasts: Contrasts, spread: float
) -> MassMatrix:
    """Return one block of all coordinates, at ``theta``, whose prior deviation is ``spread``."""
    data = (jnp.asarray(problem.y), jnp.asarray(problem.n), jnp.asarray(problem.scale))
    block = np.asarray(_information(problem.oracle, problem.mechanism, contrasts, theta, *data))
    information = np.maximum(np.diag(block), 0.0)
    size = len(block)
    lower = np.linalg.cholesky(block + np.eye(size) / spread**2)
    factor = scipy.linalg.solve_triangular(lower, np.eye(size), lower=True).T
    centred = information * spread**2 / (1 + information * spread**2)
    return MassMatrix(((np.arange(size)[None], factor[None]),), np.full(size, spread), centred)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _information(
    oracle: Oracle, mechanism: str, contrasts: Contrasts, theta: jax.Array, y: jax.Array,
    n: jax.Array, scale: jax.Array,
) -> jax.Array:  # fmt: skip
    """Return Gᵀ diag(w) G in contrasts, where G = N ∇²A, with less weight for rare cells.

    A rare cell's log-potential has a long left tail, in which a count says nothing: the density is
    a narrow peak at y beside a wide plateau. The estimate sees the peak only, and often has more
    people in it than y (EM stops early), so its curvature promises information that is not there,
    and chains take tiny steps. So a cell counts c = min(Nμ, y₊ + b) people, and informs less where
    c is a few b or none.
    """
    g = n * fisher_information.cell_covariance(oracle, theta)
    fitted = jnp.maximum(jnp.diag(g), 1e-300)
    count = jnp.minimum(fitted, jnp.maximum(y, 0.0) + scale)
    trust = count / fitted * count / (count + TAIL_SCALES * scale)
    weight = fisher_information.cell_weights(mechanism, g, scale) * trust**2
    turn = jax.vmap(contrasts.coordinates)
    block: jax.Array = turn(turn(g.T @ (weight[:, None] * g)).T)
    return block


def block_mass_matrix(
    problem: TablesProblem, mu: np.ndarray, contrasts: Contrasts, spread: float
) -> MassMatrix:
    """Return one block per set, at marginals ``mu``, for potentials of deviation ``spread``."""
    dimension = problem.model.dimension
    scales, centred = np.full(dimension, spread), np.zeros(dimension)
    factors_by_size: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
    for cells, block in _blocks_by_set(problem, mu, contrasts):
        information = np.diag(block) if block.ndim == 2 else block
        centred[cells] = information * spread**2 / (1 + information * spread**2)
        scales[cells] = 1 / np.sqrt(1 / spread**2 + information)
        if block.ndim == 2:
            lower = np.linalg.cholesky(block + np.eye(len(cells)) / spread**2)
            factors_by_size.setdefault(len(cells), []).append((cells, np.linalg.inv(lower).T))
    blocks = tuple(
        (np.stack([c for c, _ in group]), np.stack([f for _, f in group]))
        for group in factors_by_size.values()
    )
    return MassMatrix(blocks, scales, centred)


def _blocks_by_set(
    problem: TablesProblem, mu: np.ndarray, contrasts: Contrasts
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return each set's coordinates and information: a matrix, or the diagonal of a large one."""
    information: dict[int, np.ndarray] = {}
    places: dict[int, np.ndarray] = {}
    parts_by_clique = _clique_parts(problem, contrasts)
    for where, clique in zip(problem.model.slices, problem.model.cliques, strict=True):
        own = mu[where]
        jacobian = problem.n * (np.diag(own) - np.outer(own, own))
        variance = problem.scale**2 + problem.n * own
        rotation = np.ones((1, 1))
        for states in problem.model.shape(clique):
            rotation = np.kron(rotation, helmert(states))
        turned = (jacobian / np.sqrt(variance)[:, None]) @ rotation
        for number, (columns, cells, weight) in parts_by_clique[where.start].items():
            part = weight * turned[:, columns]
            block = part.T @ part if len(cells) <= MAX_BLOCK else (part**2).sum(axis=0)
            information[number] = information.get(number, 0.0) + block
            places[number] = cells
    return [(places[number], block) for number, block in information.items()]


CliquePart = tuple[np.ndarray, np.ndarray, float]
"""Columns within the clique, the identifiable coordinates that move them, and how much."""


def _clique_parts(problem: TablesProblem, contrasts: Contrasts) -> dict[int, dict[int, CliquePart]]:
    """Return every clique's part in every set, by where the clique starts and the set's number."""
    starts = np.array([w.start for w in problem.model.slices])
    parts: dict[int, dict[int, CliquePart]] = {int(s): {} for s in starts}
    for shared in contrasts.shared:
        for number in np.unique(shared.sets):
            chosen = shared.cells[:, shared.sets == number]
            for row, weight in zip(chosen, shared.rotation[:, 0], strict=True):
                start = int(starts[np.searchsorted(starts, row[0], side="right") - 1])
                parts[start][int(number)] = (row - start, chosen[0], float(weight))
    return parts

"""A metric for the sampler: the posterior's covariance at a first estimate.

Up to a few thousand cells it is the whole matrix (``dense``). Beyond, set by set (``metric``): a
table y_C = N μ_C + noise tells about θ_C through ∂μ_C/∂θ_C = diag(μ) - μμᵀ, with precision
1/(b² + Nμ) per cell (Fisher information of Laplace noise is 1/b²). In the coordinates of
``contrasts.py`` the information of all tables that contain a set S of variables adds up to one
block per S; across sets it is left out. Where n is large and noise small that costs the chain
dearly: what tables say about single columns and about pairs hangs together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from noisewise.models.graphical_model import telling
from noisewise.models.graphical_model.contrasts import Contrasts, helmert
from noisewise.models.graphical_model.oracle import Oracle
from noisewise.models.graphical_model.problem import Problem

TAIL = 5.0
"""Of counts in units of b, where half of the spread is in the left tail of a log-potential."""
LARGEST = 1000
"""Entries of a block; beyond, its diagonal has to do."""


@dataclass(frozen=True, eq=False)
class Metric:
    """A factor of the covariance: dense blocks by size (cells, factors), scales elsewhere.

    ``centred`` says for each coordinate how much data tell about it, from 0 (all prior) to 1.
    """

    blocks: tuple[tuple[np.ndarray, np.ndarray], ...]
    scales: np.ndarray
    centred: np.ndarray


def apply(blocks: list[tuple[jax.Array, jax.Array]], scales: jax.Array, q: jax.Array) -> jax.Array:
    """White coordinates → coordinates."""
    z = scales * q
    for cells, factors in blocks:
        z = z.at[cells].set(jnp.einsum("sij,sj->si", factors, q[cells]))
    return z


def dense(problem: Problem, theta: jax.Array, found: Contrasts, spread: float) -> Metric:
    """One block of all coordinates."""
    block = np.asarray(
        _information(problem.oracle, problem.mechanism, found, theta, *_noisy(problem))
    )
    known = np.maximum(np.diag(block), 0.0)
    size = len(block)
    lower = np.linalg.cholesky(block + np.eye(size) / spread**2)
    factor = scipy.linalg.solve_triangular(lower, np.eye(size), lower=True).T
    centred = known * spread**2 / (1 + known * spread**2)
    return Metric(((np.arange(size)[None], factor[None]),), np.full(size, spread), centred)


def _noisy(problem: Problem) -> tuple[jax.Array, jax.Array, jax.Array]:
    return jnp.asarray(problem.y), jnp.asarray(problem.n), jnp.asarray(problem.scale)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _information(
    oracle: Oracle, mechanism: str, found: Contrasts, theta: jax.Array, y: jax.Array, n: jax.Array,
    scale: jax.Array,
) -> jax.Array:  # fmt: skip
    """Gᵀ diag(w) G in contrasts, where G = N ∇²A, with less weight for rare cells.

    A rare cell's log-potential has a long left tail, in which a count tells nothing: the density is
    a narrow peak at y beside a wide plateau. The estimate sees the peak only, and often has more
    people in it than y (EM stops early), so its curvature promises information that is not there,
    and chains creep. So a cell counts c = min(Nμ, y₊ + b) people, and tells less where c is a few
    b or none.
    """
    g = n * telling.covariance(oracle, theta)
    fitted = jnp.maximum(jnp.diag(g), 1e-300)
    count = jnp.minimum(fitted, jnp.maximum(y, 0.0) + scale)
    trust = count / fitted * count / (count + TAIL * scale)
    weight = telling.weights(mechanism, g, scale) * trust**2
    turn = jax.vmap(found.coordinates)
    block: jax.Array = turn(turn(g.T @ (weight[:, None] * g)).T)
    return block


def metric(problem: Problem, mu: np.ndarray, found: Contrasts, spread: float) -> Metric:
    """Blocks at marginals ``mu``, for potentials of standard deviation ``spread``."""
    dimension = problem.model.dimension
    scales, centred = np.full(dimension, spread), np.zeros(dimension)
    information: dict[int, np.ndarray] = {}
    places: dict[int, np.ndarray] = {}
    owners = _owners(problem, found)
    for where, clique in zip(problem.model.slices, problem.model.cliques, strict=True):
        own = mu[where]
        jacobian = problem.n * (np.diag(own) - np.outer(own, own))
        variance = problem.scale**2 + problem.n * own
        rotation = np.ones((1, 1))
        for states in problem.model.shape(clique):
            rotation = np.kron(rotation, helmert(states))
        turned = (jacobian / np.sqrt(variance)[:, None]) @ rotation
        for number, (columns, cells, weight) in owners[where.start].items():
            part = weight * turned[:, columns]
            block = part.T @ part if len(cells) <= LARGEST else (part**2).sum(axis=0)
            information[number] = information.get(number, 0.0) + block
            places[number] = cells
    sized: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
    for number, block in information.items():
        cells = places[number]
        known = np.diag(block) if block.ndim == 2 else block
        centred[cells] = known * spread**2 / (1 + known * spread**2)
        scales[cells] = 1 / np.sqrt(1 / spread**2 + known)
        if block.ndim == 2:
            lower = np.linalg.cholesky(block + np.eye(len(cells)) / spread**2)
            sized.setdefault(len(cells), []).append((cells, np.linalg.inv(lower).T))
    blocks = tuple(
        (np.stack([c for c, _ in group]), np.stack([f for _, f in group]))
        for group in sized.values()
    )
    return Metric(blocks, scales, centred)


Owner = tuple[np.ndarray, np.ndarray, float]
"""Columns within the clique, the identifiable coordinates that move them, and how much."""


def _owners(problem: Problem, found: Contrasts) -> dict[int, dict[int, Owner]]:
    """By clique (where it starts) and set."""
    starts = np.array([w.start for w in problem.model.slices])
    owners: dict[int, dict[int, Owner]] = {int(s): {} for s in starts}
    for family in found.families:
        for number in np.unique(family.sets):
            chosen = family.cells[:, family.sets == number]
            for row, weight in zip(chosen, family.rotation[:, 0], strict=True):
                start = int(starts[np.searchsorted(starts, row[0], side="right") - 1])
                owners[start][int(number)] = (row - start, chosen[0], float(weight))
    return owners

"""A metric for the sampler: the posterior's covariance, set by set, at a first estimate.

A table y_C = N μ_C + noise tells about θ_C through ∂μ_C/∂θ_C = diag(μ) - μμᵀ, with precision
1/(b² + Nμ) per cell (Fisher information of Laplace noise is 1/b²). In the coordinates of
``contrasts.py`` the information of all tables that contain a set S of variables adds up to one
block per S; across sets it is left out, which costs a few leapfrog steps and saves a matrix as
large as θ squared.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.infer.graphical.contrasts import Contrasts, helmert
from noisewise.infer.graphical.problem import Problem

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

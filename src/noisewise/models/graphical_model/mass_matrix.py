"""The coordinates in which NUTS moves: orthonormal contrasts of θ, and the mass matrix in them.

*Contrasts* separate what data identify from what they do not. θ is overcomplete: a function of x_v
may move from one clique to another and no probability changes. Written as an analysis of variance,

    θ_C = Σ_{S ⊆ C} u_{C,S},     only  Σ_C u_{C,S}  matters,  for each set S of variables,

so for each S the cliques' components are rotated: the first coordinate is their sum as a function
(a larger clique repeats it over its other variables, hence the weights), the other k - 1 and the
constants are gauge. The map is orthogonal and costs two small matrix products per clique.

*The mass matrix* is the inverse of the posterior's covariance at a first estimate. Up to a few
thousand cells it is the whole matrix (``dense_mass_matrix``). Beyond, it is made set by set
(``block_mass_matrix``): a table y_C = N μ_C + noise informs about θ_C through
∂μ_C/∂θ_C = diag(μ) - μμᵀ, with precision 1/(b² + Nμ) per cell (Fisher information of Laplace noise
is 1/b²). In contrasts the information of all tables that contain a set S of variables adds up to
one block per S; across sets it is left out. Where n is large and noise small that costs the chain
many steps: what tables say about single columns and about pairs is correlated.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from noisewise.models.graphical_model import fisher_information
from noisewise.models.graphical_model.marginal_oracle import Oracle
from noisewise.models.graphical_model.problem import TablesProblem
from noisewise.models.graphical_model.structure import Clique, Structure


@dataclass(frozen=True, eq=False)
class SharedComponents:
    """All (set S, entry) that k cliques share: ``cells[j]`` is where clique j keeps its component.

    ``rotation`` turns coordinates into components; row 0 of the coordinates is identifiable.
    ``sets`` numbers the set S of each column.
    """

    cells: np.ndarray
    sets: np.ndarray
    rotation: np.ndarray


@dataclass(frozen=True, eq=False)
class Contrasts:
    """The coordinates of one structure; ``constants`` says where the cliques' constants are."""

    model: Structure
    shared: tuple[SharedComponents, ...]
    constants: np.ndarray

    @property
    def identifiable(self) -> np.ndarray:
        """Return the positions of the coordinates that change the distribution."""
        return np.concatenate([s.cells[0] for s in self.shared])

    def potentials(self, coordinates: jax.Array) -> jax.Array:
        """Return θ at these coordinates."""
        mixed = coordinates
        for shared in self.shared:
            if len(shared.cells) > 1:
                turned = shared.rotation @ coordinates[shared.cells]
                mixed = mixed.at[shared.cells].set(turned)
        return self._within(mixed, inverse=False)

    def coordinates(self, theta: jax.Array) -> jax.Array:
        """Return the coordinates of θ: the transpose of ``potentials``."""
        mixed = self._within(theta, inverse=True)
        coordinates = mixed
        for shared in self.shared:
            if len(shared.cells) > 1:
                turned = shared.rotation.T @ mixed[shared.cells]
                coordinates = coordinates.at[shared.cells].set(turned)
        return coordinates

    def _within(self, flat: jax.Array, *, inverse: bool) -> jax.Array:
        """Multiply every clique's table by one orthonormal matrix per axis; like shapes at once."""
        result = jnp.zeros_like(flat)
        for shape, cells in _cells_by_shape(self.model).items():
            tables = flat[cells].reshape((-1, *shape))
            for axis, states in enumerate(shape, start=1):
                matrix = helmert(states)
                tables = jnp.moveaxis(
                    jnp.tensordot(tables, matrix if inverse else matrix.T, axes=(axis, 0)), -1, axis
                )
            result = result.at[cells].set(tables.reshape(cells.shape))
        return result


def helmert(size: int) -> np.ndarray:
    """Return the Helmert matrix: orthonormal, first column constant."""
    matrix = np.zeros((size, size))
    matrix[:, 0] = 1 / math.sqrt(size)
    for j in range(1, size):
        matrix[:j, j] = 1 / math.sqrt(j * (j + 1))
        matrix[j, j] = -j / math.sqrt(j * (j + 1))
    return matrix


def _rotation(weights: tuple[float, ...]) -> np.ndarray:
    """Return an orthonormal matrix whose first column is along the weights."""
    basis, _ = np.linalg.qr(np.column_stack([weights, np.eye(len(weights))[:, 1:]]))
    return np.asarray(basis * np.sign(basis[0, 0]))


Component = tuple[float, np.ndarray]
"""Of one clique on one set: its weight in the sum, and its cells."""


@lru_cache(maxsize=64)
def contrasts(model: Structure) -> Contrasts:
    """Return the contrasts of a structure, from the sets of variables that its cliques share."""
    by_set: dict[frozenset[str], list[Component]] = {}
    for clique, where in zip(model.cliques, model.slices, strict=True):
        place = np.arange(where.start, where.stop).reshape(model.shape(clique))
        for size in range(1, len(clique) + 1):
            for axes in itertools.combinations(range(len(clique)), size):
                by_set.setdefault(frozenset(clique[a] for a in axes), []).append(
                    _component(model, clique, place, axes)
                )
    grouped: dict[tuple[float, ...], list[tuple[np.ndarray, int]]] = {}
    for number, components in enumerate(by_set.values()):
        cells = np.stack([c for _, c in components])
        if cells.size:
            grouped.setdefault(tuple(w for w, _ in components), []).append((cells, number))
    shared = tuple(
        SharedComponents(
            np.concatenate([cells for cells, _ in members], axis=1),
            np.concatenate([np.full(cells.shape[1], number) for cells, number in members]),
            _rotation(weights),
        )
        for weights, members in grouped.items()
    )
    return Contrasts(model, shared, np.array([w.start for w in model.slices]))


def _component(
    model: Structure, clique: Clique, place: np.ndarray, axes: tuple[int, ...]
) -> Component:
    """Return the component of one clique on the variables of ``axes``."""
    # Axes in the model's order, so that cliques agree on which entry is which.
    chosen = sorted(axes, key=lambda a: model.variables.index(clique[a]))
    index = tuple(slice(1, None) if a in axes else 0 for a in range(len(clique)))
    cells = np.transpose(place[index], [axes.index(a) for a in chosen]).ravel()
    repeated = math.prod(n for a, n in enumerate(model.shape(clique)) if a not in axes)
    return 1 / math.sqrt(repeated), cells


@lru_cache(maxsize=64)
def _cells_by_shape(model: Structure) -> dict[tuple[int, ...], np.ndarray]:
    """Return the cells of all cliques of each shape, a row per clique."""
    rows_by_shape: dict[tuple[int, ...], list[np.ndarray]] = {}
    for clique, where in zip(model.cliques, model.slices, strict=True):
        rows_by_shape.setdefault(model.shape(clique), []).append(np.arange(where.start, where.stop))
    return {shape: np.stack(rows) for shape, rows in rows_by_shape.items()}


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

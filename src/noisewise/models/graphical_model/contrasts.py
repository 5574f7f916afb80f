"""Orthonormal contrasts of θ, the coordinates in which NUTS moves.

They separate what data identify from what they do not. θ is overcomplete: a function of x_v
may move from one clique to another and no probability changes. Written as an analysis of variance,

    θ_C = Σ_{S ⊆ C} u_{C,S},     only  Σ_C u_{C,S}  matters,  for each set S of variables,

so for each S the cliques' components are rotated: the first coordinate is their sum as a function
(a larger clique repeats it over its other variables, hence the weights), the other k - 1 and the
constants are gauge. The map is orthogonal and costs two small matrix products per clique.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

import noisewise.numerics.jax_settings  # noqa: F401  # float64
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

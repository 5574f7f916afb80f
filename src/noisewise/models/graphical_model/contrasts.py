"""Orthonormal coordinates of θ that separate what data can tell from what they cannot.

θ is overcomplete: a function of x_v may move from one clique to another and no probability changes.
Written as an analysis of variance,

    θ_C = Σ_{S ⊆ C} u_{C,S},     only  Σ_C u_{C,S}  matters,  for each set S of variables,

so for each S the cliques' components are rotated: the first coordinate is their sum as a function
(a larger clique repeats it over its other variables, hence the weights), the other k - 1 and the
constants are gauge. In these coordinates a sampler can scale both parts as they need. The map is
orthogonal and costs two small matrix products per clique.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.graphical_model.junction import Clique
from noisewise.models.graphical_model.structure import Structure


@dataclass(frozen=True, eq=False)
class Family:
    """All (set S, entry) that k cliques share: ``cells[j]`` is where clique j keeps its component.

    ``rotation`` turns coordinates into components; row 0 of the coordinates is identifiable.
    ``sets`` numbers the set S of each column.
    """

    cells: np.ndarray
    sets: np.ndarray
    rotation: np.ndarray


@dataclass(frozen=True, eq=False)
class Contrasts:
    """The coordinates of one structure."""

    model: Structure
    families: tuple[Family, ...]
    constants: np.ndarray

    @property
    def identifiable(self) -> np.ndarray:
        """Positions of the coordinates that change the distribution."""
        return np.concatenate([f.cells[0] for f in self.families])

    def potentials(self, coordinates: jax.Array) -> jax.Array:
        """Coordinates → θ."""
        mixed = coordinates
        for family in self.families:
            if len(family.cells) > 1:
                turned = family.rotation @ coordinates[family.cells]
                mixed = mixed.at[family.cells].set(turned)
        return self._within(mixed, inverse=False)

    def coordinates(self, theta: jax.Array) -> jax.Array:
        """θ → coordinates: the transpose."""
        mixed = self._within(theta, inverse=True)
        found = mixed
        for family in self.families:
            if len(family.cells) > 1:
                turned = family.rotation.T @ mixed[family.cells]
                found = found.at[family.cells].set(turned)
        return found

    def _within(self, flat: jax.Array, *, inverse: bool) -> jax.Array:
        """Every clique's table times one orthonormal matrix per axis; like shapes at once."""
        result = jnp.zeros_like(flat)
        for shape, cells in _by_shape(self.model).items():
            tables = flat[cells].reshape((-1, *shape))
            for axis, states in enumerate(shape, start=1):
                matrix = helmert(states)
                tables = jnp.moveaxis(
                    jnp.tensordot(tables, matrix if inverse else matrix.T, axes=(axis, 0)), -1, axis
                )
            result = result.at[cells].set(tables.reshape(cells.shape))
        return result


def helmert(size: int) -> np.ndarray:
    """Orthonormal, first column constant."""
    matrix = np.zeros((size, size))
    matrix[:, 0] = 1 / math.sqrt(size)
    for j in range(1, size):
        matrix[:j, j] = 1 / math.sqrt(j * (j + 1))
        matrix[j, j] = -j / math.sqrt(j * (j + 1))
    return matrix


def _rotation(weights: tuple[float, ...]) -> np.ndarray:
    """Orthonormal, first column along the weights."""
    basis, _ = np.linalg.qr(np.column_stack([weights, np.eye(len(weights))[:, 1:]]))
    return np.asarray(basis * np.sign(basis[0, 0]))


Component = tuple[float, np.ndarray]
"""Of one clique on one set: its weight in the sum, and its cells."""


@lru_cache(maxsize=64)
def contrasts(model: Structure) -> Contrasts:
    """Find, for every set of variables, the cliques that have a component on it."""
    found: dict[frozenset[str], list[Component]] = {}
    for clique, where in zip(model.cliques, model.slices, strict=True):
        place = np.arange(where.start, where.stop).reshape(model.shape(clique))
        for size in range(1, len(clique) + 1):
            for axes in itertools.combinations(range(len(clique)), size):
                found.setdefault(frozenset(clique[a] for a in axes), []).append(
                    _component(model, clique, place, axes)
                )
    grouped: dict[tuple[float, ...], list[tuple[np.ndarray, int]]] = {}
    for number, components in enumerate(found.values()):
        cells = np.stack([c for _, c in components])
        if cells.size:
            grouped.setdefault(tuple(w for w, _ in components), []).append((cells, number))
    families = tuple(
        Family(
            np.concatenate([cells for cells, _ in members], axis=1),
            np.concatenate([np.full(cells.shape[1], number) for cells, number in members]),
            _rotation(weights),
        )
        for weights, members in grouped.items()
    )
    return Contrasts(model, families, np.array([w.start for w in model.slices]))


def _component(
    model: Structure, clique: Clique, place: np.ndarray, axes: tuple[int, ...]
) -> Component:
    """Axes in the model's order, so that cliques agree on which entry is which."""
    chosen = sorted(axes, key=lambda a: model.variables.index(clique[a]))
    index = tuple(slice(1, None) if a in axes else 0 for a in range(len(clique)))
    cells = np.transpose(place[index], [axes.index(a) for a in chosen]).ravel()
    repeated = math.prod(n for a, n in enumerate(model.shape(clique)) if a not in axes)
    return 1 / math.sqrt(repeated), cells


@lru_cache(maxsize=64)
def _by_shape(model: Structure) -> dict[tuple[int, ...], np.ndarray]:
    """Cells of all cliques of one shape, a row each."""
    found: dict[tuple[int, ...], list[np.ndarray]] = {}
    for clique, where in zip(model.cliques, model.slices, strict=True):
        found.setdefault(model.shape(clique), []).append(np.arange(where.start, where.stop))
    return {shape: np.stack(rows) for shape, rows in found.items()}

"""A discrete graphical model without its numbers: variables, cliques, and how to eliminate them.

Potentials θ of all cliques are one flat vector: clique after clique in the release's order, the
last variable of a clique fastest, as the tables are on the wire.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from noisewise.models.graphical_model.junction import Clique, junction_tree

BYTES = 4 * 8
"""Per cell of the junction tree: a table, its exponential, and both again on the way back."""


@dataclass(frozen=True)
class Structure:
    """Variables with their numbers of states, and the cliques with a potential each."""

    variables: tuple[str, ...]
    states: tuple[int, ...]
    cliques: tuple[Clique, ...]

    @property
    def sizes(self) -> dict[str, int]:
        """Number of states by variable."""
        return dict(zip(self.variables, self.states, strict=True))

    def shape(self, clique: Sequence[str]) -> tuple[int, ...]:
        """The shape of a table over some variables."""
        sizes = self.sizes
        return tuple(sizes[v] for v in clique)

    @property
    def slices(self) -> tuple[slice, ...]:
        """Where each clique's cells lie in the flat vector."""
        found, start = [], 0
        for clique in self.cliques:
            stop = start + math.prod(self.shape(clique))
            found.append(slice(start, stop))
            start = stop
        return tuple(found)

    @property
    def dimension(self) -> int:
        """Cells of all cliques together."""
        return int(self.slices[-1].stop)

    @property
    def order(self) -> tuple[str, ...]:
        """In which order to sum variables out."""
        return _tree(self)[0]

    @property
    def tree(self) -> tuple[Clique, ...]:
        """The junction tree's maximal cliques."""
        return _tree(self)[1]

    @property
    def cells(self) -> int:
        """Cells of the junction tree, from its graph alone."""
        return sum(math.prod(self.shape(c)) for c in self.tree)

    @property
    def predicted_bytes(self) -> int:
        """What exact inference would hold in memory."""
        return BYTES * self.cells

    def with_clique(self, clique: Clique) -> Structure:
        """The same model with one more (zero) potential, so that its marginal is a gradient."""
        return Structure(self.variables, self.states, (*self.cliques, clique))


@lru_cache(maxsize=256)
def _tree(structure: Structure) -> tuple[tuple[str, ...], tuple[Clique, ...]]:
    return junction_tree(structure.sizes, structure.cliques)


def structure(sizes: Mapping[str, int], cliques: Sequence[Sequence[str]]) -> Structure:
    """From numbers of states and cliques."""
    return Structure(tuple(sizes), tuple(sizes.values()), tuple(tuple(c) for c in cliques))


def split(flat: Any, model: Structure) -> list[Any]:
    """The flat vector (of NumPy or JAX) as one table per clique."""
    return [
        flat[..., where].reshape((*flat.shape[:-1], *model.shape(clique)))
        for clique, where in zip(model.cliques, model.slices, strict=True)
    ]

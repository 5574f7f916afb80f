"""A discrete graphical model without its numbers: variables, cliques and junction tree.

Potentials θ of all cliques are one flat vector: clique after clique in the release's order, the
last variable of a clique fastest, as the tables are in the release file.

This is the one file that knows mbi (McKenna, Pullin, Sheldon, Miklau), which triangulates the graph
and builds the junction tree. mbi has no log-partition function, and its approximate oracle is not
belief propagation, so inference is ours (``marginal_oracle.py``). Clique
vectors cross here too, for whoever wants to go on in mbi with a model fitted by us.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mbi import CliqueVector as CliqueVector  # for model.py too: one file imports mbi

Clique = tuple[str, ...]
"""Names of variables that share a potential."""

BYTES_PER_CELL = 4 * 8
"""Of the junction tree: a table, its exponential, and both again in the backward pass (float64)."""


@dataclass(frozen=True)
class Structure:
    """Variables with their numbers of states, and the cliques with a potential each."""

    variables: tuple[str, ...]
    states: tuple[int, ...]
    cliques: tuple[Clique, ...]

    @property
    def sizes(self) -> dict[str, int]:
        """Return the number of states by variable."""
        return dict(zip(self.variables, self.states, strict=True))

    def shape(self, clique: Sequence[str]) -> tuple[int, ...]:
        """Return the shape of a table over some variables."""
        sizes = self.sizes
        return tuple(sizes[v] for v in clique)

    @property
    def slices(self) -> tuple[slice, ...]:
        """Return where each clique's cells lie in the flat vector."""
        slices, start = [], 0
        for clique in self.cliques:
            stop = start + math.prod(self.shape(clique))
            slices.append(slice(start, stop))
            start = stop
        return tuple(slices)

    @property
    def dimension(self) -> int:
        """Return the number of cells of all cliques together."""
        return int(self.slices[-1].stop)

    @property
    def order(self) -> tuple[str, ...]:
        """Return the order in which variables are summed out."""
        return _junction_tree(self)[0]

    @property
    def tree(self) -> tuple[Clique, ...]:
        """Return the junction tree's maximal cliques."""
        return _junction_tree(self)[1]

    @property
    def cells(self) -> int:
        """Return the number of cells of the junction tree, from its graph alone."""
        return sum(math.prod(self.shape(c)) for c in self.tree)

    @property
    def predicted_bytes(self) -> int:
        """Return what exact inference would hold in memory."""
        return BYTES_PER_CELL * self.cells

    def with_clique(self, clique: Clique) -> Structure:
        """Return the model with one more (zero) potential, whose gradient is its marginal."""
        return Structure(self.variables, self.states, (*self.cliques, clique))


def structure(sizes: Mapping[str, int], cliques: Sequence[Sequence[str]]) -> Structure:
    """Make a Structure from numbers of states by variable, and cliques."""
    return Structure(tuple(sizes), tuple(sizes.values()), tuple(tuple(c) for c in cliques))


def split(flat: Any, model: Structure) -> list[Any]:
    """Cut flat vectors (…, cell) of NumPy or JAX into one table (…, states) per clique."""
    return [
        flat[..., where].reshape((*flat.shape[:-1], *model.shape(clique)))
        for clique, where in zip(model.cliques, model.slices, strict=True)
    ]


@lru_cache(maxsize=256)
def _junction_tree(model: Structure) -> tuple[tuple[str, ...], tuple[Clique, ...]]:
    """Find an elimination order, greedy by table size, and the maximal cliques of its tree.

    Graph work only: no table is allocated, so this is how a size is predicted.
    """
    mbi = _mbi()
    domain = mbi.Domain(model.variables, model.states)
    tree, order = mbi.junction_tree.make_junction_tree(domain, model.cliques)
    return tuple(order), tuple(tuple(c) for c in mbi.junction_tree.maximal_cliques(tree))


def clique_vector(sizes: Mapping[str, int], tables: Mapping[Clique, np.ndarray]) -> CliqueVector:
    """Return tables over cliques as mbi's CliqueVector."""
    mbi = _mbi()
    domain = mbi.Domain(tuple(sizes), tuple(sizes.values()))
    factors = {c: mbi.Factor(domain.project(c), np.asarray(t)) for c, t in tables.items()}
    vector: CliqueVector = mbi.CliqueVector(domain, tuple(factors), factors)
    return vector


def _mbi() -> ModuleType:
    """Import mbi when first needed; it warns of JAX's compilation cache, which is on by default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("mbi")

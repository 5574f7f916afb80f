"""A discrete graphical model without its numbers: variables, cliques, junction tree, and tables.

Potentials θ of all cliques are one flat vector: clique after clique in the release's order, the
last variable of a clique fastest, as the tables are in the release file. Tables of cliques are
summed down to some columns (``marginalise``) and labelled by the public levels (``labelled``).

This is the one file that knows mbi (McKenna, Pullin, Sheldon, Miklau), which triangulates the graph
and builds the junction tree. mbi has no log-partition function, and its approximate oracle is not
belief propagation, so inference is ours (``marginal_oracle.py``). Clique vectors cross here too,
for whoever wants to go on in mbi with a model fitted by us.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise.artifact import ArgumentError, Level

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
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


def marginalise(
    tables: Mapping[Clique, np.ndarray], wanted: Clique, leading: int = 0
) -> np.ndarray | None:
    """Sum a clique's table down to the wanted columns, in their order.

    ``leading`` axes (of draws, say) come before the columns'. None: no clique holds them all.
    """
    for clique, table in tables.items():
        if set(wanted) <= set(clique):
            rest = tuple(i + leading for i, c in enumerate(clique) if c not in wanted)
            left = [c for c in clique if c in wanted]
            order = [*range(leading), *(left.index(c) + leading for c in wanted)]
            return np.transpose(table.sum(axis=rest), order)
    return None


def labelled(
    values: np.ndarray,
    columns: Clique,
    levels: Mapping[str, tuple[Level, ...]],
    leading: Mapping[str, Sequence[Level]] | None = None,
) -> xr.DataArray:
    """Return values as an xarray DataArray, with levels as coordinates.

    ``leading`` names the dimensions before the columns' and their coordinates.
    """
    import xarray as xr

    first = {unused_name(name, columns): list(at) for name, at in (leading or {}).items()}
    coordinates: dict[str, list[Level]] = {**first, **{c: list(levels[c]) for c in columns}}
    return xr.DataArray(values, coords=coordinates, dims=list(coordinates), name="share")


def unused_name(name: str, columns: Iterable[str]) -> str:
    """Return ``name``, with underscores added until no column is called so."""
    while name in columns:
        name += "_"
    return name


def level_table(
    columns: Clique, levels: Mapping[str, tuple[Level, ...]], values: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """Return values, one per level of every column, as a table indexed by (column, level)."""
    import pandas as pd

    pairs = [(column, level) for column in columns for level in levels[column]]
    index = pd.MultiIndex.from_tuples(pairs, names=["column", "level"])
    return pd.DataFrame(dict(values), index=index)


def check_probability(argument: str, value: object) -> None:
    """Raise an ArgumentError unless ``value`` is a number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise ArgumentError(f"{argument}: must be between 0 and 1, not {value!r}")

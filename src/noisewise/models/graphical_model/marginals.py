"""Marginals of some columns from the tables of cliques, with public levels as labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import ArgumentError, Level
from noisewise.models.graphical_model.structure import Clique

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


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

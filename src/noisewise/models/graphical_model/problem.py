"""Turn a release of contingency tables into arrays: the model, the noisy tables, their noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError, Level, Release, ReleaseError, Tables
from noisewise.models.graphical_model.marginal_oracle import DEFAULT_MEMORY, Oracle, choose_oracle
from noisewise.models.graphical_model.structure import Structure, structure


@dataclass(frozen=True, eq=False)
class TablesProblem:
    """Noisy tables of one group, with all that a method of inference needs to know of them.

    ``y`` and ``scale`` are counts (of people, where each has weight one). ``place`` says which free
    parameter each cell of θ is (tied potentials share one). Where n is secret, ``n`` is estimated
    from the tables' own totals.
    """

    model: Structure
    levels: dict[str, tuple[Level, ...]]
    y: np.ndarray
    n: float
    scale: float
    mechanism: str
    oracle: Oracle
    place: np.ndarray
    secret_n: bool

    @property
    def free(self) -> int:
        """Return the number of free parameters."""
        return int(self.place.max()) + 1

    @property
    def tied(self) -> bool:
        """Return whether some cliques share a potential."""
        return self.free < self.model.dimension


def problems(
    release: Release,
    *,
    tied: object = None,
    inference: str = "auto",
    memory: float = DEFAULT_MEMORY,
) -> list[TablesProblem]:
    """Return one problem per group of the release.

    Args:
        release: of family graphical-model.
        tied: None, True (all cliques of one shape share a potential), or lists of cliques that do.
        inference: ``"auto"``, ``"exact"`` or ``"loopy"``.
        memory: bytes an exact junction tree may take.
    """
    if release.family != "graphical-model":
        raise ReleaseError(f"this release is of family {release.family!r}, not graphical-model")
    block = next(b for b in release.blocks if isinstance(b.statistic, Tables))
    statistic = block.statistic
    if not isinstance(statistic, Tables):
        raise ReleaseError("a graphical-model release holds contingency tables")
    sizes = {c: len(statistic.levels[c]) for c in statistic.columns}
    model = structure(sizes, statistic.cliques)
    place = free_parameters(model, tied)
    oracle = choose_oracle(model, inference, memory)
    levels = {c: statistic.levels[c] for c in statistic.columns}
    counts = block.scaled.T
    n = _group_sizes(release, model, counts)
    if (n < 1).any():
        raise ArgumentError("release: inference needs at least one record in every group")
    return [
        TablesProblem(
            model, levels, y, float(size), float(block.noise_scales[0]), block.noise.mechanism,
            oracle, place, release.n is None,
        )
        for y, size in zip(counts, n, strict=True)
    ]  # fmt: skip


def _group_sizes(release: Release, model: Structure, counts: np.ndarray) -> np.ndarray:
    """Return n where it is public, else estimates from the tables' totals."""
    if release.n is not None:
        return np.atleast_1d(np.asarray(release.n, dtype=float))
    return estimated_sizes(model, counts)


def estimated_sizes(model: Structure, counts: np.ndarray) -> np.ndarray:
    """Estimate the number of people behind noisy tables (group, cell).

    Each table's total is an estimate; they are averaged by their precision.
    """
    totals = np.stack([counts[:, where].sum(axis=1) for where in model.slices], axis=1)
    precision = np.array([1.0 / (where.stop - where.start) for where in model.slices])
    return np.asarray(np.maximum(totals @ precision / precision.sum(), 1.0))


def free_parameters(model: Structure, tied: object) -> np.ndarray:
    """Return the number of each cell's free parameter.

    ``tied``: None, True (all cliques of one shape), or a list of lists of cliques, in the release's
    order of columns, that share a potential.
    """
    shares = _tied_cliques(model, tied)
    place = np.empty(model.dimension, np.int64)
    start: dict[int, int] = {}
    used = 0
    for number, where in enumerate(model.slices):
        group = shares.get(number, number)
        if group not in start:
            start[group], used = used, used + where.stop - where.start
        place[where] = start[group] + np.arange(where.stop - where.start)
    return place


def _tied_cliques(model: Structure, tied: object) -> dict[int, int]:
    """Return, for each clique that shares a potential, the first clique that it shares it with."""
    if tied is None or tied is False:
        return {}
    shapes = [model.shape(c) for c in model.cliques]
    if tied is True:
        return {i: shapes.index(shape) for i, shape in enumerate(shapes)}
    if isinstance(tied, str) or not isinstance(tied, Iterable):
        raise ArgumentError("tied: must be True, or lists of cliques that share a potential")
    shares: dict[int, int] = {}
    for group in tied:
        members = [_clique_number(model, clique) for clique in _clique_list(group)]
        if len({shapes[i] for i in members}) != 1:
            raise ArgumentError(
                "tied: cliques that share a potential must have tables of one shape"
            )
        for i in members:
            if i in shares:
                raise ArgumentError(f"tied: clique {model.cliques[i]} stands in two groups")
            shares[i] = members[0]
    return shares


def _clique_list(group: Any) -> list[Any]:
    if isinstance(group, str) or not isinstance(group, Iterable):
        raise ArgumentError("tied: each group must be a list of cliques")
    return list(group)


def _clique_number(model: Structure, clique: Any) -> int:
    try:
        return model.cliques.index(tuple(clique))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"tied: {clique!r} is not a clique of the release, which has "
            + ", ".join(map(str, model.cliques))
        ) from None

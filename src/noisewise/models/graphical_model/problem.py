"""From a Release to arrays: which model, which noisy tables, with which noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError, Level, Release, ReleaseError, Tables
from noisewise.models.graphical_model.oracle import MEMORY, Oracle, choose
from noisewise.models.graphical_model.structure import Structure, structure


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a method needs, for one group.

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
        """Number of free parameters."""
        return int(self.place.max()) + 1

    @property
    def tied(self) -> bool:
        """Whether some cliques share a potential."""
        return self.free < self.model.dimension


def problems(
    release: Release,
    *,
    tied: object = None,
    inference: str = "auto",
    memory: float = MEMORY,
) -> list[Problem]:
    """One problem per group of the release."""
    if release.family != "graphical-model":
        raise ReleaseError(f"this release is of family {release.family!r}, not graphical-model")
    block = next(b for b in release.blocks if isinstance(b.statistic, Tables))
    statistic = block.statistic
    if not isinstance(statistic, Tables):
        raise ReleaseError("a graphical-model release holds contingency tables")
    sizes = {c: len(statistic.levels[c]) for c in statistic.columns}
    model = structure(sizes, statistic.cliques)
    place = _place(model, tied)
    oracle = choose(model, inference, memory)
    levels = {c: statistic.levels[c] for c in statistic.columns}
    counts = block.scaled.T
    n = _sizes(release, model, counts)
    if (n < 1).any():
        raise ArgumentError("release: inference needs at least one record in every group")
    return [
        Problem(
            model, levels, y, float(size), float(block.noise_scales[0]), block.noise.mechanism,
            oracle, place, release.n is None,
        )
        for y, size in zip(counts, n, strict=True)
    ]  # fmt: skip


def _sizes(release: Release, model: Structure, counts: np.ndarray) -> np.ndarray:
    """n where it is public; else what the tables' totals say, each weighted by its precision."""
    if release.n is not None:
        return np.atleast_1d(np.asarray(release.n, dtype=float))
    return estimated_sizes(model, counts)


def estimated_sizes(model: Structure, counts: np.ndarray) -> np.ndarray:
    """The number of people behind noisy tables (group, cell)."""
    totals = np.stack([counts[:, where].sum(axis=1) for where in model.slices], axis=1)
    precision = np.array([1.0 / (where.stop - where.start) for where in model.slices])
    return np.asarray(np.maximum(totals @ precision / precision.sum(), 1.0))


def _place(model: Structure, tied: object) -> np.ndarray:
    """Each cell's free parameter. ``tied``: None, True (all cliques of one shape), or a list of
    lists of cliques, in the release's order of columns, that share a potential."""
    shares = _groups(model, tied)
    place = np.empty(model.dimension, np.int64)
    start: dict[int, int] = {}
    used = 0
    for number, where in enumerate(model.slices):
        group = shares.get(number, number)
        if group not in start:
            start[group], used = used, used + where.stop - where.start
        place[where] = start[group] + np.arange(where.stop - where.start)
    return place


def _groups(model: Structure, tied: object) -> dict[int, int]:
    if tied is None or tied is False:
        return {}
    shapes = [model.shape(c) for c in model.cliques]
    if tied is True:
        return {i: shapes.index(shape) for i, shape in enumerate(shapes)}
    if isinstance(tied, str) or not isinstance(tied, Iterable):
        raise ArgumentError("tied: must be True, or lists of cliques that share a potential")
    shares: dict[int, int] = {}
    for group in tied:
        members = [_member(model, clique) for clique in _listed(group)]
        if len({shapes[i] for i in members}) != 1:
            raise ArgumentError(
                "tied: cliques that share a potential must have tables of one shape"
            )
        for i in members:
            if i in shares:
                raise ArgumentError(f"tied: clique {model.cliques[i]} stands in two groups")
            shares[i] = members[0]
    return shares


def _listed(group: Any) -> list[Any]:
    if isinstance(group, str) or not isinstance(group, Iterable):
        raise ArgumentError("tied: each group must be a list of cliques")
    return list(group)


def _member(model: Structure, clique: Any) -> int:
    try:
        return model.cliques.index(tuple(clique))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"tied: {clique!r} is not a clique of the release, which has "
            + ", ".join(map(str, model.cliques))
        ) from None

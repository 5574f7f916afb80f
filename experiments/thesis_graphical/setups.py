"""Synthetic truths, tables and noisy tables of thesis 3.3.2, one random stream for each.

Ten nodes, edge potentials from a flat Dirichlet. Noise is NumPy's: a simulation. ``moved`` is 2
(errata E3), or 1 for the thesis' printed sensitivity |C|, under which the same ε costs twice as
much. Erdős–Rényi graphs have edge probability 0.3 (not stated in the thesis) and are redrawn until
they are connected and their junction tree has at most ``most_cells`` cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from experiments.graphical_models import simulate
from experiments.graphical_models.accuracy import GRAPHS
from experiments.reproduce.store import TrialStore
from noisewise.models.graphical_model.fitted_model import GraphicalModel
from noisewise.models.graphical_model.problem import TablesProblem

SAMPLED = 1_000_000
"""Records drawn at a time: ten million would not fit."""


@dataclass(frozen=True)
class Setup:
    """A truth, and the exact tables of n records from it."""

    true: GraphicalModel
    exact: np.ndarray
    n: int
    stream: tuple[int, ...]

    def released(self, epsilon: float, moved: int = 2, again: int = 0) -> TablesProblem:
        """Noisy tables; ``again`` counts replications on one population."""
        rng = np.random.default_rng([*self.stream, round(1e6 * epsilon), moved, again])
        return simulate.noisy(self.true, self.exact, self.n, epsilon, rng, moved)

    def mse(self, model: GraphicalModel) -> float:
        """Mean squared error of all cells of the clique marginals."""
        mine, theirs = self.true.clique_marginals(), model.clique_marginals()
        return float(np.mean(np.concatenate([(mine[c] - theirs[c]).ravel() ** 2 for c in mine])))


@lru_cache(maxsize=8)
def truth(
    kind: str, trial: int, seed: int, states: int, most_cells: int, nodes: int
) -> GraphicalModel:
    """The same for every n and ε."""
    rng = np.random.default_rng([seed, GRAPHS.index(kind), trial, states])
    while True:
        graph = simulate.graph(kind, rng, nodes, states)
        if kind != "erdos-renyi" or graph.cells <= most_cells:
            return simulate.truth(graph, rng)


@lru_cache(maxsize=4)
def population(
    kind: str, trial: int, n: int, seed: int, states: int, most_cells: int, nodes: int
) -> Setup:
    """n records of a truth, as tables."""
    true = truth(kind, trial, seed, states, most_cells, nodes)
    stream = (seed, GRAPHS.index(kind), trial, states, n)
    sizes = [min(SAMPLED, n - start) for start in range(0, n, SAMPLED)]
    seeds = np.random.default_rng(stream).integers(2**31, size=len(sizes))
    tables = [simulate.counts(true, m, int(s)) for m, s in zip(sizes, seeds, strict=True)]
    return Setup(true, np.sum(tables, axis=0), n, stream)


def of(settings: Mapping[str, Any], kind: str, trial: int, n: int, nodes: int = 10) -> Setup:
    """As the settings say."""
    states, most = settings.get("states", 10), settings["most_cells"]
    return population(kind, trial, n, settings["seed"], states, most, nodes)


def every(
    settings: Mapping[str, Any], trials: TrialStore,
    compute: Callable[[Mapping[str, Any], int, int], list[dict[str, Any]]],
) -> pd.DataFrame:  # fmt: skip
    """Rows of every N and trial."""
    rows: list[Mapping[str, Any]] = []
    for n in settings["sizes"]:
        for trial in range(settings["trials"]):
            key = {"n": n, "trial": trial}
            rows += trials.cell(key, lambda n=n, t=trial: compute(settings, n, t))
    return pd.DataFrame(rows)

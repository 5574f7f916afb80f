"""Synthetic models and noisy tables as in thesis 3.3.2: ten nodes, ten states.

Noise here is NumPy's: a simulation, nobody's privacy depends on it. Its law is the mechanism's own,
discrete Laplace with the sensitivity of errata E3.
"""

from __future__ import annotations

import numpy as np

from experiments.exponential_families.simulate import discrete_laplace
from noisewise.models.graphical_model.fitted_model import GraphicalModel
from noisewise.models.graphical_model.marginal_oracle import choose_oracle
from noisewise.models.graphical_model.problem import TablesProblem
from noisewise.models.graphical_model.structure import Structure, structure

NODES = STATES = 10
EDGE_PROBABILITY = 0.3


def graph(
    kind: str, rng: np.random.Generator, nodes: int = NODES, states: int = STATES
) -> Structure:
    """``chain``, ``third-order`` (1 ≤ |i - j| ≤ 3) or ``erdos-renyi`` (redrawn until connected)."""
    names = [f"x{i}" for i in range(nodes)]
    reach = {"chain": 1, "third-order": 3}.get(kind)
    while True:
        pairs = [
            (i, j)
            for i in range(nodes)
            for j in range(i + 1, nodes)
            if (j - i <= reach if reach else rng.random() < EDGE_PROBABILITY)
        ]
        if _connected(nodes, pairs):
            break
    return structure(dict.fromkeys(names, states), [(names[i], names[j]) for i, j in pairs])


def _connected(nodes: int, pairs: list[tuple[int, int]]) -> bool:
    reached, fresh = {0}, {0}
    while fresh:
        fresh = {j for p in pairs for i, j in (p, p[::-1]) if i in fresh} - reached
        reached |= fresh
    return len(reached) == nodes


def truth(model: Structure, rng: np.random.Generator) -> GraphicalModel:
    """Potentials of every edge from a flat Dirichlet."""
    theta = [np.log(rng.dirichlet(np.ones(w.stop - w.start))) for w in model.slices]
    levels = {v: tuple(range(k)) for v, k in model.sizes.items()}
    return GraphicalModel(model, levels, np.concatenate(theta), "truth", 0.0)


def counts(true: GraphicalModel, n: int, seed: int) -> np.ndarray:
    """The exact tables of n records."""
    records, model = true.sample(n, seed=seed), true.structure
    flat = []
    for clique in model.cliques:
        shape = model.shape(clique)
        cell = np.ravel_multi_index(tuple(np.asarray(records[c]) for c in clique), shape)
        flat.append(np.bincount(cell, minlength=int(np.prod(shape))))
    return np.concatenate(flat).astype(float)


def noisy(
    true: GraphicalModel, exact: np.ndarray, n: int, epsilon: float, rng: np.random.Generator,
    moved: int = 2,
) -> TablesProblem:  # fmt: skip
    """The tables with discrete Laplace noise of scale 2|C|/ε.

    ``moved`` is by how much a replaced record changes one table: 2, or 1 as the thesis' Proposition
    2 has it (errata E3: then it costs twice the ε).
    """
    scale = moved * len(true.cliques) / epsilon
    noise = discrete_laplace(rng, scale, exact.shape)
    return TablesProblem(
        true.structure, dict(true.levels), exact + noise, float(n), scale, "laplace",
        choose_oracle(true.structure), np.arange(true.structure.dimension), False,
    )  # fmt: skip

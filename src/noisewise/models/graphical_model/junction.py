"""The one file that knows mbi: domains and junction trees in, plain tuples out.

mbi (McKenna, Pullin, Sheldon, Miklau) triangulates the graph and builds the tree; it has no
log-partition function, and its approximate oracle is not belief propagation, so inference is ours
(``exact.py``, ``loopy.py``). Factors and clique vectors cross here too, for whoever wants to go on
in mbi with a model fitted by us.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Clique = tuple[str, ...]


def _mbi() -> Any:
    """Loaded when first needed. It warns of JAX's compilation cache, which is on by default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mbi

    return mbi


def junction_tree(
    sizes: Mapping[str, int], cliques: Sequence[Clique]
) -> tuple[tuple[str, ...], tuple[Clique, ...]]:
    """An elimination order, greedy by table size, and the maximal cliques of the tree it makes.

    Graph work only: no table is allocated, so this is how a size is predicted.
    """
    mbi = _mbi()
    domain = mbi.Domain(tuple(sizes), tuple(sizes.values()))
    tree, order = mbi.junction_tree.make_junction_tree(domain, cliques)
    return tuple(order), tuple(tuple(c) for c in mbi.junction_tree.maximal_cliques(tree))


def clique_vector(sizes: Mapping[str, int], tables: Mapping[Clique, np.ndarray]) -> Any:
    """Tables over cliques as mbi's own type."""
    mbi = _mbi()
    domain = mbi.Domain(tuple(sizes), tuple(sizes.values()))
    factors = {c: mbi.Factor(domain.project(c), np.asarray(t)) for c, t in tables.items()}
    return mbi.CliqueVector(domain, tuple(factors), factors)

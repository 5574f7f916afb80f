"""Exact records from an eliminated model: each bucket, read backwards, is a conditional law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from noisewise.models.graphical_model.exact import Bucket

AT_ONCE = 2**16
"""Records per batch: a batch's table of cumulative probabilities stays small."""


def backwards(buckets: Sequence[Bucket], n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Level indices of n records; the last variable summed out is the first one drawn."""
    laws = [(b.variable, b.scope[1:], _cumulative(np.asarray(b.table))) for b in reversed(buckets)]
    drawn = {variable: np.empty(n, np.int64) for variable, _, _ in laws}
    for start in range(0, n, AT_ONCE):
        window = slice(start, min(start + AT_ONCE, n))
        for variable, given, law in laws:
            rows = law[tuple(drawn[v][window] for v in given)]
            u = rng.random(window.stop - window.start)
            drawn[variable][window] = (u[:, None] > rows[..., :-1]).sum(axis=1)
    return drawn


def _cumulative(table: np.ndarray) -> np.ndarray:
    """log-weights, own axis first → cumulative probabilities, own axis last."""
    weights = np.exp(table - table.max(axis=0))
    return np.moveaxis(np.cumsum(weights / weights.sum(axis=0), axis=0), 0, -1)

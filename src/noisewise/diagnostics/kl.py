"""Kullback-Leibler divergence of tables of probabilities."""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr


def kl(p: np.ndarray, q: np.ndarray) -> float:
    """KL(p‖q) = Σ p log(p/q) in nats; infinite where q rules out what p allows."""
    p, q = np.asarray(p, float), np.asarray(q, float)
    for name, table in (("p", p), ("q", q)):
        if (table < 0).any() or abs(table.sum() - 1) > 1e-8:
            raise ValueError(f"{name}: must be probabilities that add up to 1")
    if p.shape != q.shape:
        raise ValueError(f"p, q: must have one shape, not {p.shape} and {q.shape}")
    return float(rel_entr(p, q).sum())

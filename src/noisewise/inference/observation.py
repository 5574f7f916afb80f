"""Noisy sums as one release observes them, and the pooling of several observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Observation:
    """Noisy sums (group, component) with the scale and the law of their noise."""

    z: np.ndarray
    noise_scale: float
    mechanism: str


def averaged(observed: Sequence[Observation]) -> Observation:
    """Return the average weighted by precision, as one normal observation.

    Exact where all noise is normal, and a fair guess otherwise:

    Σ (z_i - s)²/σ_i² = (z̄ - s)²/σ² + const,   1/σ² = Σ 1/σ_i²,   z̄ = σ² Σ z_i/σ_i².
    """
    weights = np.array([1 / o.noise_scale**2 for o in observed])
    z = np.tensordot(weights, np.stack([o.z for o in observed]), 1) / weights.sum()
    return Observation(z, float(weights.sum() ** -0.5), "gaussian")


def reduced(observed: Sequence[Observation]) -> list[Observation]:
    """Return as few observations as say the same of s.

    All with normal noise are exactly one, which comes last.
    """
    normal = [o for o in observed if o.mechanism == "gaussian"]
    kept = [o for o in observed if o.mechanism != "gaussian"]
    return [*kept, averaged(normal) if len(normal) > 1 else normal[0]] if normal else kept

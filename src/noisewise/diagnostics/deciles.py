"""Rankings: does what belongs to the top or bottom tenth stay near it?"""

from __future__ import annotations

import numpy as np
from scipy import stats


def deciles(values: np.ndarray, classes: int = 10) -> np.ndarray:
    """0 for the lowest tenth of the values, …, 9 for the highest; equally many of each."""
    values = np.asarray(values, float)
    if values.ndim != 1 or len(values) < classes:
        raise ValueError(f"values: must be one row of at least {classes}, not {values.shape}")
    order = stats.rankdata(values, method="ordinal") - 1
    return np.asarray(order * classes // len(values)).astype(int)


def decile_confusion(estimate: np.ndarray, target: np.ndarray, classes: int = 10) -> np.ndarray:
    """Counts (decile by target, decile by estimate)."""
    if np.shape(estimate) != np.shape(target):
        raise ValueError(
            f"estimate, target: must have one shape, not {np.shape(estimate)}, {np.shape(target)}"
        )
    counts = np.zeros((classes, classes), int)
    np.add.at(counts, (deciles(target, classes), deciles(estimate, classes)), 1)
    return counts


def outer_deciles_kept(confusion: np.ndarray) -> tuple[float, float]:
    """Shares of the lowest and of the highest class that stay within the outer two classes."""
    low, high = confusion[0], confusion[-1]
    return float(low[:2].sum() / low.sum()), float(high[-2:].sum() / high.sum())

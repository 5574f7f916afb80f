"""A partition's answer as a whole number. What the floating-point fit did cannot leave the lattice.

Everything here maps one partition's answer to one lattice value, so that replacing, adding or
removing a record, which changes the answer of one partition only, moves the sum by at most the
lattice's range (``docs/proofs/partition.md``, section 2). NaN, the answer of a partition that could
not be fitted, has a fixed place: probability one half, or the centre of the interval.
"""

from __future__ import annotations

import numpy as np

from noisewise.artifact import ProbabilitySums, QuantileSum

_UNKNOWN = 0.5


def probability_codes(statistic: ProbabilitySums, probabilities: np.ndarray) -> np.ndarray:
    """Whole numbers in [0, 2**bits], shape (partitions, cutoffs)."""
    known = np.where(np.isnan(probabilities), _UNKNOWN, probabilities)
    if statistic.floor is not None:
        # -2 log p over its range -2 log floor.
        known = np.log(np.clip(known, statistic.floor, 1.0)) / np.log(statistic.floor)
    return _codes(known, 0, statistic.bits)


def quantile_codes(statistic: QuantileSum, quantiles: np.ndarray) -> np.ndarray:
    """Whole numbers in [-2**bits, 2**bits], shape (partitions, 1): distances from the centre."""
    with np.errstate(all="ignore"):
        distance = (quantiles - statistic.centre) / statistic.radius
    return _codes(np.nan_to_num(distance, nan=0.0)[:, None], -(2**statistic.bits), statistic.bits)


def _codes(values: np.ndarray, low: int, bits: int) -> np.ndarray:
    """The last step is a clamp of whole numbers: the range holds whatever rounding did before."""
    steps = np.floor(np.clip(values, -1.0, 1.0) * 2.0**bits + 0.5).astype(np.int64)
    return np.asarray(np.clip(steps, low, 2**bits))

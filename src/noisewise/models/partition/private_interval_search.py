"""A private search for an interval that holds the partitions' quantiles.

``centred``: candidates are intervals c ± r, r = scale · 2^t, t = -16 … 16, and c = k r, |k| ≤ 32. A
candidate's score is the number of partition quantiles inside, times 64 - (t + 16), less a public
penalty (2 nats per level below the public scale, 2.5 above): narrow intervals are worth more.
One more candidate, "no interval", scores as one that held a fifth of the quantiles. OpenDP's
report-noisy-max picks; a score moves by at most 64.

``symmetric`` (thesis 4; errata E5): intervals ± scale · 2^t, t = 0, 1, …, cap; above-threshold
stops at the first that holds a noisy share of the M quantiles. ThresholdNoise noise Lap(2/ε), count
noise Lap(4/ε), both discrete. Proofs: ``docs/proofs/partition.md``, sections 4 and 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from noisewise.artifact import SearchError
from noisewise.privacy.mechanisms import Calibrated, calibrate, select_least
from noisewise.privacy.sensitivity import Sensitivity

MAX_LEVEL = 16
"""Radii reach from scale · 2^-16 to scale · 2^16 (chosen)."""
MAX_STEPS = 32
"""Centres reach 32 radii from zero on either side (chosen)."""
MAX_WORTH = 64
"""Weight of the narrowest intervals (chosen); it is the sensitivity of a score."""
PENALTY_BELOW, PENALTY_ABOVE = 2.0, 2.5
"""Nats per level below and above the public scale (chosen)."""
NO_INTERVAL_ONE_IN = 5
""" "No interval" is worth what a fifth of the quantiles would be (chosen)."""
MAX_PENALTY = 2.0**60
"""Public penalties are cut off here, so that scores fit into 64 bits."""


@dataclass(frozen=True)
class Candidates:
    """Public intervals, their weights and their penalties in nats."""

    centre: np.ndarray
    radius: np.ndarray
    worth: np.ndarray
    nats: np.ndarray


def candidates(scale: float) -> Candidates:
    """Return the intervals of every (t, k); a function of public numbers only."""
    levels, steps = np.arange(-MAX_LEVEL, MAX_LEVEL + 1), np.arange(-MAX_STEPS, MAX_STEPS + 1)
    t, k = np.repeat(levels, len(steps)), np.tile(steps, len(levels))
    radius = scale * 2.0**t
    nats = np.where(t < 0, -PENALTY_BELOW * t, PENALTY_ABOVE * t)
    return Candidates(k * radius, radius, MAX_WORTH - (t + MAX_LEVEL), nats)


def counts(quantiles: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Count the quantiles in each closed interval; NaN lies in none."""
    known = np.sort(quantiles[~np.isnan(quantiles)])
    return np.searchsorted(known, upper, "right") - np.searchsorted(known, lower, "left")


def penalties(quantiles: np.ndarray, tried: Candidates, cost: float) -> np.ndarray:
    """Return whole numbers to be made small, "no interval" last; each moves by ``MAX_WORTH``."""
    inside = counts(quantiles, tried.centre - tried.radius, tried.centre + tried.radius)
    nat = 2 * MAX_WORTH / cost
    public = np.rint(np.minimum(tried.nats * nat, MAX_PENALTY)).astype(np.int64)
    no_interval = -(MAX_WORTH * len(quantiles) // NO_INTERVAL_ONE_IN)
    return np.append(public - tried.worth * inside, no_interval)


def centred_interval(quantiles: np.ndarray, scale: float, cost: float) -> tuple[float, float]:
    """Return centre and radius, chosen by one noisy maximum for all of ``cost``."""
    tried = candidates(scale)
    chosen = select_least(penalties(quantiles, tried, cost), MAX_WORTH, "pure", cost)
    if chosen == len(tried.centre):
        raise SearchError(
            "no interval was found that holds the partitions' quantiles; the budget stays spent. "
            f"Intervals from {tried.radius[0]:.3g} to {tried.radius[-1]:.3g} wide were tried, at "
            f"most {MAX_STEPS} widths from 0: is scale={scale:g} the coefficient's order of "
            "magnitude? Otherwise raise epsilon_bounds, or the number of partitions"
        )
    return float(tried.centre[chosen]), float(tried.radius[chosen])


@dataclass(frozen=True)
class ThresholdNoise:
    """Above-threshold's two noises, each for half of the cost."""

    threshold: Calibrated
    query: Calibrated


def threshold_noise(cost: float) -> ThresholdNoise:
    """Calibrate to sensitivity 1 (threshold) and 2 (counts): scales 2/ε and 4/ε (errata E5)."""
    half = cost / 2
    one, two = Sensitivity(1, 1), Sensitivity(2, 4)
    return ThresholdNoise(calibrate("laplace", one, half), calibrate("laplace", two, half))


def above_threshold(queries: np.ndarray, level: int, noise: ThresholdNoise) -> int | None:
    """Return the first query that reaches the noisy level, or None; later ones stay unasked."""
    bar = _noisy(noise.threshold, level)
    for position, query in enumerate(queries):
        if _noisy(noise.query, int(query)) >= bar:
            return position
    return None


def _noisy(noise: Calibrated, value: int) -> int:
    return int(noise.draw(np.array([value], np.int64))[0])


def symmetric_radius(
    quantiles: np.ndarray, scale: float, coverage: float, doublings: int, noise: ThresholdNoise
) -> float:
    """Return the radius of an interval around zero, found by above-threshold."""
    radii = scale * 2.0 ** np.arange(doublings + 1)
    level = math.ceil(coverage * len(quantiles))
    position = above_threshold(counts(quantiles, -radii, radii), level, noise)
    if position is None:
        raise SearchError(
            f"the bound search found no bound within its cap: up to ±{radii[-1]:.3g}, no interval "
            f"held a noisy {coverage:.0%} of the partitions' quantiles; the budget stays spent. "
            "Raise scale, doublings, epsilon_bounds or the number of partitions"
        )
    return float(radii[position])

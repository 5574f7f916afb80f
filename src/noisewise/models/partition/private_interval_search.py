"""An interval for the partition quantiles, found privately.

``centred``: candidates are intervals c ± r, r = scale · 2^t, t = -16 … 16, and c = k r, |k| ≤ 32. A
candidate's score is the number of partition quantiles inside, times 64 - (t + 16), less a public
penalty (2 nats per level below the public scale, 2.5 above): narrow intervals are worth more.
One more candidate, "no interval", scores as one that held a fifth of the quantiles. OpenDP's
report-noisy-max picks; a score moves by at most 64.

``symmetric`` (thesis 4; errata E5): intervals ± scale · 2^t, t = 0, 1, …, cap; above-threshold
stops at the first that holds a noisy share of the M quantiles. Threshold noise Lap(2/ε), count
noise Lap(4/ε), both discrete. Proofs: ``docs/proofs/partition.md``, sections 4 and 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from noisewise.artifact import SearchError
from noisewise.privacy.mechanisms import Calibrated, calibrate, select_least
from noisewise.privacy.sensitivity import Sensitivity

LEVELS = 16
STEPS = 32
WORTH = 64
"""Weight of the narrowest intervals; it is the sensitivity of a score."""

NATS_BELOW, NATS_ABOVE = 2.0, 2.5
NOTHING = 5
""" "No interval" is worth what a fifth of the quantiles would be."""


@dataclass(frozen=True)
class Candidates:
    """Public intervals, their weights and their penalties in nats."""

    centre: np.ndarray
    radius: np.ndarray
    worth: np.ndarray
    nats: np.ndarray


def candidates(scale: float) -> Candidates:
    """Every (t, k); a function of public numbers only."""
    levels, steps = np.arange(-LEVELS, LEVELS + 1), np.arange(-STEPS, STEPS + 1)
    t, k = np.repeat(levels, len(steps)), np.tile(steps, len(levels))
    radius = scale * 2.0**t
    nats = np.where(t < 0, -NATS_BELOW * t, NATS_ABOVE * t)
    return Candidates(k * radius, radius, WORTH - (t + LEVELS), nats)


def counts(quantiles: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """How many quantiles lie in each closed interval; NaN lies in none."""
    known = np.sort(quantiles[~np.isnan(quantiles)])
    return np.searchsorted(known, upper, "right") - np.searchsorted(known, lower, "left")


def penalties(quantiles: np.ndarray, found: Candidates, cost: float) -> np.ndarray:
    """Whole numbers to be made small, "no interval" last; each moves by at most ``WORTH``."""
    inside = counts(quantiles, found.centre - found.radius, found.centre + found.radius)
    nat = 2 * WORTH / cost
    public = np.rint(np.minimum(found.nats * nat, 2.0**60)).astype(np.int64)
    return np.append(public - found.worth * inside, -(WORTH * len(quantiles) // NOTHING))


def centred(quantiles: np.ndarray, scale: float, cost: float) -> tuple[float, float]:
    """Centre and radius by one noisy maximum, for all of ``cost``."""
    found = candidates(scale)
    chosen = select_least(penalties(quantiles, found, cost), WORTH, "pure", cost)
    if chosen == len(found.centre):
        raise SearchError(
            "no interval was found that holds the partitions' quantiles; the budget stays spent. "
            f"Intervals from {found.radius[0]:.3g} to {found.radius[-1]:.3g} wide were tried, at "
            f"most {STEPS} widths from 0: is scale={scale:g} the coefficient's order of magnitude? "
            "Otherwise raise epsilon_bounds, or the number of partitions"
        )
    return float(found.centre[chosen]), float(found.radius[chosen])


@dataclass(frozen=True)
class Threshold:
    """Above-threshold's two noises, each for half of the cost."""

    threshold: Calibrated
    query: Calibrated


def threshold_noise(cost: float) -> Threshold:
    """Sensitivity 1 for the threshold, 2 for each count: scales 2/ε and 4/ε (errata E5)."""
    half = cost / 2
    one, two = Sensitivity(1, 1), Sensitivity(2, 4)
    return Threshold(calibrate("laplace", one, half), calibrate("laplace", two, half))


def above_threshold(queries: np.ndarray, level: int, noise: Threshold) -> int | None:
    """The first query that reaches the noisy level, or None; later queries stay unasked."""
    bar = _noisy(noise.threshold, level)
    for position, query in enumerate(queries):
        if _noisy(noise.query, int(query)) >= bar:
            return position
    return None


def _noisy(noise: Calibrated, value: int) -> int:
    return int(noise.draw(np.array([value], np.int64))[0])


def symmetric(
    quantiles: np.ndarray, scale: float, coverage: float, doublings: int, noise: Threshold
) -> float:
    """The radius of an interval around zero."""
    radii = scale * 2.0 ** np.arange(doublings + 1)
    level = math.ceil(coverage * len(quantiles))
    found = above_threshold(counts(quantiles, -radii, radii), level, noise)
    if found is None:
        raise SearchError(
            f"the bound search found no bound within its cap: up to ±{radii[-1]:.3g}, no interval "
            f"held a noisy {coverage:.0%} of the partitions' quantiles; the budget stays spent. "
            "Raise scale, doublings, epsilon_bounds or the number of partitions"
        )
    return float(radii[found])

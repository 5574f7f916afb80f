"""DPTheilSen, our re-implementation: private medians of the lines through pairs of records.

D. Alabi, A. McMillan, J. Sarathy, A. Smith, S. Vadhan, "Differentially private simple linear
regression" (PoPETs 2022), for one covariate; columns are mapped to [0, 1]. Records are matched k
times without looking at them, so each is in k pairs. Every pair with distinct x gives the line
through both, and its heights at x = ¼ and x = ¾. The median of either is drawn by the exponential
mechanism on [-½, 3/2] with half of ε, utility -½ |#below - #above|, sensitivity k under replace-one
neighbours; widened (DPWideTheilSen) by ``WIDTH`` around every height, so that heights that
coincide do not leave the median without mass. Noise is NumPy's.
"""

from __future__ import annotations

import numpy as np

LIMITS = (-0.5, 1.5)
"""Range of the heights, as in the paper."""
AT = (0.25, 0.75)
"""Where the line is released."""
WIDTH = 0.01
"""θ of the widened median, as in the authors' code."""
MATCHINGS = 10
"""k (chosen): the rank error of the medians does not depend on it, and its other error hardly."""


def matchings(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """Return k matchings without a common pair (pair, 2) of n records, one left out if n is odd.

    A round robin of records in random order: in round r the last meets r, and r - i meets r + i.
    """
    order = rng.permutation(n)[: n - n % 2]
    around = len(order) - 1
    rounds = rng.choice(around, k, replace=False)[:, None]
    steps = np.arange(1, (around + 1) // 2)
    one = np.column_stack([rounds, (rounds - steps) % around])
    other = np.column_stack([np.full(k, around), (rounds + steps) % around])
    return order[np.stack([one.ravel(), other.ravel()], axis=1)]


def heights(x: np.ndarray, y: np.ndarray, pairs: np.ndarray, at: float) -> np.ndarray:
    """Return the heights at ``at`` of the lines through pairs whose x differ."""
    one, other = pairs.T
    apart = x[other] - x[one]
    one, other, apart = (v[apart != 0] for v in (one, other, apart))
    slope = (y[other] - y[one]) / apart
    middle = (x[one] + x[other]) / 2
    return (y[one] + y[other]) / 2 + slope * (at - middle)


def median_law(
    values: np.ndarray,
    epsilon: float,
    sensitivity: float,
    limits: tuple[float, float] = LIMITS,
    width: float = WIDTH,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps of the exponential mechanism's density: their edges and log heights.

    Heights are up to a common factor.

    Args:
        values: of which the median is wanted; held within the limits.
        epsilon: of this draw.
        sensitivity: how many values a record can change.
        limits: of the answer.
        width: the utility of a point is the best within this distance.
    """
    low, high = limits
    held = np.sort(np.clip(values, low, high))
    m = len(held)
    # The utility rises up to the median and falls from there on, so a point's best within the width
    # is that of the point which lies so much nearer to the median: steps move away from it.
    half = m // 2
    steps = np.concatenate([held[:half] - width, held[half:] + width])
    edges = np.concatenate([[low], np.clip(steps, low, high), [high]])
    utility = -np.abs(np.arange(m + 1) - m / 2)
    return edges, epsilon * utility / (2 * sensitivity)


def private_median(
    rng: np.random.Generator, values: np.ndarray, epsilon: float, sensitivity: float
) -> float:
    """Draw from the exponential mechanism for the median."""
    edges, log_height = median_law(values, epsilon, sensitivity)
    with np.errstate(divide="ignore"):
        log_mass = log_height + np.log(np.diff(edges))
    # The largest of log mass plus a Gumbel variable is a draw in proportion to the mass.
    place = int(np.argmax(log_mass + rng.gumbel(size=len(log_mass))))
    return float(rng.uniform(edges[place], edges[place + 1]))


def theil_sen(
    rng: np.random.Generator, x: np.ndarray, y: np.ndarray, epsilon: float, k: int = MATCHINGS
) -> np.ndarray:
    """Return slope and intercept of columns in [0, 1]."""
    pairs = matchings(rng, len(x), k)
    at = [private_median(rng, heights(x, y, pairs, p), epsilon / 2, k) for p in AT]
    slope = (at[1] - at[0]) / (AT[1] - AT[0])
    return np.array([slope, at[0] - slope * AT[0]])

"""When the private interval of a quantile release may be the wrong one; from public numbers only.

The noise on a sum says nothing about a search that landed elsewhere: every quantile is then clipped
to one end of a wrong interval, and the answer sits there with little noise.

``centred``: one noisy maximum over 33 widths of 65 centres. In nats of its noise, an interval of
the public scale that holds all M quantiles leads an empty one by ¾ · M ε/2; the empty ones together
weigh 65 (1 + 1/(e² - 1) + 1/(e^2.5 - 1)) = 81 (penalties of 2 and 2.5 nats per level). They win
with odds 81 exp(-⅜ M ε): 1 to 22 at M ε = 20, 2 to 1 at 10. Every level by which the scale is off
costs 2 or 2.5 nats, as much as 6 of M ε: the limit is for a good scale, which nobody can check.

``symmetric``: an empty radius is taken with probability near ½ exp(-c M ε/4), c the coverage. Of
ten radii that are too small, one is taken with probability 3 % at c M ε = 20.
"""

from __future__ import annotations

import math

from noisewise.artifact.statistics import QuantileSum

ENOUGH = 20.0
"""M ε, or c M ε where the search is symmetric."""

EDGE = 0.9
"""A mean this far out means that most quantiles were clipped, or nearly so."""

COVERAGE = 0.5
"""What a symmetric search takes unless told; the file does not say."""


def needed(search: str, coverage: float = COVERAGE) -> float:
    """The least M ε at which the search misses in no more than about one case in twenty."""
    return ENOUGH if search == "centred" else ENOUGH / coverage


def weak_search(statistic: QuantileSum, coverage: float = COVERAGE) -> str | None:
    """In words, where the search had too little budget for its number of partitions."""
    strength, least = (
        statistic.partitions * statistic.search_cost,
        needed(statistic.search, coverage),
    )
    if strength >= least:
        return None
    return (
        f"the private search for the interval had partitions x epsilon_bounds = {strength:.3g}, "
        f"and needs about {least:.3g}: it may have missed, and then the answer and its interval "
        "are wrong by far more than they show"
    )


def at_the_edge(statistic: QuantileSum, noisy: float, reach: float) -> str | None:
    """In words, where the answer, or what its noise allows, is at an end of the found interval."""
    most = statistic.partitions * math.ldexp(1, statistic.bits)
    if abs(noisy) < EDGE * most and abs(noisy) + reach < most:
        return None
    low, high = statistic.centre - statistic.radius, statistic.centre + statistic.radius
    return (
        f"the answer, or its interval, lies at the edge of the interval that the search found "
        f"({low:.4g} to {high:.4g}); what lies beyond was clipped to it, so the quantile may be "
        "further out"
    )

"""The smallest ε that gives wanted widths, from few simulated plans.

The mean width of an interval falls smoothly with ε: log width is nearly linear in log ε between two
values. So the search brackets the wanted width, interpolates between the ends, and stops once the
width is met within two percent; every ε that was simulated serves all parameters. Where no ε up to
ten will do, more records would: a squared width is a/n without privacy, and noise whose size does
not depend on n adds c/n².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from noisewise.artifact import ArgumentError

LARGEST_EPSILON = 10.0
"""The largest ε that is looked at, unless the plan itself has a larger one: beyond, a promise says
little (chosen)."""
FURTHEST = 64.0
"""Factor below the plan's least ε down to which a wanted width is looked for (chosen)."""
STEP = 4.0
"""Factor by which the search goes down until it has a bracket (chosen)."""
SLACK = 0.02
"""Share of the wanted width that the width found may be below it (chosen)."""
MAX_STEPS = 10
"""Interpolations at most; three or four are usual (chosen)."""

Widths = Callable[[float], Mapping[str, float]]
"""Widths of intervals at an ε, by parameter."""


@dataclass(frozen=True)
class WidthTarget:
    """A wanted width and the smallest ε that gives it.

    Where none up to ten does, ``epsilon`` is None and ``records`` says about how many records would
    do, at the largest ε that was tried.
    """

    parameter: str
    width: float
    epsilon: float | None
    words: str
    records: int | None = None


def reached_targets(
    wanted: Mapping[str, float],
    n: int,
    grid: tuple[float, ...],
    without: Mapping[str, float],
    widths: Widths,
) -> tuple[WidthTarget, ...]:
    """Return the smallest ε for every wanted width.

    Args:
        wanted: widths by parameter.
        n: number of records.
        grid: the plan's own ε, ascending.
        without: widths without privacy.
        widths: simulated widths at an ε.
    """
    for name, width in wanted.items():
        if name not in without:
            there = ", ".join(without)
            raise ArgumentError(f"width: {name!r} is unknown; there are {there}")
        if not width > 0:
            raise ArgumentError(f"width: must be above zero, not {width!r}")
    remembered = cache(widths)

    def of(name: str) -> Callable[[float], float]:
        return lambda epsilon: remembered(epsilon)[name]

    return tuple(_fulfilled(m, w, n, grid, without[m], of(m)) for m, w in wanted.items())


def _fulfilled(
    name: str,
    width: float,
    n: int,
    grid: tuple[float, ...],
    without: float,
    width_at: Callable[[float], float],
) -> WidthTarget:
    largest = max(LARGEST_EPSILON, grid[-1])
    if width_at(largest) > width:
        records = records_needed(n, width, without, width_at(largest))
        why = (
            f"even without privacy, {n:,} records give {without:.4g}"
            if width <= without
            else f"epsilon = {largest:g} gives {width_at(largest):.4g}"
        )
        return WidthTarget(
            name, width, None,
            f"No epsilon up to {largest:g} gives an interval of {width:g} for {name}: {why}. About "
            f"{records:,} records would, at epsilon = {largest:g}.",
            records,
        )  # fmt: skip
    epsilon = _bisected(width, grid[0], largest, width_at)
    return WidthTarget(
        name, width, epsilon,
        f"The smallest epsilon whose intervals for {name} are {width:g} wide in the mean is about "
        f"{epsilon:.3g}.",
    )  # fmt: skip


def _bisected(
    width: float, smallest: float, largest: float, width_at: Callable[[float], float]
) -> float:
    """Return an ε in reach whose width is at most that wanted, and no more than 2 % below it."""
    low, high = smallest, largest
    while width_at(low) <= width:
        low, high = low / STEP, low
        if low < smallest / FURTHEST:
            return high
    for _ in range(MAX_STEPS):
        if width_at(high) >= (1 - SLACK) * width:
            break
        # Aim a little below the wanted width, so that the next one is likely to suffice.
        aim = math.log((1 - SLACK / 2) * width)
        above, below = math.log(width_at(low)), math.log(width_at(high))
        share = min(max((above - aim) / (above - below), 0.05), 0.95)
        middle = low ** (1 - share) * high**share
        low, high = (middle, high) if width_at(middle) > width else (low, middle)
    return high


def records_needed(n: int, width: float, without: float, noisy: float) -> int:
    """Return the number of records N with a/N + c/N² = width², to two digits, upwards.

    Args:
        n: records for which widths are known.
        width: the wanted one.
        without: that without privacy, whose square is a/n.
        noisy: that with noise, whose square is a/n + c/n².
    """
    a = n * without**2
    c = n**2 * max(noisy**2 - without**2, 0.0)
    exact = (a + math.sqrt(a**2 + 4 * c * width**2)) / (2 * width**2)
    digit = int(10 ** max(0, math.floor(math.log10(exact)) - 1))
    return math.ceil(exact / digit) * digit


def decisive(targets: tuple[WidthTarget, ...]) -> WidthTarget | None:
    """Return the target that is fulfilled last: one that cannot be, or that with the largest ε."""
    if not targets:
        return None
    return max(targets, key=lambda w: (w.epsilon is None, w.records or 0, w.epsilon or 0.0))


def in_words(targets: tuple[WidthTarget, ...]) -> tuple[str, ...]:
    """Return a sentence for every target, and one for all together."""
    sentences = [target.words for target in targets]
    last = decisive(targets)
    if last is not None and len(targets) > 1:
        sentences.append(
            f"All of these widths together need about {last.records:,} records."
            if last.epsilon is None
            else f"For all of these widths epsilon must be about {last.epsilon:.3g}."
        )
    return tuple(sentences)

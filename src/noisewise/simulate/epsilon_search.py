"""The smallest ε that gives wanted widths, from few simulated plans.

The mean width of an interval falls smoothly with ε: its square is nearly linear in 1/ε², and
without noise it is that without privacy. So every simulated width says about where the wanted one
is, two ends of a bracket say it well, and the search stops once the width is met within two
percent. Where simulations are few and long, so that their mean is no surer than a few percent, it
stops once either end of the bracket is within five and its ends are close, and moves ε by what is
left: an ε that was not simulated is named only between one that suffices and one that does not.
Where widths hardly depend on ε over a part of the range, as where a prior gives them, the bracket
is halved. Every ε that was simulated serves all parameters. Where no ε up to ten will do, more
records would: a squared width is a/n without privacy, and noise whose size does not depend on n
adds c/n².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.artifact.readable_numbers import readable

LARGEST_EPSILON = 10.0
"""The largest ε that is looked at, unless the plan itself has a larger one: beyond, a promise says
little (chosen)."""
FURTHEST = 64.0
"""Factor below the plan's least ε down to which a wanted width is looked for (chosen)."""
STEP = 4.0
"""Factor by which the search goes down until it has a bracket (chosen)."""
SLACK = 0.02
"""Share of the wanted width that the width found may be below it (chosen)."""
NEAR = 1.05
"""Ratio of a simulated width to that wanted from which a rough search ends (chosen)."""
CLOSE = 2.0
"""Ratio of the ends of a bracket between which a rough search names an ε (chosen)."""
LEAST_MOVE = 1.05
"""Factor by which the search moves beyond what it has simulated, at the least (chosen)."""
SECOND_MOVE = 2.0
"""The same once a first move did not suffice; the third goes to the end of the range (chosen)."""
MAX_STEPS = 12
"""Simulated ε at most; two or three are usual (chosen)."""
MOST_RECORDS = 10**12
"""Number of records that is worth naming (chosen)."""
LEAST_WIDTH, LARGEST_WIDTH = 1e-100, 1e100
"""Widths whose squares are numbers (chosen)."""

Widths = Callable[[float], Mapping[str, float]]
"""Widths of intervals at an ε, by parameter."""


@dataclass(frozen=True)
class WidthTarget:
    """A wanted width and the smallest ε that gives it.

    Where none up to ten does, ``epsilon`` is None and ``records`` says about how many records would
    do, at the largest ε that was tried; None if more than are worth naming.
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
    *,
    rough: bool = False,
) -> tuple[WidthTarget, ...]:
    """Return the smallest ε for every wanted width.

    Args:
        wanted: widths by parameter, as ``check_wanted`` allows them.
        n: number of records.
        grid: the plan's own ε, ascending.
        without: widths without privacy.
        widths: simulated widths at an ε.
        rough: end within five percent, where each simulation takes long.
    """
    simulated = {epsilon: widths(epsilon) for epsilon in grid} if wanted else {}

    def of(name: str, epsilon: float) -> float:
        if epsilon not in simulated:
            simulated[epsilon] = widths(epsilon)
        return simulated[epsilon][name]

    targets = []
    for name, width in wanted.items():
        # Without privacy there may be no answer, and then noise is taken for all of a width.
        plain = without[name] if math.isfinite(without[name]) else 0.0
        search = _Search(
            width, plain, grid[0] / FURTHEST, max(LARGEST_EPSILON, grid[-1]), rough,
            {epsilon: found[name] for epsilon, found in simulated.items()},
        )  # fmt: skip
        epsilon = search.carried_out(partial(of, name))
        targets.append(_answer(name, search, epsilon, n))
    return tuple(targets)


def check_wanted(wanted: Mapping[str, float], names: Iterable[str]) -> None:
    """Raise an ArgumentError unless wanted widths are of these parameters, and above zero."""
    known = tuple(names)
    for name, width in wanted.items():
        if name not in known:
            raise ArgumentError(f"width: {name!r} is unknown; there are {', '.join(known)}")
        if isinstance(width, bool) or not isinstance(width, int | float | np.number):
            raise ArgumentError(f"width: must be a number, not {width!r}")
        if not LEAST_WIDTH < width <= LARGEST_WIDTH:
            raise ArgumentError(
                f"width: must be between {LEAST_WIDTH:g} and {LARGEST_WIDTH:g}, not {width!r}"
            )


def _answer(name: str, search: _Search, epsilon: float | None, n: int) -> WidthTarget:
    """Return the target of a search that has ended."""
    width, largest = search.wanted, search.largest
    if epsilon is not None and search.is_below_all():
        return WidthTarget(
            name, width, epsilon,
            f"Already epsilon = {epsilon:.3g} gives intervals for {name} that are "
            f"{readable(search.seen[epsilon])} wide in the mean, and {width:g} is wanted; no "
            "smaller one was simulated.",
        )  # fmt: skip
    if epsilon is not None:
        about = "about" if search.is_found(epsilon) else "at most about"
        return WidthTarget(
            name, width, epsilon,
            f"The smallest epsilon whose intervals for {name} are {width:g} wide in the mean is "
            f"{about} {epsilon:.3g}.",
        )  # fmt: skip
    noisy = search.seen[largest]
    records = records_needed(n, width, search.without, noisy)
    why = (
        f"even without privacy, {n:,} records give {readable(search.without)}"
        if width <= search.without
        else f"epsilon = {largest:g} gives {readable(noisy)}"
    )
    would = (
        f"More than {MOST_RECORDS:,} records"
        if records is None
        else f"At least {records:,} records"
    )
    return WidthTarget(
        name, width, None,
        f"No epsilon up to {largest:g} gives an interval of {width:g} for {name}: {why}. {would} "
        f"would, at epsilon = {largest:g}.",
        records,
    )  # fmt: skip


@dataclass(frozen=True)
class _Search:
    """A wanted width, the ε it is looked for at, and the widths ``seen`` so far, by ε."""

    wanted: float
    without: float
    smallest: float
    largest: float
    rough: bool
    seen: dict[float, float]

    def carried_out(self, width_at: Callable[[float], float]) -> float | None:
        """Return the smallest ε that gives the wanted width; None where the largest does not."""
        moves, before, repeated = 0, [False, False], False
        for _ in range(MAX_STEPS):
            low, high = self._ends()
            if low == self.largest:
                return None
            if high is not None and (high <= self.smallest or self._is_enough(high)):
                return high
            guess = self._guess(low, high, moves)
            if low is not None and high is not None:
                if self.rough and self._is_near(low, high):
                    return guess
                if repeated:
                    guess = math.sqrt(low * high)
            self.seen[guess] = width_at(guess)
            moves += low is None or high is None
            # The same end moved twice: the law that guesses follow does not hold here.
            moved = [a != b for a, b in zip((low, high), self._ends(), strict=True)]
            repeated = moved == before and not repeated
            before = moved
        # At the third move the end of the range is simulated, so that there is an upper end.
        return self._ends()[1]

    def is_below_all(self) -> bool:
        """Return whether every ε that was simulated gives the wanted width."""
        return self._ends()[0] is None

    def _is_enough(self, high: float) -> bool:
        """Return whether the width at that ε is the wanted one, as nearly as is asked for."""
        least = 1 / NEAR if self.rough and self.is_below_all() else 1 - SLACK
        return least * self.wanted <= self.seen[high] <= self.wanted

    def is_found(self, epsilon: float) -> bool:
        """Return whether the search ended there, and not for want of steps."""
        return epsilon not in self.seen or self._is_enough(epsilon)

    def _is_near(self, low: float, high: float) -> bool:
        near = any(1 / NEAR <= self.seen[e] / self.wanted <= NEAR for e in (low, high))
        return near and high / low <= CLOSE

    def _ends(self) -> tuple[float | None, float | None]:
        """Return the largest ε that is too small, and the smallest above it that is not."""
        low = max((e for e, w in self.seen.items() if w > self.wanted), default=None)
        enough = [e for e, w in self.seen.items() if w <= self.wanted and (low is None or e > low)]
        return low, min(enough, default=None)

    def _guess(self, low: float | None, high: float | None, moves: int) -> float:
        """Return where the width should be a little below that wanted.

        ``moves`` counts the guesses so far that had no bracket.
        """
        # A little, so that the next one is likely to suffice.
        aim = (1 - SLACK / 2) * self.wanted
        if low is None or high is None:
            known = high if low is None else low
            assert known is not None  # noqa: S101  # a plan has simulated one ε at least
            beyond = self._below if low is None else self._above
            return beyond(known, aim, moves)
        above, below = self.seen[low] ** 2, self.seen[high] ** 2
        share = min(max((above - aim**2) / (above - below), 0.0), 1.0)
        guess = 1 / math.sqrt((1 - share) / low**2 + share / high**2)
        step = (high / low) ** 0.05
        return float(min(max(guess, low * step), high / step))

    def _below(self, known: float, aim: float, moves: int) -> float:
        """Return an ε below the least that was simulated, whose width is smaller than wanted."""
        if moves > 1:
            return self.smallest
        noise, room = self._left(known, aim)
        guess = known * math.sqrt(noise / room) if noise > 0 and room > 0 else 0.0
        return max(min(guess, known / LEAST_MOVE), known / STEP, self.smallest)

    def _above(self, known: float, aim: float, moves: int) -> float:
        """Return an ε above the largest that was simulated, whose width is larger than wanted."""
        if moves > 1:
            return self.largest
        noise, room = self._left(known, aim)
        guess = known * math.sqrt(noise / room) if room > 0 else self.largest
        return min(max(guess, known * (SECOND_MOVE if moves else LEAST_MOVE)), self.largest)

    def _left(self, known: float, aim: float) -> tuple[float, float]:
        """Return what the squared widths, known and aimed at, have above that without privacy."""
        plain = self.without**2
        return self.seen[known] ** 2 - plain, aim**2 - plain


def records_needed(n: int, width: float, without: float, noisy: float) -> int | None:
    """Return the number of records N with a/N + c/N² = width², to two digits, upwards.

    Args:
        n: records for which widths are known.
        width: the wanted one.
        without: that without privacy, whose square is a/n.
        noisy: that with noise, whose square is a/n + c/n². What clamping adds falls more slowly,
            and more records are needed.

    Returns:
        None where there would have to be more than are worth naming.
    """
    # Widths without privacy, by another method, may be larger than those with noise.
    without = min(without, noisy)
    # In units of the wanted width, squares of which may be no numbers.
    a = n * (without / width) ** 2
    c = n**2 * max((noisy / width) ** 2 - (without / width) ** 2, 0.0)
    exact = (a + math.hypot(a, 2 * math.sqrt(c))) / 2
    if exact > MOST_RECORDS:
        return None
    digit = int(10 ** max(0, math.floor(math.log10(exact)) - 1))
    return math.ceil(exact / digit) * digit


def decisive(targets: tuple[WidthTarget, ...]) -> WidthTarget | None:
    """Return the target that is fulfilled last: one that cannot be, or that with the largest ε."""
    if not targets:
        return None

    def hardness(target: WidthTarget) -> tuple[bool, float, float]:
        hopeless = target.epsilon is None
        records = math.inf if hopeless and target.records is None else target.records or 0
        return hopeless, records, target.epsilon or 0.0

    return max(targets, key=hardness)


def in_words(targets: tuple[WidthTarget, ...]) -> tuple[str, ...]:
    """Return a sentence for every target, and one for all together."""
    sentences = [target.words for target in targets]
    last = decisive(targets)
    if last is None or len(targets) < 2:
        return tuple(sentences)
    if last.epsilon is not None:
        together = f"For all of these widths epsilon must be about {last.epsilon:.3g}."
    elif last.records is not None:
        together = f"All of these widths together need about {last.records:,} records."
    else:
        together = f"All of these widths together need more than {MOST_RECORDS:,} records."
    return (*sentences, together)

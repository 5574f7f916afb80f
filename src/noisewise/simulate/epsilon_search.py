"""The smallest ε that gives wanted widths, from few simulated plans.

The mean width of an interval falls smoothly with ε: its square is nearly linear in 1/ε², and
without noise it is that without privacy. So every simulated width says about where the wanted one
is, two ends of a bracket say it well, and the search stops once the width is met within two
percent. Where simulations are few and long, so that their mean is no surer than a few percent, it
stops at five, and moves ε by what is left; but it never names an ε unless one was simulated that
suffices. Every ε that was simulated serves all parameters. Where no ε up to ten will do, more records would: a squared width is a/n without privacy, and noise whose
size does not depend on n adds c/n².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

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
NEAR = 1.05
"""Ratio of a simulated width to that wanted from which a rough search ends (chosen)."""
LEAST_MOVE = 1.05
"""Factor by which the search moves beyond what it has simulated, at the least (chosen)."""
SECOND_MOVE = 2.0
"""The same once a first move upwards did not suffice; the third goes to the largest ε (chosen)."""
MAX_STEPS = 12
"""Simulated ε at most; two or three are usual (chosen)."""

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
    *,
    rough: bool = False,
) -> tuple[WidthTarget, ...]:
    """Return the smallest ε for every wanted width.

    Args:
        wanted: widths by parameter.
        n: number of records.
        grid: the plan's own ε, ascending.
        without: widths without privacy.
        widths: simulated widths at an ε.
        rough: end within five percent, where each simulation takes long.
    """
    for name, width in wanted.items():
        if name not in without:
            there = ", ".join(without)
            raise ArgumentError(f"width: {name!r} is unknown; there are {there}")
        if not width > 0:
            raise ArgumentError(f"width: must be above zero, not {width!r}")
    simulated = {epsilon: widths(epsilon) for epsilon in grid} if wanted else {}

    def of(name: str, epsilon: float) -> float:
        if epsilon not in simulated:
            simulated[epsilon] = widths(epsilon)
        return simulated[epsilon][name]

    targets = []
    for name, width in wanted.items():
        search = _Search(
            width, without[name], grid[0] / FURTHEST, max(LARGEST_EPSILON, grid[-1]), rough,
            {epsilon: found[name] for epsilon, found in simulated.items()},
        )  # fmt: skip
        epsilon = search.carried_out(partial(of, name))
        targets.append(_answer(name, search, epsilon, n))
    return tuple(targets)


def _answer(name: str, search: _Search, epsilon: float | None, n: int) -> WidthTarget:
    """Return the target of a search that has ended."""
    width, largest = search.wanted, search.largest
    if epsilon is not None:
        return WidthTarget(
            name, width, epsilon,
            f"The smallest epsilon whose intervals for {name} are {width:g} wide in the mean is "
            f"about {epsilon:.3g}.",
        )  # fmt: skip
    noisy = search.seen[largest]
    records = records_needed(n, width, search.without, noisy)
    why = (
        f"even without privacy, {n:,} records give {search.without:.4g}"
        if width <= search.without
        else f"epsilon = {largest:g} gives {noisy:.4g}"
    )
    return WidthTarget(
        name, width, None,
        f"No epsilon up to {largest:g} gives an interval of {width:g} for {name}: {why}. About "
        f"{records:,} records would, at epsilon = {largest:g}.",
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
        moves = 0
        for _ in range(MAX_STEPS):
            low, high = self._ends()
            if low == self.largest:
                return None
            if high is not None and (high <= self.smallest or self._is_met(self.seen[high])):
                return high
            guess = self._guess(low, high, moves)
            if self.rough and high is not None and self._is_near():
                return guess
            self.seen[guess] = width_at(guess)
            moves += high is None
        # At the third move upwards the largest ε is simulated, so that there is an upper end.
        return self._ends()[1]

    def _is_met(self, width: float) -> bool:
        return (1 - SLACK) * self.wanted <= width <= self.wanted

    def _is_near(self) -> bool:
        return any(1 / NEAR <= w / self.wanted <= NEAR for w in self.seen.values())

    def _ends(self) -> tuple[float | None, float | None]:
        """Return the largest ε that is too small, and the smallest above it that is not."""
        low = max((e for e, w in self.seen.items() if w > self.wanted), default=None)
        enough = [e for e, w in self.seen.items() if w <= self.wanted and (low is None or e > low)]
        return low, min(enough, default=None)

    def _guess(self, low: float | None, high: float | None, moves: int) -> float:
        """Return where the width should be a little below that wanted.

        ``moves`` counts the guesses so far beyond what was too wide.
        """
        # A little, so that the next one is likely to suffice.
        aim = (1 - SLACK / 2) * self.wanted
        if low is None or high is None:
            known = high if low is None else low
            assert known is not None  # noqa: S101  # a plan has simulated one ε at least
            return self._below(known, aim) if low is None else self._above(known, aim, moves)
        above, below = self.seen[low] ** 2, self.seen[high] ** 2
        share = min(max((above - aim**2) / (above - below), 0.0), 1.0)
        guess = 1 / math.sqrt((1 - share) / low**2 + share / high**2)
        step = (high / low) ** 0.05
        return float(min(max(guess, low * step), high / step))

    def _below(self, known: float, aim: float) -> float:
        """Return an ε below the least that was simulated, whose width is smaller than wanted."""
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

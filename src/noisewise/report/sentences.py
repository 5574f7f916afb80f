"""Plain sentences about what was found, for the first lines of a page: to be read, and quoted.

Names of columns stand between backticks. An interval that holds no effect is never told as one:
the sentence then says that the release does not tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact.readable_numbers import LONGEST, readable

if TYPE_CHECKING:
    from noisewise.artifact import Bounds
    from noisewise.inference.results import Posterior

TAILS = (0.025, 0.975)
"""Of the intervals that are told."""
NORMAL = 1.959964
"""Deviations from the mean to the ends of such an interval of a normal law."""
HARDLY = 1.1
"""Times by which noise must widen an interval to be worth a word (chosen)."""
DIGITS = 2
"""Digits that the width of an interval is told with (chosen): more would be noise."""
MOST_SENTENCES = 12
"""Sentences of one page (chosen); the table has the rest."""
MOST_LEVELS = 6
"""Levels of a factor that have a sentence each; of more, the extreme ones (chosen)."""
MOST_GROUPS = 12
"""Groups that one sentence goes through (chosen)."""
NAIVE = "which ignores the privacy noise and is too narrow"
"""What is said of an interval by method naive."""


@dataclass(frozen=True)
class Estimate:
    """A median with its 95 % interval, and how narrow that would be without privacy, if known.

    Not a mean: where the noise hides a column, a few draws far out decide that.
    """

    median: float
    lower: float
    upper: float
    without: tuple[float, float] | None = None

    @property
    def sign(self) -> int:
        """Return 1 or -1 where the whole interval has that sign, else 0."""
        return 1 if self.lower > 0 else -1 if self.upper < 0 else 0

    def turned(self) -> Estimate:
        """Return it with the other sign."""
        without = None if self.without is None else (-self.without[1], -self.without[0])
        return Estimate(-self.median, -self.upper, -self.lower, without)

    @property
    def size(self) -> Estimate:
        """Return it, turned where the interval is below zero."""
        return self.turned() if self.sign < 0 else self


def estimate(draws: np.ndarray, sd_without: object = None, factor: float = 1.0) -> Estimate:
    """Return the median and interval of draws.

    Args:
        draws: of any shape.
        sd_without: the standard deviation to be expected without privacy, where it is known.
        factor: times which draws and deviation are taken.
    """
    values = np.ravel(draws) * factor
    low, median, high = (float(q) for q in np.quantile(values, (TAILS[0], 0.5, TAILS[1])))
    without = None
    if sd_without is not None and math.isfinite(float(np.asarray(sd_without))):
        reach = NORMAL * float(np.asarray(sd_without)) * abs(factor)
        if reach * HARDLY < (high - low) / 2:
            without = median - reach, median + reach
    return Estimate(median, low, high, without)


def told(values: Sequence[float], width: float) -> list[str]:
    """Return numbers with as many decimals as a width deserves: two digits of it."""
    largest = max(map(abs, values))
    if not width > 0 or largest >= LONGEST:
        return [readable(v, DIGITS + 1) for v in values]
    decimals = DIGITS - 1 - math.floor(math.log10(width))
    if decimals > 6:
        return [readable(v) for v in values]
    rounded = [round(v, decimals) + 0.0 for v in values]
    return [f"{v:,.{max(0, decimals)}f}" if abs(v) >= 10_000 else f"{v:.{max(0, decimals)}f}"
            for v in rounded]  # fmt: skip


class Intervals:
    """Puts estimates into words; the first interval of a page says what it allows for."""

    def __init__(self, naive: bool = False, unit: str = "") -> None:
        """Begin a page; ``unit`` follows every number, such as `` %``."""
        self._first = True
        self._naive = naive
        self._unit = unit

    def __call__(self, at: Estimate) -> tuple[str, str]:
        """Return the median, and its interval with what it allows for, in words."""
        middle, low, high = told((at.median, at.lower, at.upper), at.upper - at.lower)
        said = f"95 % interval {low} to {high}{self._unit}"
        narrow = ""
        if at.without is not None and not self._naive:
            # Its width alone: where it would lie, nobody but the owner knows.
            narrow = f"{readable(at.without[1] - at.without[0], DIGITS)}{self._unit}"
        if self._naive:
            said += f", {NAIVE}"
        elif self._first:
            said += ", which allows for too few people and for the privacy noise"
            narrow = narrow and f"; without privacy an interval would be about {narrow} wide"
        else:
            narrow = narrow and f"; without privacy about {narrow} wide"
        self._first = False
        return f"{middle}{self._unit}", f"({said}{narrow})"


def opening(post: Posterior) -> list[str]:
    """Return what must be known before any finding is quoted."""
    if not post.converged:
        return ["The computation has not converged: do not quote the numbers of this page."]
    if post.method == "naive":
        return [
            "These numbers take the noisy sums for exact ones: do not quote them as findings, but "
            "those of a method that models the noise."
        ]
    return []


def comparison(more: str, y: str, at: Estimate, intervals: Intervals, held: str = "") -> str:
    """Return the sentence about a difference of a response.

    Args:
        more: what goes with it, such as ``One more unit of `educ```.
        y: the response.
        at: the difference.
        intervals: puts it into words.
        held: what is held equal, such as ``, the other columns being equal``.
    """
    if at.sign:
        middle, interval = intervals(at.size)
        direction = "higher" if at.sign > 0 else "lower"
        return f"{more} goes with {middle} {direction} `{y}`{held} {interval}."
    _, interval = intervals(at)
    first = more[0].lower() + more[1:]
    which = f"higher or lower `{y}`"
    return f"The release does not say whether {first} goes with {which}{held} {interval}."


def by_group(
    more: str, y: str, found: Sequence[tuple[str, Estimate]], column: str, naive: bool = False
) -> list[str]:
    """Return sentences about one difference in every group: where it is clear, and where not."""
    up = [name for name, at in found if at.sign > 0]
    down = [name for name, at in found if at.sign < 0]
    open_ = [name for name, at in found if not at.sign]
    parts = [
        f"with {direction} `{y}` in {_of(names, len(found))}"
        for direction, names in (("higher", up), ("lower", down))
        if names
    ]
    clear = f"{more} goes {', and '.join(parts)}" if parts else ""
    unclear = ""
    if open_:
        first = more if not parts else "it"
        first = first[0].lower() + first[1:]
        where = _of(open_, len(found))
        unclear = f"the release does not say whether {first} goes with higher or lower `{y}`"
        unclear = f"of {where} {unclear}" if parts else f"{unclear}, in any group"
    whole = "; ".join(p for p in (clear, unclear) if p)
    said = [f"{whole[0].upper()}{whole[1:]}."]
    listed = sorted(found, key=lambda pair: -pair[1].median) if len(found) > MOST_GROUPS else found
    ends = [*listed[:2], *listed[-2:]] if len(found) > MOST_GROUPS else listed
    numbers = []
    for name, at in ends:
        middle, low, high = told((at.median, at.lower, at.upper), at.upper - at.lower)
        numbers.append(f"{name} {f'{middle} ({low} to {high})' if at.sign else f'{low} to {high}'}")
    which = "the two highest and the two lowest" if len(found) > MOST_GROUPS else "each group"
    ignoring = "which ignore the privacy noise and are too narrow"
    allows = ignoring if naive else "which allow for too few people and for the privacy noise"
    said.append(f"By `{column}`, {which}, with 95 % intervals, {allows}: {', '.join(numbers)}.")
    return said


def levels_by_group(
    words: str, found: Sequence[tuple[str, Estimate]], column: str, unit: str, naive: bool
) -> str:
    """Return the sentence about a share or a mean in every group; of many, at both ends.

    Args:
        words: with a place for the number, such as ``The mean of `age` is about {}``.
        found: groups and estimates.
        column: of the groups.
        unit: follows every number.
        naive: whether the noise was ignored.
    """
    many = len(found) > MOST_GROUPS
    listed = sorted(found, key=lambda pair: -pair[1].median) if many else list(found)
    shown = []
    for name, at in [*listed[:2], *listed[-2:]] if many else listed:
        middle, low, high = told((at.median, at.lower, at.upper), at.upper - at.lower)
        shown.append(f"{name} {middle}{unit} ({low} to {high})")
    which = f"of {len(found)} groups the two highest and the two lowest" if many else "by group"
    allows = "which allow for too few people and for the privacy noise"
    ignores = "which ignore the privacy noise and are too narrow"
    start = words.format("so many")
    return (
        f"{start}, {which} (`{column}`), with 95 % intervals, {ignores if naive else allows}: "
        f"{', '.join(shown)}."
    )


def _of(names: Sequence[str], many: int) -> str:
    """Return the groups' names, or how many they are."""
    if len(names) == many:
        return f"all {many} groups"
    if len(names) <= MOST_GROUPS:
        return ", ".join(names)
    return f"{len(names)} of {many} groups"


def step(bounds: Bounds | None) -> float:
    """Return how much more of a column to speak of: one unit, or a power of ten that shows."""
    width = 0.0 if bounds is None else bounds.upper - bounds.lower
    if not math.isfinite(width) or width <= 0 or 1 <= width <= 1000:
        return 1.0
    return float(10.0 ** (math.floor(math.log10(width) + 1e-9) - 1))


def more_of(column: str, bounds: Bounds | None) -> str:
    """Return in words a step of a column."""
    size = step(bounds)
    if size == 1:
        return f"One more unit of `{column}`"
    return f"{readable(size)} more of `{column}`"


def limited(sentences: Iterable[str]) -> list[str]:
    """Return so many sentences as a page has, and how many were left out."""
    listed = list(sentences)
    if len(listed) <= MOST_SENTENCES:
        return listed
    rest = len(listed) - MOST_SENTENCES
    return [*listed[:MOST_SENTENCES], f"The table below has {rest} more such differences."]

"""Public bounds of a column, their map to the box [-1, 1], and how a private search chose them.

`Bounds` are the range that a column has by nature, `Censored` ones cut values off. Both map records
alike, so that sums and sensitivities are the same: what differs is what the sums mean.

A `Selection` tells of bounds that were chosen from the data: by which noisy counts, and how sure
the choice is. The candidates c_0 < … < c_m are public, and one of them is the anchor. A record is
moved away from the anchor to the next candidate, and counted there. One record changes one count by
one when it comes or goes, and two of them when it is replaced (``docs/proofs/sensitivity.md``,
section 8). The counts are published with independent noise, and the choice of bounds is made from
them alone.

What noise can hide: with m counts and windows of w = 1 … 4 of them, a window without records is
above t_w with probability at most β / 4m, so that any of them is with probability at most β.
The sum of w Laplace variables of scale b is a difference of two gamma variables of shape w:

    P(S > b t) = e^-t Σ_{i<w} Σ_{j≤i} t^(i-j) / ((i-j)! j!) · Γ(w+j) / (Γ(w) 2^(w+j)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Literal, NamedTuple, get_args

from noisewise.artifact import validation
from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.guarantee import Noise
from noisewise.artifact.readable_numbers import in_full
from noisewise.artifact.sensitivity import Sensitivity

Sides = Literal["both", "lower", "upper"]
"""Which ends of an interval cut values off."""


@dataclass(frozen=True)
class Bounds:
    """A closed interval that was public before anyone looked at the data (errata E1).

    Example:
        >>> import noisewise as nw
        >>> nw.Bounds(0, 100).centre
        50.0
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", validation.real(self.lower, "bounds: lower"))
        object.__setattr__(self, "upper", validation.real(self.upper, "bounds: upper"))
        if not self.lower < self.upper:
            raise ReleaseError(
                f"bounds: lower must be below upper, not ({self.lower!r}, {self.upper!r})"
            )
        # Products of two columns in the user's units must neither overflow nor vanish.
        if max(-self.lower, self.upper) > 1e145 or self.half_width < 1e-145:
            raise ReleaseError(
                "bounds: must lie within ±1e145 and be at least 2e-145 apart, "
                f"not ({self.lower!r}, {self.upper!r})"
            )

    @property
    def centre(self) -> float:
        """The point that maps to 0 in the box."""
        return self.lower / 2 + self.upper / 2

    @property
    def half_width(self) -> float:
        """The length in user's units that one unit of the box stands for."""
        return self.upper / 2 - self.lower / 2


@dataclass(frozen=True)
class Censored(Bounds):
    """Bounds that cut values off: a record at such an end may have lain beyond it.

    Plain bounds are the range that values have by nature, such as 0 to 100 for a percentage.
    ``sides`` says which ends cut: an income's lower end 0 is natural, its upper end may cut.

    Example:
        >>> import noisewise as nw
        >>> wages = nw.Censored(0, 20, sides="upper")
        >>> wages.cuts_lower, wages.cuts_upper
        (False, True)
    """

    sides: Sides = "both"

    def __post_init__(self) -> None:
        super().__post_init__()
        validation.one_of(self.sides, get_args(Sides), "bounds: sides")

    @property
    def cuts_lower(self) -> bool:
        """Whether values below the lower end were moved to it."""
        return self.sides != "upper"

    @property
    def cuts_upper(self) -> bool:
        """Whether values above the upper end were moved to it."""
        return self.sides != "lower"

    def in_words(self) -> str:
        """Return which values were cut off."""
        ends = [f"below {in_full(self.lower)}"] * self.cuts_lower + [
            f"above {in_full(self.upper)}"
        ] * self.cuts_upper
        return f"values {' and '.join(ends)} were moved to the bound"


class LatticeMap(NamedTuple):
    """The constants of u = floor((x - base) * factor), and u at both ends of an interval."""

    base: float
    factor: float
    low: int
    high: int


def lattice_map(bounds: Bounds, bits: int, origin: float, scale: float) -> LatticeMap:
    """Return the map of an interval to whole steps of ``scale * 2**-bits`` from ``origin``.

    The ends go by the same float64 arithmetic as every record (``privacy/lattice.py``), and
    sensitivities are computed from the ends.
    """
    factor = 2.0**bits / scale
    base = origin - 0.5 / factor
    low, high = (math.floor((end - base) * factor) for end in (bounds.lower, bounds.upper))
    return LatticeMap(base, factor, low, high)


MAX_CANDIDATES = 2000
"""Candidates of one column at most (chosen); magnitudes of both signs over 12 decades are 243."""

MAX_WINDOW = 4
"""Neighbouring counts that are looked at together (chosen by simulation: docs/evidence.md)."""

FALSE_ALARM = 0.02
"""Probability that noise alone looks like records, anywhere, and bounds become far too wide
(chosen)."""

UNSURE_SHARE = 0.05
"""Share of the records that noise may hide from which a search is said to be unsure (chosen)."""


def visible_count(noise: Noise, window: int, candidates: int) -> float:
    """Return the noisy count of a window of candidates above which there are records in it."""
    chance = FALSE_ALARM / (MAX_WINDOW * candidates)
    if noise.mechanism == "gaussian":
        return -NormalDist(0, noise.scale * math.sqrt(window)).inv_cdf(chance) + 0.5
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _laplace_tail(window, middle) > chance else (low, middle)
    return noise.scale * high + 0.5  # half a step: the noise is discrete


def _laplace_tail(terms: int, t: float) -> float:
    """Return the probability that a sum of Laplace variables of scale one exceeds ``t``."""
    total = 0.0
    for i in range(terms):
        for j in range(i + 1):
            weight = math.gamma(terms + j) / (math.gamma(terms) * 2.0 ** (terms + j))
            total += t ** (i - j) / (math.factorial(i - j) * math.factorial(j)) * weight
    return math.exp(-t) * total


class RecordCounts:
    """A histogram of records: each is counted once."""

    def bound(self, replaced: bool) -> Sensitivity:
        """Return how far one record moves the counts, replaced or added."""
        return Sensitivity(2, 2) if replaced else Sensitivity(1, 1)


@dataclass(frozen=True)
class CandidateCounts(RecordCounts):
    """How many records sit at each candidate, with noise; ``anchor`` is one of the candidates."""

    candidates: tuple[float, ...]
    anchor: float
    counts: tuple[int, ...]
    noise: Noise

    def __post_init__(self) -> None:
        candidates = [validation.real(c, "selection: candidates") for c in self.candidates]
        object.__setattr__(self, "candidates", tuple(candidates))
        object.__setattr__(self, "anchor", validation.real(self.anchor, "selection: anchor"))
        if not 2 <= len(candidates) <= MAX_CANDIDATES:
            raise ReleaseError(
                f"selection: there must be 2 to {MAX_CANDIDATES} candidates, not {len(candidates)}"
            )
        if any(a >= b for a, b in pairwise(candidates)):
            raise ReleaseError("selection: candidates must ascend")
        if self.anchor not in candidates:
            raise ReleaseError("selection: anchor must be one of the candidates")
        if len(self.counts) != len(candidates):
            raise ReleaseError(
                f"selection: {len(self.counts)} counts for {len(candidates)} candidates"
            )
        for count in self.counts:
            validation.integer(count, "selection: counts")

    def total(self, records: int | None) -> float:
        """Return the number of records where it is public; else the sum of the noisy counts."""
        return float(max(sum(self.counts), 1) if records is None else max(records, 1))

    @property
    def hidden(self) -> float:
        """The number of records at one candidate that the noise may hide."""
        return visible_count(self.noise, 1, len(self.candidates))


@dataclass(frozen=True)
class Selection:
    """Bounds that were chosen from the data privately, and paid for.

    They were chosen by noisy counts of records at public candidates. In files of version 0.1 the
    candidates were the ``2 * half_candidates + 1`` evenly spaced points of ``within``; two noisy
    maxima chose among them, and left no counts.
    """

    column: str
    within: Bounds
    half_candidates: int | None
    quantiles: tuple[float, float]
    cost: float
    search: CandidateCounts | None = None

    def __post_init__(self) -> None:
        validation.text(self.column, "selection: column")
        if self.half_candidates is not None:
            validation.integer(self.half_candidates, "selection: half_candidates", 1, 2**15)
        if (self.half_candidates is None) == (self.search is None):
            raise ReleaseError("selection: has either half_candidates or counts of candidates")
        object.__setattr__(self, "cost", validation.positive(self.cost, "selection: cost"))
        low, high = (validation.real(q, "selection: quantiles") for q in self.quantiles)
        if not 0 <= low < high <= 1:
            raise ReleaseError(
                f"selection: quantiles must satisfy 0 <= low < high <= 1, not {low!r} and {high!r}"
            )
        object.__setattr__(self, "quantiles", (low, high))
        if self.search is not None:
            self._check_search(self.search)

    def _check_search(self, search: CandidateCounts) -> None:
        ends = search.candidates[0], search.candidates[-1]
        if ends != (self.within.lower, self.within.upper):
            raise ReleaseError("selection: the candidates must reach from end to end of 'within'")
        if search.noise.cost != self.cost:
            raise ReleaseError(
                f"selection: costs {self.cost!r}, but its noise states {search.noise.cost!r}"
            )

    def is_unsure(self, records: int | None = None) -> bool:
        """Return whether noise may hide so many records that the bounds are not to be relied on.

        Args:
            records: how many there are; None where that is secret, and the noisy counts are added
                up instead.
        """
        if self.search is None:
            return False
        return self.search.hidden > UNSURE_SHARE * self.search.total(records)

    def in_words(self, records: int | None = None) -> str:
        """Return how the bounds were chosen, and how sure the choice is.

        Args:
            records: how many there are, where that is public.
        """
        if self.search is None:
            return f"chosen by private quantiles, at a cost of {self.cost:.4g}"
        hidden, total = self.search.hidden, self.search.total(records)
        share = f" ({hidden / total:.1%})" if total > hidden else ""
        words = (
            f"found by a private search, at a cost of {self.cost:.4g}; it aimed for "
            f"{100 * self.quantiles[0]:.2g} % of the records below and "
            f"{100 * (1 - self.quantiles[1]):.2g} % above, and could have missed by up "
            f"to {math.ceil(hidden):,} records{share} at either end"
        )
        return f"{words}: it is unsure" if self.is_unsure(records) else words

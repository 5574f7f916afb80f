"""Bounds found by magnitude: one noisy histogram over public candidates, paid from the same budget.

Candidates are preferred numbers (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, times powers of ten) away from
the anchor, which is the point of the public limits that is nearest to zero. So limits that are a
million times too wide cost a few dozen candidates more, and noise hides little more than before. A
record is counted at the next candidate away from the anchor; one record moves one count, or two
where it is replaced (``docs/proofs/sensitivity.md``, section 8). OpenDP adds noise to the counts,
and all that follows is made from noisy counts alone.

An end of the bounds, of n records with a share a to be cut (1 % unless the owner says otherwise):

1. The outermost window of up to four candidates that holds more than noise alone would show
   (`visible_count`) begins at candidate j. Beyond j fewer than T records can hide.
2. If T ≤ a n, the end is the candidate where a n records lie at or beyond.
3. Else the tail is continued as an exponential one. With d(t) the place beyond which t records lie,
   the end is d(T) + (d(T) - d(4 T)) log(T / a n) / log 4, moved outward to the next candidate.
4. Where candidate j alone holds 4 T or more there is a wall (a column of 0 and 1, a rating, a
   uniform one): the end is j itself, and is taken for a natural one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from noisewise.artifact import Bounds, CandidateCounts, Censored, Noise, Selection
from noisewise.artifact.bounds_search import MAX_WINDOW, RecordCounts, visible_count
from noisewise.privacy.arguments import PrivateBounds
from noisewise.privacy.budget import Terms
from noisewise.privacy.lattice import Outward
from noisewise.privacy.mechanisms import Calibrated, calibrate
from noisewise.privacy.statistic_privacy import sensitivity

PREFERRED = ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")
"""Preferred numbers of a decade, a third of an octave apart: columns often end at a round number.
Twice as many find less at small budgets, half as many are wider (docs/evidence.md)."""

WALL = 4
"""Times the number that noise may hide: so much at the outermost candidate is a wall, and the tail
is continued from there and from the end (chosen by simulation: docs/evidence.md)."""


ROUNDING = 1e-3
"""Share of the resolution by which sums of decimal fractions may fall short of it (chosen)."""


def candidates(request: PrivateBounds) -> tuple[tuple[float, ...], float]:
    """Return the public candidates in ascending order, and the anchor among them."""
    lower, upper = request.within
    anchor = min(max(lower, 0.0), upper)
    if anchor - lower < request.resolution:
        anchor = lower
    elif upper - anchor < request.resolution:
        anchor = upper
    below = [-c for c in _away(-anchor, -lower, request.resolution)]
    return (*below[::-1], anchor, *_away(anchor, upper, request.resolution)), anchor


def _away(anchor: float, end: float, resolution: float) -> list[float]:
    """Return the candidates above an anchor up to an end, no two closer than the resolution."""
    if end <= anchor:
        return []
    decades = range(math.floor(math.log10(resolution)), math.ceil(math.log10(end - anchor)) + 1)
    chosen: list[float] = []
    for distance in (float(f"{digit}e{decade}") for decade in decades for digit in PREFERRED):
        place = anchor + distance
        if place + resolution > end:
            break
        if place - (chosen[-1] if chosen else anchor) >= resolution * (1 - ROUNDING):
            chosen.append(place)
    return [*chosen, end]


def outward(column: str, request: PrivateBounds, fill: float | None) -> Outward:
    """Return the map of a record to the candidate at which it is counted."""
    points, anchor = candidates(request)
    return Outward(column, points, points.index(anchor), fill)


def prepare_search(terms: Terms, cost: float) -> Calibrated:
    """Return the noise of a column's counts: the bound is that of any histogram of records."""
    bound = sensitivity(RecordCounts(), terms.relation, terms.records)
    return calibrate(terms.mechanism, bound, cost)


def searched(
    column: str, request: PrivateBounds, noise: Noise, counts: np.ndarray
) -> tuple[CandidateCounts, Selection]:
    """Return a column's noisy counts, and what the file says of the choice that is made by them."""
    points, anchor = candidates(request)
    search = CandidateCounts(points, anchor, tuple(int(c) for c in counts), noise)
    limits = Bounds(*request.within)
    return search, Selection(column, limits, None, request.quantiles, noise.cost, search)


def choose_bounds(request: PrivateBounds, search: CandidateCounts, records: int | None) -> Bounds:
    """Return the bounds that noisy counts suggest; the public limits where nothing is visible.

    Args:
        request: the public limits and the quantiles to aim for.
        search: the candidates and their noisy counts.
        records: how many there are; None where that is secret.
    """
    points, counts = np.array(search.candidates), np.array(search.counts, float)
    anchor = search.candidates.index(search.anchor)
    total = float(max(counts.sum(), 1.0)) if records is None else float(records)
    # A count's records lie between its candidate and the next one towards the anchor.
    tops = np.concatenate([points[1 : anchor + 1], points[anchor:]])
    floors = np.concatenate([points[: anchor + 1], points[anchor:-1]])
    visible = [visible_count(search.noise, w + 1, len(points)) for w in range(MAX_WINDOW)]
    low, high = request.quantiles
    above = _end(counts, floors, tops, visible, (1 - high) * total)
    below = _end(counts[::-1], -tops[::-1], -floors[::-1], visible, low * total)
    if above is None or below is None:
        return Bounds(*request.within)
    return _settled(points, _Ends(-below.place, above.place, below.wall, above.wall))


@dataclass(frozen=True)
class _End:
    place: float
    wall: bool


@dataclass(frozen=True)
class _Ends:
    lower: float
    upper: float
    lower_wall: bool
    upper_wall: bool


def _end(
    counts: np.ndarray, floors: np.ndarray, tops: np.ndarray, visible: list[float], cut: float
) -> _End | None:
    """Return the upper end; None where no window is visible.

    Args:
        counts: the noisy counts, each of records between its floor and its top.
        floors: lower ends of what is counted, ascending.
        tops: upper ends.
        visible: counts of windows of 1, 2, … from which they are visible.
        cut: how many records should lie beyond the end.
    """
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    starts = [np.flatnonzero(sums[w:] - sums[:-w] > t) for w, t in enumerate(visible, start=1)]
    outermost = max((int(s[-1]) for s in starts if len(s)), default=-1)
    if outermost < 0:
        return None
    hidden, stop = visible[0], min(len(counts), outermost + MAX_WINDOW)
    tails = sums[stop] - sums[: outermost + 2]  # at or beyond each candidate up to the next one

    def reached(records: float) -> int:
        there = np.flatnonzero(tails[:-1] >= records)
        return int(there[-1]) if len(there) else 0

    def place(records: float) -> float:
        i = reached(records)
        beyond = min(max(tails[i + 1], 0.0), records)
        inward = min(1.0, (records - beyond) / max(tails[i] - beyond, 1.0))
        return float(tops[i] + (floors[i] - tops[i]) * inward)

    if hidden <= cut:
        i = min(outermost, reached(cut))
        return _End(float(tops[i]), bool(counts[i] >= WALL * hidden and tails[i + 1] < hidden))
    if counts[outermost] >= WALL * hidden:
        return _End(float(tops[outermost]), True)
    near, far = place(hidden), place(WALL * hidden)
    grown = math.log(hidden / max(cut, 1.0)) / math.log(WALL)
    return _End(near + max(0.0, near - far) * grown, False)


def _settled(points: np.ndarray, ends: _Ends) -> Bounds:
    """Return the ends as candidates, moved outward and apart; those inside the limits may cut."""
    last = len(points) - 1
    high = min(int(np.searchsorted(points, ends.upper, side="left")), last)
    low = max(int(np.searchsorted(points, ends.lower, side="right")) - 1, 0)
    if low >= high:
        low, high = max(min(low, high) - 1, 0), min(max(low, high) + 1, last)
    lower, upper = float(points[low]), float(points[high])
    cuts_lower = low > 0 and not ends.lower_wall
    cuts_upper = high < last and not ends.upper_wall
    if not cuts_lower and not cuts_upper:
        return Bounds(lower, upper)
    both = cuts_lower and cuts_upper
    return Censored(lower, upper, "both" if both else "lower" if cuts_lower else "upper")

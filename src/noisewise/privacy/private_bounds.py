"""Bounds found by magnitude: one noisy histogram over public candidates, paid from the same budget.

Candidates are preferred numbers (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, times powers of ten) away from
the anchor, which is the point of the public limits that is nearest to zero. So limits that are a
million times too wide cost a few dozen candidates more, and noise hides little more than before. A
record is counted at the next candidate away from the anchor; one record moves one count, or two
where it is replaced (``docs/proofs/sensitivity.md``, section 8). OpenDP adds noise to the counts,
and all that follows is made from noisy counts alone.

An end of the bounds, of n records with a share a to be cut (unless the owner says: twenty records,
or 1 % if that is less):

1. The outermost window of up to four candidates that holds more than noise alone would show
   (`visible_count`) begins at candidate j. Beyond j fewer than T records can hide.
2. If T ≤ a n, the end is the candidate where a n records lie at or beyond.
3. Else the tail is continued as an exponential one. With d(t) the place beyond which t records lie,
   the end is d(T) + (d(T) - d(4 T)) log(T / a n) / log 4, moved outward to the next candidate.
4. Where candidate j alone holds 4 T or more there is a wall (a column of 0 and 1, a rating, a
   uniform one): the end is j itself.
5. Where T is less than 1 % of the records, it is a wall only if they are hardly less dense there
   than before, and a tail ends one candidate further out: so many records have little noise beside
   their own scatter, and the largest of them weigh most in a regression.

An end is said to cut only where more than 2 % of the records are seen beyond it. Models of censored
values take the uncut ones for normal, and of a skewed column that is further from the truth than
a per cent of moved values (docs/evidence.md).
"""

from __future__ import annotations

import math

import numpy as np

from noisewise.artifact import Bounds, CandidateCounts, Censored, Noise, Selection
from noisewise.artifact.bounds import MAX_WINDOW, RecordCounts, Sides, visible_count
from noisewise.artifact.sensitivity import sensitivity
from noisewise.privacy.arguments import PrivateBounds
from noisewise.privacy.budget import PrivacyTerms
from noisewise.privacy.lattice import Outward
from noisewise.privacy.mechanisms import Calibrated, calibrate

PREFERRED = ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")
"""Preferred numbers of a decade, a third of an octave apart: columns often end at a round number.
Twice as many find less at small budgets, half as many are wider (docs/evidence.md)."""

WALL = 4
"""Times the number that noise may hide: so much at the outermost candidate is a wall, and the tail
is continued from there and from the end (chosen by simulation: docs/evidence.md)."""

STEEP = 0.75
"""Density at the outermost candidate relative to the one before, below which there is a tail and no
wall (chosen)."""

USUAL_SHARE = 0.01
"""Share to be cut off at either end where the owner does not say, at most (chosen)."""

USUAL_RECORDS = 20
"""Records to be cut off at either end where the owner does not say, if that is less (chosen on real
tables: docs/evidence-real-tables.md). The few largest values of a skewed column weigh most in a
regression, so that a fixed share of many records would bias it."""

NEGLIGIBLE_SHARE = 0.02
"""Share of the records beyond an end up to which it is not said to cut (chosen by what models of
censored values make of skewed columns: docs/evidence.md)."""


ROUNDING = 1e-3
"""Share of the resolution by which sums of decimal fractions may fall short of it (chosen)."""


def candidates(private: PrivateBounds) -> tuple[tuple[float, ...], float]:
    """Return the public candidates in ascending order, and the anchor among them."""
    lower, upper = private.within
    anchor = min(max(lower, 0.0), upper)
    if anchor - lower < private.resolution:
        anchor = lower
    elif upper - anchor < private.resolution:
        anchor = upper
    below = [-c for c in _away(-anchor, -lower, private.resolution)]
    return (*below[::-1], anchor, *_away(anchor, upper, private.resolution)), anchor


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


def outward(column: str, private: PrivateBounds, fill: float | None) -> Outward:
    """Return the map of a record to the candidate at which it is counted."""
    points, anchor = candidates(private)
    return Outward(column, points, points.index(anchor), fill)


def prepare_search(terms: PrivacyTerms, cost: float) -> Calibrated:
    """Return the noise of a column's counts: the bound is that of any histogram of records."""
    bound = sensitivity(RecordCounts(), terms.relation, terms.records)
    return calibrate(terms.mechanism, bound, cost, terms.guarantee.smoothing)


def searched(
    column: str, private: PrivateBounds, noise: Noise, counts: np.ndarray, records: int | None
) -> tuple[CandidateCounts, Selection]:
    """Return a column's noisy counts, and what the file says of the choice that is made by them.

    Args:
        column: whose bounds are searched.
        private: the public limits and the quantiles to aim for.
        noise: of the counts.
        counts: with noise.
        records: how many there are; None where that is secret.
    """
    points, anchor = candidates(private)
    search = CandidateCounts(points, anchor, tuple(int(c) for c in counts), noise)
    limits = Bounds(*private.within)
    quantiles = aims(private, search, records)
    return search, Selection(column, limits, None, quantiles, noise.cost, search)


def choose_bounds(private: PrivateBounds, search: CandidateCounts, records: int | None) -> Bounds:
    """Return the bounds that noisy counts suggest; the public limits where nothing is visible.

    Args:
        private: the public limits and the quantiles to aim for.
        search: the candidates and their noisy counts.
        records: how many there are; None where that is secret.
    """
    points, counts = np.array(search.candidates), np.array(search.counts, float)
    anchor = search.candidates.index(search.anchor)
    # A count's records lie between its candidate and the next one towards the anchor.
    tops = np.concatenate([points[1 : anchor + 1], points[anchor:]])
    floors = np.concatenate([points[: anchor + 1], points[anchor:-1]])
    visible = [visible_count(search.noise, w + 1, len(points)) for w in range(MAX_WINDOW)]
    total, (low, high) = search.total(records), aims(private, search, records)
    upper = _end(counts, floors, tops, visible, (1 - high) * total, total)
    lower = _end(counts[::-1], -tops[::-1], -floors[::-1], visible, low * total, total)
    if upper is None or lower is None:
        return Bounds(*private.within)
    ends = _settled(points, -lower, upper)
    negligible = NEGLIGIBLE_SHARE * total
    below = _many(counts[(tops <= ends.lower) & (floors < ends.lower)], visible[-1], negligible)
    above = _many(counts[(floors >= ends.upper) & (tops > ends.upper)], visible[-1], negligible)
    if not below and not above:
        return ends
    sides: Sides = "both" if below and above else "lower" if below else "upper"
    return Censored(ends.lower, ends.upper, sides)


def _many(counts: np.ndarray, visible: float, negligible: float) -> bool:
    """Return whether more than noise and more than is negligible lies beyond an end.

    In all of the counts there together, or in any window of them: a cluster may lie far out.
    """
    window = np.convolve(counts, np.ones(MAX_WINDOW), "same") if len(counts) else np.zeros(1)
    wide = visible * math.sqrt(max(len(counts), MAX_WINDOW) / MAX_WINDOW)
    return bool(counts.sum() > max(wide, negligible) or window.max() > max(visible, negligible))


def aims(
    private: PrivateBounds, search: CandidateCounts, records: int | None
) -> tuple[float, float]:
    """Return the quantiles to aim for: the owner's, or those that cut as little as can be seen."""
    if private.quantiles is not None:
        return private.quantiles
    share = min(USUAL_SHARE, USUAL_RECORDS / search.total(records))
    return share, 1 - share


def _end(
    counts: np.ndarray,
    floors: np.ndarray,
    tops: np.ndarray,
    visible: list[float],
    cut: float,
    total: float,
) -> float | None:
    """Return the upper end; None where no window is visible.

    Args:
        counts: the noisy counts, each of records between its floor and its top.
        floors: lower ends of what is counted, ascending.
        tops: upper ends.
        visible: counts of windows of 1, 2, … from which they are visible.
        cut: how many records should lie beyond the end.
        total: how many records there are.
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
        return float(tops[min(outermost, reached(cut))])
    many = hidden <= USUAL_SHARE * total
    tail = many and _falls(counts, tops - floors, outermost)
    if counts[outermost] >= WALL * hidden and not tail:
        return float(tops[outermost])
    near, far = place(hidden), place(WALL * hidden)
    grown = math.log(hidden / max(cut, 1.0)) / math.log(WALL)
    end = near + max(0.0, near - far) * grown
    if not many:
        return end
    return float(tops[min(int(np.searchsorted(tops, end)) + 1, len(tops) - 1)])


def _falls(counts: np.ndarray, widths: np.ndarray, i: int) -> bool:
    """Return whether records are much less dense at a candidate than at the one before it."""
    if i == 0 or min(widths[i], widths[i - 1]) <= 0:
        return False
    return bool(counts[i] / widths[i] < STEEP * max(counts[i - 1], 0.0) / widths[i - 1])


def _settled(points: np.ndarray, lower: float, upper: float) -> Bounds:
    """Return the ends as candidates, moved outward; the limits where only one value is visible."""
    last = len(points) - 1
    high = min(int(np.searchsorted(points, upper, side="left")), last)
    low = max(int(np.searchsorted(points, lower, side="right")) - 1, 0)
    if low >= high:
        # All that is visible has one value, the anchor: of the others nothing is known.
        low, high = 0, last
    return Bounds(float(points[low]), float(points[high]))

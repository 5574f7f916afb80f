"""Bounds chosen by private quantiles, paid from the same budget.

For a candidate c and a quantile a = p/q the penalty is |(q-p) #{x < c} - p #{x > c}|, zero at the
quantile. One replaced record moves it by at most q, one added or removed record by at most
max(p, q-p) (``docs/proofs/sensitivity.md``, section 8). OpenDP's report-noisy-max picks among the
candidates. Counting on a lattice of candidates needs one pass and no sorted copy of the table.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np

from noisewise.artifact import Bounds, Selection
from noisewise.privacy.arguments import PrivateBounds
from noisewise.privacy.budget import Terms
from noisewise.privacy.lattice import Scaled, scaled
from noisewise.privacy.mechanisms import select_least


def candidate_lattice(column: str, request: PrivateBounds, fill: float | None) -> Scaled:
    """Return the candidates as lattice points -half … half of the public search interval."""
    within = Bounds(*request.within)
    half = request.half_candidates
    lattice = scaled(
        column, within, bits=0, origin=within.centre, scale=within.half_width / half, fill=fill
    )
    return dataclasses.replace(lattice, low=-half, high=half)


def penalties(histogram: np.ndarray, quantile: float) -> tuple[np.ndarray, Fraction]:
    """Return every candidate's integer penalty, and the quantile as the fraction it is for."""
    a = Fraction(quantile).limit_denominator(10_000)
    below = np.cumsum(histogram) - histogram
    above = histogram.sum() - np.cumsum(histogram)
    return np.abs((a.denominator - a.numerator) * below - a.numerator * above), a


def penalty_change(a: Fraction, terms: Terms) -> int:
    """Return how far one person can move any penalty."""
    if terms.guarantee.neighbours == "replace-one":
        return terms.records * a.denominator
    return terms.records * max(a.numerator, a.denominator - a.numerator)


def choose_bounds(
    column: str, request: PrivateBounds, histogram: np.ndarray, terms: Terms, cost: float
) -> tuple[Bounds, Selection]:
    """Choose both ends, each for half the cost; an empty interval is widened (post-processing)."""
    picked = []
    for quantile in request.quantiles:
        penalty, a = penalties(histogram, quantile)
        change = penalty_change(a, terms)
        picked.append(select_least(penalty, change, terms.guarantee.accounting, cost / 2))
    low, high = min(picked), max(picked)
    if low == high:
        low, high = max(low - 1, 0), min(high + 1, len(histogram) - 1)
    within, half = Bounds(*request.within), request.half_candidates
    step = within.half_width / half
    bounds = Bounds(
        max(within.lower, within.centre + (low - half) * step),
        min(within.upper, within.centre + (high - half) * step),
    )
    return bounds, Selection(column, within, half, request.quantiles, cost)

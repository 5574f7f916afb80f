"""A posterior quantile by partitions (thesis chapter 4, with errata E5, and past its end).

A private search finds an interval that holds the partitions' quantiles; they are clipped to it,
averaged, and noise is added.

``centred``: candidates are intervals c ± r, r = scale · 2^t, t = -16 … 16, and c = k r, |k| ≤ 32. A
candidate's score is the number of partition quantiles inside, times 64 - (t + 16), less a public
penalty (2 nats per level below the public scale, 2.5 above): narrow intervals are worth more.
One more candidate, "no interval", scores as one that held a fifth of the quantiles. OpenDP's
report-noisy-max picks; a score moves by at most 64.

``symmetric`` (thesis 4; errata E5): intervals ± scale · 2^t, t = 0, 1, …, cap; above-threshold
stops at the first that holds a noisy share of the M quantiles. Threshold noise Lap(2/ε), count
noise Lap(4/ε), both discrete. Proofs: ``docs/proofs/partition.md``, sections 4 and 5.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from noisewise.artifact import ArgumentError, Block, PartitionRelease, QuantileSum, SearchError
from noisewise.artifact.partition_answer import is_hopeless, weak_search
from noisewise.artifact.sensitivity import Sensitivity, sensitivity
from noisewise.artifact.user_warnings import warn_user
from noisewise.models.base import Owner, Word
from noisewise.models.partition.conjugate_regression import CoefficientPosteriors
from noisewise.models.partition.sample_and_aggregate import (
    QUESTION_WORDS,
    PartitionQuery,
    RegressionQuestion,
    flag,
    lattice_codes,
    publish_query,
    question_arguments,
    regression_question,
    share,
    whole_number,
)
from noisewise.privacy.arguments import positive
from noisewise.privacy.budget import round_down
from noisewise.privacy.mechanisms import Calibrated, calibrate, select_least
from noisewise.privacy.options import (
    PrivacyOptions,
    QuantileOptions,
    command_line_options,
    with_options,
)

MAX_LEVEL = 16
"""Radii reach from scale · 2^-16 to scale · 2^16 (chosen)."""
MAX_CENTRE_STEPS = 32
"""Centres reach 32 radii from zero on either side (chosen)."""
MAX_WORTH = 64
"""Weight of the narrowest intervals (chosen); it is the sensitivity of a score."""
PENALTY_BELOW, PENALTY_ABOVE = 2.0, 2.5
"""Nats per level below and above the public scale (chosen)."""
NO_INTERVAL_ONE_IN = 5
""" "No interval" is worth what a fifth of the quantiles would be (chosen)."""
MAX_PENALTY = 2.0**60
"""Public penalties are cut off here, so that scores fit into 64 bits."""


@dataclass(frozen=True)
class Candidates:
    """Public intervals, their weights and their penalties in nats."""

    centre: np.ndarray
    radius: np.ndarray
    worth: np.ndarray
    nats: np.ndarray


def candidates(scale: float) -> Candidates:
    """Return the intervals of every (t, k); a function of public numbers only."""
    levels, steps = (
        np.arange(-MAX_LEVEL, MAX_LEVEL + 1),
        np.arange(-MAX_CENTRE_STEPS, MAX_CENTRE_STEPS + 1),
    )
    t, k = np.repeat(levels, len(steps)), np.tile(steps, len(levels))
    radius = scale * 2.0**t
    nats = np.where(t < 0, -PENALTY_BELOW * t, PENALTY_ABOVE * t)
    return Candidates(k * radius, radius, MAX_WORTH - (t + MAX_LEVEL), nats)


def counts(quantiles: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Count the quantiles in each closed interval; NaN lies in none."""
    known = np.sort(quantiles[~np.isnan(quantiles)])
    return np.searchsorted(known, upper, "right") - np.searchsorted(known, lower, "left")


def penalties(quantiles: np.ndarray, tried: Candidates, cost: float) -> np.ndarray:
    """Return whole numbers to be made small, "no interval" last; each moves by ``MAX_WORTH``."""
    inside = counts(quantiles, tried.centre - tried.radius, tried.centre + tried.radius)
    nat = 2 * MAX_WORTH / cost
    public = np.rint(np.minimum(tried.nats * nat, MAX_PENALTY)).astype(np.int64)
    no_interval = -(MAX_WORTH * len(quantiles) // NO_INTERVAL_ONE_IN)
    return np.append(public - tried.worth * inside, no_interval)


def centred_interval(quantiles: np.ndarray, scale: float, cost: float) -> tuple[float, float]:
    """Return centre and radius, chosen by one noisy maximum for all of ``cost``."""
    tried = candidates(scale)
    chosen = select_least(penalties(quantiles, tried, cost), MAX_WORTH, "pure", cost)
    if chosen == len(tried.centre):
        raise SearchError(
            "no interval was found that holds the partitions' quantiles; the budget stays spent. "
            f"Intervals from {tried.radius[0]:.3g} to {tried.radius[-1]:.3g} wide were tried, at "
            f"most {MAX_CENTRE_STEPS} widths from 0: is scale={scale:g} the coefficient's order of "
            "magnitude? Otherwise raise epsilon_bounds, or the number of partitions"
        )
    return float(tried.centre[chosen]), float(tried.radius[chosen])


@dataclass(frozen=True)
class ThresholdNoise:
    """Above-threshold's two noises, each for half of the cost."""

    threshold: Calibrated
    query: Calibrated


def threshold_noise(cost: float) -> ThresholdNoise:
    """Calibrate to sensitivity 1 (threshold) and 2 (counts): scales 2/ε and 4/ε (errata E5)."""
    half = cost / 2
    one, two = Sensitivity(1, 1), Sensitivity(2, 4)
    return ThresholdNoise(calibrate("laplace", one, half), calibrate("laplace", two, half))


def above_threshold(queries: np.ndarray, level: int, noise: ThresholdNoise) -> int | None:
    """Return the first query that reaches the noisy level, or None; later ones stay unasked."""
    bar = _noisy(noise.threshold, level)
    for position, query in enumerate(queries):
        if _noisy(noise.query, int(query)) >= bar:
            return position
    return None


def _noisy(noise: Calibrated, value: int) -> int:
    return int(noise.draw(np.array([value], np.int64))[0])


def symmetric_radius(
    quantiles: np.ndarray, scale: float, coverage: float, doublings: int, noise: ThresholdNoise
) -> float:
    """Return the radius of an interval around zero, found by above-threshold."""
    radii = scale * 2.0 ** np.arange(doublings + 1)
    level = math.ceil(coverage * len(quantiles))
    position = above_threshold(counts(quantiles, -radii, radii), level, noise)
    if position is None:
        raise SearchError(
            f"the bound search found no bound within its cap: up to ±{radii[-1]:.3g}, no interval "
            f"held a noisy {coverage:.0%} of the partitions' quantiles; the budget stays spent. "
            "Raise scale, doublings, epsilon_bounds or the number of partitions"
        )
    return float(radii[position])


MAX_DOUBLINGS = 200
"""Doublings of a radius, at most (chosen): float64 holds the largest of them for any scale."""


@with_options(QuantileOptions)
def posterior_quantile(
    source: Any,
    *,
    x: str | Iterable[str],
    y: str,
    coefficient: str,
    p: float,
    epsilon_bounds: float,
    epsilon_value: float,
    partitions: int,
    centred: bool = True,
    scale: float = 1.0,
    coverage: float = 0.5,
    doublings: int = 40,
    prior: object = None,
    fill: Mapping[str, float] | None = None,
    **privacy: Unpack[QuantileOptions],
) -> PartitionRelease:
    """Release the p-quantile of a regression coefficient's posterior.

    Each partition's likelihood is raised to the power M, so that its posterior is as narrow as the
    whole table's; the partitions' quantiles are clipped to a privately found interval, averaged,
    and noise is added. No bounds on the columns are needed. Read ``release.quantile`` and
    ``release.interval(0.9)``, which covers the noise in the value, not a search that missed.

    Args:
        source: path or glob, database URL with ``#table``, data frame, Arrow or Ibis table.
        x: covariate columns; an intercept is always fitted.
        y: response column.
        coefficient: one of ``x``, or ``"intercept"``.
        p: which quantile, between 0 and 1.
        epsilon_bounds: budget for the interval. The search is reliable where ``partitions`` times
            this is at least 20 (``centred=False``: 20/``coverage``); below, a warning says so
            before anything is spent, and below a quarter of that it is refused. Every factor of
            two by which ``scale`` is off takes 6 more.
        epsilon_value: budget for the mean. The release costs the sum of both.
        partitions: their number M. Around n/100, a hundred records each: more means less noise and
            a surer search, but a partition with few records (five per coefficient at the least)
            scatters far. If M times ``epsilon_bounds`` is then below 20, raise the ε, not M.
        centred: choose the interval's centre as well; False: symmetric around zero, as the thesis.
        scale: public order of magnitude. Centred: of the spread of the partitions' quantiles (the
            search reaches 2^±16 of it, but pays for distance). Symmetric: the smallest radius.
        coverage: symmetric only: the share of the partitions the interval should hold.
        doublings: symmetric only: how often the radius may double before the search gives up.
        prior: ``nw.priors.NormalInverseGamma`` or ``nw.release.Zellner``; default ``Zellner()``.
        fill: public values for missing numbers; required for columns with NULLs under replace-one.
        **privacy: the privacy options (`PrivacyOptions`).

    Returns:
        The release, which is its own answer.

    Raises:
        SearchError: no interval was found; what was spent stays spent.

    Example:
        >>> import noisewise as nw
        >>> import pandas as pd
        >>> table = pd.DataFrame({"a": range(400), "b": [i * i % 31 for i in range(400)]})
        >>> release = nw.release.posterior_quantile(
        ...     table, x="a", y="b", coefficient="a", p=0.5, partitions=20,
        ...     epsilon_bounds=1.0, epsilon_value=1.0,
        ... )
        >>> release.guarantee.epsilon
        2.0
    """
    q = share(p, "p")
    total, bounds_cost, value_cost = _costs(epsilon_bounds, epsilon_value)
    asked = regression_question(
        x=x, y=y, coefficient=coefficient, partitions=partitions, prior=prior, fill=fill,
        options=PrivacyOptions.of(QuantileOptions, privacy, epsilon=total),
    )  # fmt: skip
    search = IntervalSearch(
        flag(centred, "centred"), _scale(scale), share(coverage, "coverage"),
        whole_number(doublings, "doublings", 0, MAX_DOUBLINGS), bounds_cost,
    )  # fmt: skip
    blank = QuantileSum(
        asked.columns, asked.coefficient, q, asked.partitions, 0.0, 1.0,
        "centred" if centred else "symmetric", bounds_cost,
    )  # fmt: skip
    weak = weak_search(blank, search.coverage)
    if is_hopeless(blank, search.coverage):
        raise ArgumentError(f"epsilon_bounds: {weak}; so far below, it would all but surely miss")
    if weak is not None:
        advice = "raise epsilon_bounds, or partitions if each keeps enough records (about 100)"
        warn_user(f"{weak}; {advice}")
    query = _query(asked, blank, search, value_cost)
    return publish_query(source, query)


def _costs(bounds: object, value: object) -> tuple[float, float, float]:
    """Return the whole as a person adds it up (0.1 + 0.2 = 0.3), and parts within it."""
    first, second = positive(bounds, "epsilon_bounds"), positive(value, "epsilon_value")
    total = float(Fraction(repr(first)) + Fraction(repr(second)))
    # Binary rounding can leave the whole an ulp short; the interval keeps its share to the bit.
    rest = min(second, round_down(Fraction(total) - Fraction(first)))
    if rest <= second / 2:
        raise ArgumentError("epsilon_value: vanishes beside epsilon_bounds")
    return total, first, rest


def _scale(value: object) -> float:
    """Return the public order of magnitude, within what float64 can square."""
    scale = positive(value, "scale")
    if not 1e-100 < scale < 1e100:
        raise ArgumentError(f"scale: must be between 1e-100 and 1e100, not {scale:g}")
    return scale


@dataclass(frozen=True)
class IntervalSearch:
    """A search for centre and radius, its noise calibrated before any data are read.

    ``noise`` is above-threshold's; None where the centre is searched too.
    """

    centred: bool
    scale: float
    coverage: float
    doublings: int
    cost: float
    noise: ThresholdNoise | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", None if self.centred else threshold_noise(self.cost))

    def __call__(self, quantiles: np.ndarray) -> tuple[float, float]:
        """Return centre and radius of an interval that holds most of these quantiles."""
        if self.noise is None:
            return centred_interval(quantiles, self.scale, self.cost)
        return 0.0, symmetric_radius(
            quantiles, self.scale, self.coverage, self.doublings, self.noise
        )


def _query(
    asked: RegressionQuestion, blank: QuantileSum, search: IntervalSearch, cost: float
) -> PartitionQuery:
    """Return the query; sensitivity in steps is the same for every interval, so noise is known."""
    noise = calibrate("laplace", sensitivity(blank, asked.terms.relation), cost)
    return PartitionQuery(
        question=asked,
        family="posterior-quantile",
        model_entries={},
        power=float(asked.partitions),
        share=1.0,
        rehearsal=Block(blank, noise.noise, np.zeros((1, 1), np.int64)),
        draw=lambda posteriors: draw_quantile(posteriors, blank, search, noise),
    )


def quantile_codes(statistic: QuantileSum, quantiles: np.ndarray) -> np.ndarray:
    """Return offsets from the centre as whole numbers in [-2**bits, 2**bits] (partition, 1)."""
    with np.errstate(all="ignore"):
        offset = (quantiles - statistic.centre) / statistic.radius
    return lattice_codes(
        np.nan_to_num(offset, nan=0.0)[:, None], -(2**statistic.bits), statistic.bits
    )


def draw_quantile(
    posteriors: CoefficientPosteriors, blank: QuantileSum, search: IntervalSearch, noise: Calibrated
) -> Block:
    """Find the interval, add up clipped quantiles, draw noise; return the block to release."""
    quantiles = posteriors.quantiles(blank.p)
    centre, radius = search(quantiles)
    statistic = dataclasses.replace(blank, centre=centre, radius=radius)
    codes = quantile_codes(statistic, quantiles)
    return Block(statistic, noise.noise, noise.draw(codes.sum(axis=0)[:, None]))


OWNER = Owner(
    release=posterior_quantile,
    summary="Release a posterior quantile of a coefficient of a Bayesian linear regression.",
    words=(
        *QUESTION_WORDS,
        Word("p", "number", "which quantile, between 0 and 1", required=True),
        Word("epsilon_bounds", "number", "budget for finding an interval", required=True),
        Word("epsilon_value", "number", "budget for the value itself", required=True),
        Word(
            "centred",
            "flag",
            "search the interval's centre too; without, it lies around 0",
            default=True,
        ),
        Word(
            "scale",
            "number",
            "public order of magnitude of how much the partitions' quantiles differ",
            default=1.0,
        ),
        Word(
            "coverage",
            "number",
            "with --no-centred: the share of the partitions that the interval should hold",
            default=0.5,
        ),
        Word(
            "doublings",
            "count",
            "with --no-centred: how often the interval may double before the search gives up",
            default=40,
        ),
    ),
    privacy=command_line_options(QuantileOptions),
    prepare=question_arguments,
    planned=False,
)
"""The owner's part of the model, for the command line."""

"""A posterior quantile by partitions (thesis chapter 4, with errata E5, and past its end)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from noisewise.artifact import ArgumentError, Block, PartitionRelease, QuantileSum
from noisewise.artifact.partition_answer import is_hopeless, weak_search
from noisewise.artifact.user_warnings import warn_user
from noisewise.models.base import Owner, Word
from noisewise.models.partition.conjugate_regression import CoefficientPosteriors
from noisewise.models.partition.private_interval_search import (
    centred_interval,
    symmetric_radius,
    threshold_noise,
)
from noisewise.models.partition.regression_question import (
    QUESTION_WORDS,
    RegressionQuestion,
    question_arguments,
    regression_question,
)
from noisewise.models.partition.sample_and_aggregate import (
    PartitionQuery,
    lattice_codes,
    publish_query,
)
from noisewise.privacy.arguments import number, positive, shown
from noisewise.privacy.budget import round_down
from noisewise.privacy.mechanisms import Calibrated, calibrate
from noisewise.privacy.options import (
    PrivacyOptions,
    QuantileOptions,
    command_line_options,
    with_options,
)
from noisewise.privacy.sensitivity import sensitivity

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
    q = number(p, "p")
    if not 0 < q < 1:
        raise ArgumentError(f"p: must be between 0 and 1, not {shown(p)}")
    total, bounds_cost, value_cost = _costs(epsilon_bounds, epsilon_value)
    asked = regression_question(
        x=x, y=y, coefficient=coefficient, partitions=partitions, prior=prior, fill=fill,
        options=PrivacyOptions.of(QuantileOptions, privacy, epsilon=total),
    )  # fmt: skip
    search = _interval_search(centred, _scale(scale), coverage, doublings, bounds_cost)
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


class IntervalSearch:
    """A search for centre and radius, its noise calibrated before any data are read."""

    def __init__(
        self, centred: bool, scale: float, coverage: float, doublings: int, cost: float
    ) -> None:
        self._centred, self._scale, self._cost = centred, scale, cost
        self.coverage, self._doublings = coverage, doublings
        self._noise = None if centred else threshold_noise(cost)

    def __call__(self, quantiles: np.ndarray) -> tuple[float, float]:
        """Return centre and radius of an interval that holds most of these quantiles."""
        if self._noise is None:
            return centred_interval(quantiles, self._scale, self._cost)
        radius = symmetric_radius(
            quantiles, self._scale, self.coverage, self._doublings, self._noise
        )
        return 0.0, radius


def _interval_search(
    centred: object, scale: float, coverage: object, doublings: object, cost: float
) -> IntervalSearch:
    """Check the search's arguments; return the search."""
    if not isinstance(centred, bool):
        raise ArgumentError(f"centred: must be True or False, not {shown(centred)}")
    share = number(coverage, "coverage")
    if not 0 < share < 1:
        raise ArgumentError(f"coverage: must be between 0 and 1, not {shown(coverage)}")
    if isinstance(doublings, bool) or not isinstance(doublings, int):
        raise ArgumentError(f"doublings: must be a whole number, not {shown(doublings)}")
    if not 0 <= doublings <= MAX_DOUBLINGS:
        raise ArgumentError(f"doublings: must be in [0, {MAX_DOUBLINGS}], not {doublings}")
    return IntervalSearch(centred, scale, share, doublings, cost)


def _query(
    asked: RegressionQuestion, blank: QuantileSum, search: IntervalSearch, cost: float
) -> PartitionQuery:
    """Return the query; sensitivity in steps is the same for every interval, so noise is known."""
    noise = calibrate("laplace", sensitivity(blank, asked.terms.relation), cost)
    return PartitionQuery(
        question=asked,
        family="posterior-quantile",
        words={},
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
        Word("centred", "flag", "choose the interval's centre too; else around 0", default=True),
        Word("scale", "number", "public order of magnitude of the spread", default=1.0),
        Word("coverage", "number", "share to be held; --no-centred only", default=0.5),
        Word("doublings", "count", "cap of the search; --no-centred only", default=40),
    ),
    privacy=command_line_options(QuantileOptions),
    prepare=question_arguments,
    plan_trials=None,
)
"""The owner's part of the model, for the command line."""

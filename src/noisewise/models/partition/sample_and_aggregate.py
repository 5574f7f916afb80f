"""Sample and aggregate: from a checked question to a Release, in the order that keeps the promise.

Everything public is rehearsed first; the table is read once, into random partitions that do not
depend on it; data that do not fit are refused; the spend is committed; then noise is drawn.

What is aggregated are whole numbers. ``lattice_codes`` maps one partition's answer to one lattice
value, so that replacing, adding or removing a record, which changes the answer of one partition
only, moves the sum by at most the lattice's range (``docs/proofs/partition.md``, section 2): what
the floating-point fit did cannot leave the lattice. NaN, the answer of a partition that could not
be fitted, has a fixed place: probability one half, or the centre of the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from noisewise.artifact import ArgumentError, Block, DataError, PartitionRelease, ReleaseError
from noisewise.models.partition.conjugate_regression import CoefficientPosteriors, fit
from noisewise.models.partition.partition_moments import PartitionedTable, read_partitions
from noisewise.models.partition.regression_question import RegressionQuestion
from noisewise.privacy.budget import warn_of_large_epsilon
from noisewise.privacy.pipeline import (
    Order,
    Payment,
    assemble,
    check_columns,
    refuse_unfit,
)
from noisewise.privacy.selection import refuse_selection
from noisewise.privacy.sources import open_source
from noisewise.privacy.sum_plan import Sums

UNFITTED_ONE_IN = 20
"""At most one partition in so many may be without a posterior (chosen)."""


@dataclass(frozen=True)
class PartitionQuery:
    """A question, how its partitions are fitted, and what draws the answer.

    ``family`` and ``words`` go into the release file; ``power`` and ``share`` are those of
    ``conjugate_regression``; ``rehearsal`` is the answer with zeros; ``draw`` makes the noisy one.
    """

    question: RegressionQuestion
    family: str
    words: Mapping[str, Any]
    power: float
    share: float
    rehearsal: Block
    draw: Callable[[CoefficientPosteriors], Block]


def publish_query(source: Any, query: PartitionQuery) -> PartitionRelease:
    """Read the table, fit its partitions, pay, and return the noisy answer as a Release."""
    _rehearse(query)
    order = _order(query, {})
    warn_of_large_epsilon(order.terms, order.options)
    with Payment(order) as payment:
        return _publish(source, query, order, payment)


def _publish(
    source: Any, query: PartitionQuery, order: Order, payment: Payment
) -> PartitionRelease:
    reader = open_source(source)
    check_columns(reader, order, query.question.columns)
    refuse_selection(reader.selection(), query.question.terms.guarantee.neighbours)
    progress = order.options.progress
    table = read_partitions(reader, query.question.plan, query.question.partitions, progress)
    _refuse_table(table, order, query.question)
    prior = query.question.prior.settled(table.rows)
    posteriors = fit(table.moments, query.question.index, prior, query.power, query.share)
    _refuse_fit(posteriors)
    receipt = payment.pay()
    order = _order(query, prior.words())
    blocks = (query.draw(posteriors),)
    release = assemble(order, {}, (), blocks, np.array([table.rows]), receipt)
    return cast(PartitionRelease, release)


def _order(query: PartitionQuery, prior: Mapping[str, Any]) -> Order:
    """Return the privacy core's order, with the prior's words in its model."""
    return Order(
        family=query.family,
        model={**query.question.words(), **prior, **query.words},
        kinds=(),
        specify=lambda bounds: (),
        terms=query.question.terms,
        options=query.question.options,
        fill=query.question.fill,
    )


def _rehearse(query: PartitionQuery) -> None:
    """Assemble the release with zeros: what the wire refuses costs nothing here."""
    try:
        order = _order(query, query.question.prior.words())
        assemble(order, {}, (), (query.rehearsal,), np.zeros(1, np.int64), None)
    except ReleaseError as error:
        raise ArgumentError(str(error)) from None


def _refuse_table(table: PartitionedTable, order: Order, question: RegressionQuestion) -> None:
    refuse_unfit(Sums((), np.array([table.rows]), table.missing, ()), order)
    if table.rows < question.least_rows:
        most = table.rows * question.partitions // question.least_rows
        remedy = f"use partitions={most} or fewer" if most else "there are too few records"
        if question.terms.guarantee.hides_size:
            remedy = "use fewer partitions"  # how many would fit tells the secret n
        raise DataError(
            f"partitions: {question.partitions} are more than the table's rows allow. With "
            f"{len(question.x) + 1} coefficients, partitions need "
            f"{question.least_rows // question.partitions} records on average, or too many of "
            f"them are rank-deficient; {remedy}"
        )


def _refuse_fit(posteriors: CoefficientPosteriors) -> None:
    if UNFITTED_ONE_IN * np.count_nonzero(~posteriors.usable) > len(posteriors.usable):
        raise DataError(
            "partitions: too many of them have no posterior, because their covariates are "
            "rank-deficient (a covariate that is constant or repeats others within a partition) "
            "or not finite; use fewer partitions, leave out a covariate, or give a proper prior"
        )


def lattice_codes(values: np.ndarray, low: int, bits: int) -> np.ndarray:
    """Return values in [-1, 1] as whole numbers in [low, 2**bits].

    The last step is a clamp of whole numbers: the range holds whatever rounding did before.
    """
    steps = np.floor(np.clip(values, -1.0, 1.0) * 2.0**bits + 0.5).astype(np.int64)
    return np.asarray(np.clip(steps, low, 2**bits))

"""From a checked question to a Release, in the order that keeps the promise.

Everything public is rehearsed first; the table is read once, into random partitions that do not
depend on it; data that do not fit are refused; the spend is committed; then noise is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError, Block, DataError, Release, ReleaseError
from noisewise.release.partition.ask import Ask
from noisewise.release.partition.fit import Marginals, fit
from noisewise.release.partition.moments import Read, read
from noisewise.release.plan import Progress, Sums
from noisewise.release.publish import Order, Till, assemble, refuse
from noisewise.release.selection import refuse_selection
from noisewise.release.sources import open_source

_UNFIT = 20
"""At most one partition in so many may be without a posterior."""


@dataclass(frozen=True)
class Job:
    """A question, the powers of likelihood and prior, and what draws the answer."""

    ask: Ask
    family: str
    words: Mapping[str, Any]
    power: float
    share: float
    rehearsal: Block
    draw: Callable[[Marginals], Block]


def publish(
    source: Any,
    job: Job,
    ledger: str | Path | None,
    dataset: str | None,
    progress: Progress | None,
) -> Release:
    """Carry it out."""
    _rehearse(job)
    order = _order(job, {}, ledger, dataset)
    till = Till(order)
    reader = open_source(source)
    reader.check(job.ask.columns, ())
    refuse_selection(reader.selection(), job.ask.terms.guarantee.neighbours)
    table = read(reader, job.ask.plan, job.ask.partitions, progress)
    _refuse_table(table, order, job.ask)
    prior = job.ask.prior.settled(table.rows)
    found = fit(table.moments, job.ask.index, prior, job.power, job.share)
    _refuse_fit(found)
    receipt = till.pay()
    order = _order(job, prior.words(), ledger, dataset)
    return assemble(order, {}, (), (job.draw(found),), np.array([table.rows]), receipt)


def _order(
    job: Job, prior: Mapping[str, Any], ledger: str | Path | None, dataset: str | None
) -> Order:
    return Order(
        family=job.family,
        model={**job.ask.words(), **prior, **job.words},
        kinds=(),
        specify=lambda bounds: (),
        terms=job.ask.terms,
        fill=job.ask.fill,
        ledger=ledger,
        dataset=dataset,
    )


def _rehearse(job: Job) -> None:
    """The release with zeros: what the wire refuses costs nothing here."""
    try:
        order = _order(job, job.ask.prior.words(), None, None)
        assemble(order, {}, (), (job.rehearsal,), np.zeros(1, np.int64), None)
    except ReleaseError as error:
        raise ArgumentError(str(error)) from None


def _refuse_table(table: Read, order: Order, ask: Ask) -> None:
    refuse(Sums((), np.array([table.rows]), table.missing, ()), order)
    if table.rows < ask.least_rows:
        most = table.rows * ask.partitions // ask.least_rows
        remedy = f"use partitions={most} or fewer" if most else "there are too few records"
        if ask.terms.guarantee.neighbours == "add-remove":
            remedy = "use fewer partitions"  # how many would fit tells the secret n
        raise DataError(
            f"partitions: {ask.partitions} are more than the table's rows allow. With "
            f"{len(ask.x) + 1} coefficients, partitions need "
            f"{ask.least_rows // ask.partitions} records on average, or too many of them are "
            f"rank-deficient; {remedy}"
        )


def _refuse_fit(found: Marginals) -> None:
    if _UNFIT * np.count_nonzero(~found.usable) > len(found.usable):
        raise DataError(
            "partitions: too many of them have no posterior, because their covariates are "
            "rank-deficient (a covariate that is constant or repeats others within a partition) "
            "or not finite; use fewer partitions, leave out a covariate, or give a proper prior"
        )

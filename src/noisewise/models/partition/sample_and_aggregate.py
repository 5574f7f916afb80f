"""Sample and aggregate: from a question about a regression to a Release, for both kinds of answer.

A question is a regression and one of its coefficients. What the owner wrote is checked, and
everything public is rehearsed; the table is read once, into random partitions that do not depend on
it; data that do not fit are refused; the spend is committed; then noise is drawn.

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
from noisewise.artifact.statistics.partition_sums import INTERCEPT, MAX_PARTITIONS
from noisewise.models.base import Word
from noisewise.models.partition.conjugate_regression import (
    CoefficientPosteriors,
    RegressionPrior,
    Zellner,
    fit,
    prior_of,
)
from noisewise.models.partition.partition_moments import PartitionedTable, read_partitions
from noisewise.privacy import arguments
from noisewise.privacy.arguments import mapping, number, shown
from noisewise.privacy.budget import PrivacyTerms, privacy_terms, warn_of_large_epsilon
from noisewise.privacy.lattice import Outside
from noisewise.privacy.options import PrivacyOptions
from noisewise.privacy.pipeline import (
    Payment,
    ReleaseRequest,
    assemble,
    check_columns,
    refuse_unfit,
)
from noisewise.privacy.selection import parse_where, refuse_kept_records
from noisewise.privacy.sources import open_source
from noisewise.privacy.sum_plan import ProductSums, SumPlan, Sums, Whole

MIN_ROWS_PER_COEFFICIENT = 5
"""On average and per partition (chosen): with fewer, partitions of random size are often
rank-deficient."""


@dataclass(frozen=True)
class RegressionQuestion:
    """A regression, one of its coefficients, a prior, and a number of partitions."""

    x: tuple[str, ...]
    y: str
    coefficient: str
    partitions: int
    prior: RegressionPrior
    fill: Mapping[str, float]
    terms: PrivacyTerms
    options: PrivacyOptions

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the covariates, then the response."""
        return (*self.x, self.y)

    @property
    def index(self) -> int:
        """Return the position of the coefficient; the intercept comes last."""
        return len(self.x) if self.coefficient == INTERCEPT else self.x.index(self.coefficient)

    @property
    def least_rows(self) -> int:
        """Return the number of records below which the table is refused."""
        return MIN_ROWS_PER_COEFFICIENT * (len(self.x) + 1) * self.partitions

    @property
    def plan(self) -> SumPlan:
        """Return what to read: the columns, and when a record is complete."""
        present = tuple(Outside(c, 0.0, 1.0, self.fill.get(c)) for c in self.columns)
        unit = self.terms.guarantee.unit
        person = None if unit is None else Whole(unit)
        return SumPlan(
            (ProductSums(present, ((),)),), None, person, parse_where(self.options.where)
        )

    def model_entries(self) -> dict[str, Any]:
        """Return the question as entries of the release file."""
        return {"x": self.x, "y": self.y, "coefficient": self.coefficient}


def regression_question(
    *,
    x: object,
    y: object,
    coefficient: object,
    partitions: object,
    prior: object,
    fill: object,
    options: PrivacyOptions,
) -> RegressionQuestion:
    """Check what the owner wrote; return the question."""
    covariates = arguments.names(x, "x")
    response = arguments.name(y, "y")
    if response in covariates:
        raise ArgumentError(f"y: must be one column that is not among x, not {shown(y)}")
    number_of_partitions = whole_number(partitions, "partitions", 1, MAX_PARTITIONS)
    chosen = prior_of(prior, len(covariates) + 1)
    agreed = privacy_terms(options)
    columns = (*covariates, response)
    if agreed.guarantee.hides_size and chosen == Zellner():
        why = "with unit" if options.neighbours == "replace-one" else "under add-remove neighbours"
        raise ArgumentError(
            f"prior: {why} n is secret, so Zellner's g must be given: "
            "prior=nw.release.Zellner(g=...)"
        )
    if agreed.guarantee.unit in columns:
        raise ArgumentError(f"unit: {agreed.guarantee.unit!r} is also a column of the regression")
    return RegressionQuestion(
        covariates, response, _coefficient(coefficient, covariates), number_of_partitions, chosen,
        _fill(fill, columns), agreed, options,
    )  # fmt: skip


QUESTION_WORDS = (
    Word("x", "columns", "covariate; repeat for several", required=True),
    Word("y", "column", "response", required=True),
    Word("coefficient", "text", "a covariate, or intercept", required=True),
    Word("partitions", "count",
         "number of random partitions; around 100 records each is a good size", required=True),
    Word("g", "number",
         "Zellner's g: the prior weighs as much as n/g records; left out, g is the public n, so "
         "that it weighs as much as one"),
    Word("normal", "text",
         "PRECISION,SHAPE,RATE: a normal-inverse-gamma prior with mean 0 and that precision for "
         "every coefficient, instead of Zellner's"),
    Word("fill", "fill", "public value for missing entries; repeat", planned=False),
)  # fmt: skip
"""What the command line asks for both kinds of question."""


def question_arguments(words: Mapping[str, object]) -> dict[str, object]:
    """Return a release function's arguments from the command line's words: they name the prior."""
    g, normal, x = words.get("g"), words.get("normal"), words.get("x")
    prior = _named_prior(g, normal, len(x) if isinstance(x, list | tuple) else 1)
    rest = {name: value for name, value in words.items() if name not in ("g", "normal")}
    return {**rest, "prior": prior}


def _named_prior(g: object, normal: object, covariates: int) -> object:
    """Return Zellner's prior, or a spherical normal-inverse-gamma."""
    if normal is None:
        return Zellner(None if g is None else number(g, "g"))
    if g is not None:
        raise ArgumentError("--normal: another prior than --g; give one of them")
    try:
        precision, shape, rate = (float(part) for part in str(normal).split(","))
    except ValueError:
        raise ArgumentError(f"--normal: must be PRECISION,SHAPE,RATE, not {normal!r}") from None
    if not min(precision, shape, rate) > 0:
        raise ArgumentError(f"--normal: all three must be above zero, not {normal!r}")
    from noisewise.priors import NormalInverseGamma

    size = covariates + 1
    return NormalInverseGamma(np.zeros(size), precision * np.eye(size), shape, rate)


def whole_number(value: object, name: str, low: int, high: int) -> int:
    """Return a whole number in [low, high]; refuse anything else by the argument's name."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(f"{name}: must be a whole number, not {shown(value)}")
    if not low <= value <= high:
        raise ArgumentError(f"{name}: must be in [{low}, {high}], not {value}")
    return value


def flag(value: object, name: str) -> bool:
    """Return True or False; refuse anything else by the argument's name."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{name}: must be True or False, not {shown(value)}")
    return value


def share(value: object, name: str) -> float:
    """Return a number strictly between 0 and 1; refuse anything else by the argument's name."""
    given = number(value, name)
    if not 0 < given < 1:
        raise ArgumentError(f"{name}: must be between 0 and 1, not {shown(value)}")
    return given


def _coefficient(value: object, covariates: tuple[str, ...]) -> str:
    """Return the name of a covariate or of the intercept; refuse anything else."""
    if not isinstance(value, str) or value not in (*covariates, INTERCEPT):
        raise ArgumentError(
            f"coefficient: must be one of {', '.join(covariates)} or {INTERCEPT!r}, "
            f"not {shown(value)}"
        )
    if value == INTERCEPT and INTERCEPT in covariates:
        raise ArgumentError(f"coefficient: {INTERCEPT!r} is also a column: rename the column")
    return value


def _fill(given: object, columns: tuple[str, ...]) -> dict[str, float]:
    """Return public values for missing numbers, by column of the question."""
    filled = {}
    for column, value in mapping(given, "fill", "{column: public value}").items():
        if column not in columns:
            raise ArgumentError(f"fill: {shown(column)} is not among {', '.join(columns)}")
        filled[column] = number(value, f"fill[{column!r}]")
    return filled


UNFITTED_ONE_IN = 20
"""At most one partition in so many may be without a posterior (chosen)."""


@dataclass(frozen=True)
class PartitionQuery:
    """A question, how its partitions are fitted, and what draws the answer.

    ``family`` and ``model_entries`` go into the release file; ``power`` and ``share`` are those of
    ``conjugate_regression``; ``rehearsal`` is the answer with zeros; ``draw`` makes the noisy one.
    """

    question: RegressionQuestion
    family: str
    model_entries: Mapping[str, Any]
    power: float
    share: float
    rehearsal: Block
    draw: Callable[[CoefficientPosteriors], Block]


def publish_query(source: Any, query: PartitionQuery) -> PartitionRelease:
    """Read the table, fit its partitions, pay, and return the noisy answer as a Release."""
    _rehearse(query)
    request = _request(query, {})
    warn_of_large_epsilon(request.terms, request.options)
    with Payment(request) as payment:
        return _publish(source, query, request, payment)


def _publish(
    source: Any, query: PartitionQuery, request: ReleaseRequest, payment: Payment
) -> PartitionRelease:
    reader = open_source(source)
    check_columns(reader, request, query.question.columns)
    refuse_kept_records(reader.kept_records(), query.question.terms.guarantee.neighbours)
    progress = request.options.progress
    table = read_partitions(reader, query.question.plan, query.question.partitions, progress)
    _refuse_table(table, request, query.question)
    prior = query.question.prior.settled(table.rows)
    posteriors = fit(table.moments, query.question.index, prior, query.power, query.share)
    _refuse_fit(posteriors)
    receipt = payment.pay()
    request = _request(query, prior.model_entries())
    blocks = (query.draw(posteriors),)
    release = assemble(request, {}, (), blocks, np.array([table.rows]), receipt)
    return cast(PartitionRelease, release)


def _request(query: PartitionQuery, prior: Mapping[str, Any]) -> ReleaseRequest:
    """Return what is asked of the privacy core, with the prior among the model's entries."""
    return ReleaseRequest(
        family=query.family,
        model={**query.question.model_entries(), **prior, **query.model_entries},
        kinds=(),
        specify=lambda bounds: (),
        terms=query.question.terms,
        options=query.question.options,
        fill=query.question.fill,
    )


def _rehearse(query: PartitionQuery) -> None:
    """Assemble the release with zeros: what the wire refuses costs nothing here."""
    try:
        request = _request(query, query.question.prior.model_entries())
        assemble(request, {}, (), (query.rehearsal,), np.zeros(1, np.int64), None)
    except ReleaseError as error:
        raise ArgumentError(str(error)) from None


def _refuse_table(
    table: PartitionedTable, request: ReleaseRequest, question: RegressionQuestion
) -> None:
    refuse_unfit(Sums((), np.array([table.rows]), table.missing, ()), request)
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

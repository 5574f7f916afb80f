"""Logistic regression: the sums behind every logistic or probit regression of a response, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Unpack, cast

from noisewise.artifact import ArgumentError, Bounds, Clamped, Gram, Statistic
from noisewise.models.base import Owner, Word
from noisewise.models.generalized_linear import LogisticRegressionRelease
from noisewise.privacy import arguments
from noisewise.privacy.arguments import PrivateBounds
from noisewise.privacy.budget import privacy_terms
from noisewise.privacy.options import (
    MomentOptions,
    PrivacyOptions,
    command_line_options,
    with_options,
)
from noisewise.privacy.pipeline import ReleaseRequest, publish

Limits = Mapping[str, tuple[float, float] | Bounds | PrivateBounds]
"""Bounds by column."""


@with_options(MomentOptions)
def logistic_regression(
    source: Any,
    *,
    x: str | Iterable[str],
    y: str,
    bounds: Limits,
    fill: Mapping[str, float] | None = None,
    count_clamped: bool = False,
    **privacy: Unpack[MomentOptions],
) -> LogisticRegressionRelease:
    """Release what a logistic (or probit) regression needs, with calibrated noise, once.

    The sums are those of a linear regression on the same columns, which serves as well; this
    release says that the response is 0 or 1, and analysts get a logistic regression by default.

    Args:
        source: path or glob, database URL with ``#table``, data frame, Arrow or Ibis table.
        x: covariate columns.
        y: response column, 0 or 1 in every record; its bounds are (0, 1).
        bounds: public bounds per covariate, never read from the data; values outside are clamped.
        fill: public values for missing entries; required for columns with NULLs under replace-one.
        count_clamped: also release a noisy count of clamped records per column.
        **privacy: the privacy options, of which ``epsilon`` must be given (`PrivacyOptions`).

    Returns:
        The release, ready to be saved.

    Example:
        >>> import noisewise as nw
        >>> import pandas as pd
        >>> people = pd.DataFrame({"age": [20, 30, 50, 65, 70], "ill": [0, 0, 1, 1, 0]})
        >>> release = nw.release.logistic_regression(
        ...     people, x="age", y="ill", bounds={"age": (0, 120)}, epsilon=1.0
        ... )
        >>> release.family, release.bounds["ill"]
        ('logistic-regression', Bounds(lower=0.0, upper=1.0))
    """
    given = arguments.mapping(bounds, "bounds", "{column: (lower, upper)}")
    response = arguments.name(y, "y")
    options = PrivacyOptions.of(MomentOptions, privacy)
    limits = {response: (0, 1), **given}
    return cast(
        LogisticRegressionRelease,
        release_sums(
            "logistic-regression",
            source,
            x,
            response,
            limits,
            fill,
            count_clamped,
            options,
            _check_response,
        ),
    )


def _check_response(column: str, bounds: Bounds | PrivateBounds, fill: object) -> None:
    """Raise an ArgumentError unless the response has the bounds (0, 1), and gaps become 0 or 1."""
    if bounds != Bounds(0, 1):
        raise ArgumentError(
            f"bounds: {column!r} must be 0 or 1, so its bounds are (0, 1); leave them out"
        )
    if fill not in (None, 0, 1):
        raise ArgumentError(f"fill: {column!r} is 0 or 1, so gaps must become 0 or 1, not {fill!r}")


def release_sums(
    family: str,
    source: Any,
    x: object,
    y: str,
    bounds: Limits,
    fill: object,
    count_clamped: bool,
    options: PrivacyOptions,
    check: Callable[[str, Bounds | PrivateBounds, object], None],
) -> Any:
    """Release the Gram matrix of covariates and response for one of the models of this folder.

    ``check`` raises an ArgumentError where bounds or fill of the response do not fit the model.
    """
    covariates = arguments.names(x, "x")
    if y in covariates:
        raise ArgumentError(f"y: {y!r} is among x; the response must be another column")
    columns = (*covariates, y)
    limits = arguments.all_bounds(columns, bounds, ())
    fills = arguments.column_fill(fill, limits, {})
    check(y, limits[y], fills.get(y))
    groups = arguments.groups(options.groups)
    agreed = privacy_terms(options, None if groups is None else groups.column)

    def specify(settled: Mapping[str, Bounds]) -> tuple[Statistic, ...]:
        sums: tuple[Statistic, ...] = (Gram(columns, agreed.count),)
        return (*sums, Clamped(columns)) if count_clamped else sums

    request = ReleaseRequest(
        family=family,
        model={"x": covariates, "y": y},
        kinds=tuple(s.kind for s in specify({})),
        specify=specify,
        terms=agreed,
        options=options,
        bounds=limits,
        groups=groups,
        fill=fills,
        dated=arguments.dated_columns(bounds),
        least_records=len(columns) + 1,
    )
    return publish(source, request)


WORDS = (
    Word("x", "columns", "covariate; repeat for several", required=True),
    Word("y", "column", "response", required=True),
    Word(
        "bounds",
        "bounds",
        "public bounds, for every covariate; private:LOWER,UPPER lets part of the budget find them "
        "within limits that may be far too wide",
        required=True,
    ),
    Word("fill", "fill", "public value for missing entries; repeat", planned=False),
    Word("count_clamped", "flag", "also release how many records lie outside the bounds"),
)
"""What the command line asks for, for both models."""

OWNER = Owner(
    release=logistic_regression,
    summary="Release the sums behind a logistic regression of a column that is 0 or 1, once.",
    words=WORDS,
    privacy=command_line_options(MomentOptions),
)
"""The owner's part of the model, for the command line."""

"""Poisson regression: the sums behind a regression of counts, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack, cast

from noisewise.artifact import ArgumentError, Bounds
from noisewise.models.base import Owner
from noisewise.models.generalized_linear import PoissonRegressionRelease
from noisewise.models.generalized_linear.release import WORDS, Limits, release_sums
from noisewise.privacy import arguments
from noisewise.privacy.arguments import PrivateBounds
from noisewise.privacy.options import (
    MomentOptions,
    PrivacyOptions,
    command_line_options,
    with_options,
)


@with_options(MomentOptions)
def poisson_regression(
    source: Any,
    *,
    x: str | Iterable[str],
    y: str,
    bounds: Limits,
    fill: Mapping[str, float] | None = None,
    count_clamped: bool = False,
    **privacy: Unpack[MomentOptions],
) -> PoissonRegressionRelease:
    """Release what a Poisson regression of counts needs, with calibrated noise, once.

    The sums are those of a linear regression on the same columns, which serves as well; this
    release says that the response is a count, and analysts get a Poisson regression by default.

    Args:
        source: path or glob, database URL with ``#table``, data frame, Arrow or Ibis table.
        x: covariate columns.
        y: response column, a count in every record.
        bounds: public bounds per column, never read from the data, those of the response from 0 to
            a number that hardly any count exceeds: counts beyond are moved to it, and rates then
            come out too small.
        fill: public values for missing entries; required for columns with NULLs under replace-one.
        count_clamped: also release a noisy count of clamped records per column.
        **privacy: the privacy options, of which ``epsilon`` must be given (`PrivacyOptions`).

    Returns:
        The release, ready to be saved.

    Example:
        >>> import noisewise as nw
        >>> import pandas as pd
        >>> people = pd.DataFrame({"age": [20, 30, 50, 65, 70], "visits": [0, 2, 1, 4, 3]})
        >>> release = nw.release.poisson_regression(
        ...     people, x="age", y="visits", bounds={"age": (0, 120), "visits": (0, 20)},
        ...     epsilon=1.0,
        ... )
        >>> release.family
        'poisson-regression'
    """
    given = arguments.mapping(bounds, "bounds", "{column: (lower, upper)}")
    response = arguments.name(y, "y")
    options = PrivacyOptions.of(MomentOptions, privacy)
    return cast(
        PoissonRegressionRelease,
        release_sums(
            "poisson-regression",
            source,
            x,
            response,
            given,
            fill,
            count_clamped,
            options,
            _check_response,
        ),
    )


def _check_response(column: str, bounds: Bounds | PrivateBounds, fill: object) -> None:
    """Raise an ArgumentError unless the response begins at 0, and gaps become whole numbers."""
    if isinstance(bounds, PrivateBounds) or bounds.lower != 0 or bounds.upper < 1:
        raise ArgumentError(
            f"bounds: those of the counts {column!r} must begin at 0 and end at 1 or above, such "
            f"as {{{column!r}: (0, 20)}}"
        )
    if isinstance(fill, float) and not fill.is_integer():
        raise ArgumentError(f"fill: {column!r} counts, so gaps must become a whole number")


OWNER = Owner(
    release=poisson_regression,
    summary="Release the sums behind a Poisson regression of counts, once.",
    words=WORDS,
    privacy=command_line_options(MomentOptions),
)
"""The owner's part of the model, for the command line."""

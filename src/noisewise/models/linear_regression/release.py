"""Linear regression: the Gram matrix of the columns, once, for every regression among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack, cast

from noisewise.artifact import (
    ArgumentError,
    Bounds,
    Clamped,
    Gram,
    Monomials,
    Statistic,
)
from noisewise.models.base import Owner, Word, with_censored_bounds
from noisewise.models.linear_regression import LEAST_RECORDS, LinearRegressionRelease
from noisewise.privacy import arguments
from noisewise.privacy.arguments import PrivateBounds
from noisewise.privacy.budget import terms
from noisewise.privacy.options import (
    MomentOptions,
    PrivacyOptions,
    command_line_options,
    with_options,
)
from noisewise.privacy.pipeline import Order, publish


@with_options(MomentOptions)
def linear_regression(
    source: Any,
    *,
    x: str | Iterable[str],
    y: str,
    bounds: Mapping[str, tuple[float, float] | Bounds | PrivateBounds] | None = None,
    fill: Mapping[str, float] | None = None,
    monomials: bool = False,
    count_clamped: bool = False,
    **privacy: Unpack[MomentOptions],
) -> LinearRegressionRelease:
    """Release everything a Bayesian linear regression needs, with calibrated noise, once.

    Args:
        source: path or glob, database URL with ``#table``, data frame, Arrow or Ibis table.
        x: covariate columns.
        y: response column. (Any released column may play either part when the file is read.)
        bounds: public bounds per column, ``{"age": (0, 120)}``, never read from the data; or a
            ``PrivateBounds`` to let part of the budget choose them. Values outside are clamped; a
            `nw.Censored` says that there are such values, a plain pair that there are none.
        fill: public values for missing numbers; required for columns with NULLs under replace-one.
        monomials: also release all monomials of ``x`` up to degree four (for ``gibbs-noisy``).
        count_clamped: also release a noisy count of clamped records per column.
        **privacy: the privacy options, of which ``epsilon`` must be given (`PrivacyOptions`).

    Returns:
        The release, ready to be saved.

    Example:
        >>> import noisewise as nw
        >>> import pandas as pd
        >>> people = pd.DataFrame({"age": [20, 35, 50, 65], "spend": [90, 140, 180, 260]})
        >>> release = nw.release.linear_regression(
        ...     people, x="age", y="spend", bounds={"age": (0, 120), "spend": (0, 500)}, epsilon=1.0
        ... )
        >>> release.block("gram").statistic.names
        ('age*age', 'age*spend', 'age', 'spend*spend', 'spend')
    """
    options = PrivacyOptions.of(MomentOptions, privacy)
    covariates = arguments.names(x, "x")
    response = arguments.name(y, "y")
    if response in covariates:
        raise ArgumentError(f"y: {response!r} is among x; the response must be another column")
    columns = (*covariates, response)
    limits = arguments.all_bounds(columns, bounds)
    groups = arguments.groups(options.groups)
    agreed = terms(options, None if groups is None else groups.column)

    def specify(settled: Mapping[str, Bounds]) -> tuple[Statistic, ...]:
        statistics: list[Statistic] = [Gram(columns, agreed.count)]
        if monomials:
            statistics.append(Monomials(covariates))
        if count_clamped:
            statistics.append(Clamped(columns))
        return tuple(statistics)

    order = Order(
        family="linear-regression",
        model={"x": covariates, "y": response},
        kinds=tuple(s.kind for s in specify({})),
        specify=specify,
        terms=agreed,
        options=options,
        bounds=limits,
        groups=groups,
        fill=arguments.numeric_fill(fill, limits),
        least_records=max(LEAST_RECORDS, len(columns)),
    )
    return cast(LinearRegressionRelease, publish(source, order))


OWNER = Owner(
    release=linear_regression,
    summary="Release the Gram matrix: every linear regression among the columns, once.",
    words=(
        Word("x", "columns", "covariate; repeat for several", required=True),
        Word("y", "column", "response", required=True),
        Word(
            "bounds",
            "bounds",
            "public bounds, for every column; private:LOWER,UPPER lets part of the budget choose "
            "them within that range",
        ),
        Word(
            "censored",
            "censored",
            "public bounds that cut values off; SIDES is both (the default), lower or upper",
        ),
        Word("fill", "fill", "public value for missing entries; repeat", planned=False),
        Word("monomials", "flag", "also release all monomials of x up to degree four"),
        Word("count_clamped", "flag", "also release how many records lie outside the bounds"),
    ),
    privacy=command_line_options(MomentOptions),
    prepare=with_censored_bounds,
)
"""The owner's part of the model, for the command line."""

"""Linear regression: the sums behind every regression among the columns, once.

Without factors and products of columns that is the Gram matrix; else the sums of products within
the cells of factors that a formula needs (``required_sums``).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack, cast

from noisewise.artifact import (
    ArgumentError,
    Bounds,
    Clamped,
    Gram,
    Groups,
    LeftOut,
    Level,
    Monomials,
    ReleaseError,
    Statistic,
    validation,
)
from noisewise.artifact.statistics import CellSums
from noisewise.artifact.uncentred_products import uncentred_products
from noisewise.artifact.user_warnings import warn_user
from noisewise.formula import Formula, parse
from noisewise.models.base import Owner, Word, with_censored_bounds
from noisewise.models.linear_regression import LEAST_RECORDS, LinearRegressionRelease
from noisewise.models.linear_regression.required_sums import least_records, required_sums
from noisewise.privacy import arguments
from noisewise.privacy.arguments import PrivateBounds
from noisewise.privacy.budget import PrivacyTerms, privacy_terms
from noisewise.privacy.options import (
    MomentOptions,
    PrivacyOptions,
    command_line_options,
    with_options,
)
from noisewise.privacy.pipeline import Blank, ReleaseRequest, publish

Number = float | datetime.date
"""A number, or a date, which counts as the days since 1970-01-01."""

MANY_SUMS = 2000
"""Sums within cells above which the owner has to say that so many are meant (chosen)."""


@with_options(MomentOptions)
def linear_regression(
    source: Any,
    *,
    x: str | Iterable[str] | None = None,
    y: str | None = None,
    formula: str | None = None,
    bounds: Mapping[str, tuple[Number, Number] | Bounds | PrivateBounds] | None = None,
    levels: Mapping[str, Iterable[Any]] | None = None,
    fill: Mapping[str, Number | str] | None = None,
    other: Mapping[str, Any] | None = None,
    many_sums: bool = False,
    monomials: bool = False,
    count_clamped: bool = False,
    count_left_out: bool = False,
    **privacy: Unpack[MomentOptions],
) -> LinearRegressionRelease:
    """Release everything a Bayesian linear regression needs, with calibrated noise, once.

    Name the columns, as ``x`` and ``y``, or write a formula: ``"wages ~ age * C(sex)"``. Its terms
    are columns, products (``age:educ``), powers (``I(age**2)``), factors (``C(sex)``, or ``sex``
    where that has levels) and interactions with them. An analyst may leave terms out, take another
    reference level, or another response where its sums were released.

    Args:
        source: path or glob, database URL with ``#table``, data frame, Arrow or Ibis table.
        x: covariate columns.
        y: response column. (Any released column may play either part when the file is read.)
        formula: of the regression, in place of ``x`` and ``y``.
        bounds: public bounds per numeric column, ``{"age": (0, 120)}``, never read from the data;
            or a ``PrivateBounds`` to let part of the budget choose them. Values outside are
            clamped; a `nw.Censored` says that there are such values, a plain pair that there are
            none. Dates count as days since 1970-01-01.
        levels: the public list of levels of every factor, ``{"sex": ["female", "male"]}``; the
            first is the reference. A record costs the same whatever their number.
        fill: public values for missing entries, a number or a level (which may be one of its own,
            such as ``"unknown"``); required for columns with NULLs under replace-one. Under
            add-remove neighbours records with gaps are left out, unless their columns have one.
        other: ``{"sex": "unknown"}``: the level of the public list that counts what is not on it.
        many_sums: allow a formula that needs more than 2,000 sums, as one with thousands of levels
            does: each sum has noise of its own.
        monomials: also release all monomials of ``x`` up to degree four (for ``gibbs-noisy``).
        count_clamped: also release a noisy count of clamped records per column.
        count_left_out: also release a noisy count of records that were left out, because of gaps
            and under add-remove neighbours.
        **privacy: the privacy options, of which ``epsilon`` must be given (`PrivacyOptions`).

    Returns:
        The release, ready to be saved.

    Example:
        >>> import noisewise as nw
        >>> import pandas as pd
        >>> people = pd.DataFrame({"age": [20, 30, 50, 65, 70], "spend": [90, 140, 180, 260, 190]})
        >>> limits = {"age": (0, 120), "spend": (0, 500)}
        >>> release = nw.release.linear_regression(
        ...     people, x="age", y="spend", bounds=limits, epsilon=1.0
        ... )
        >>> release.block("gram").statistic.names
        ('age*age', 'age*spend', 'age', 'spend*spend', 'spend')

        With a factor, sums are released within its levels:

        >>> people["member"] = ["no", "yes", "no", "yes", "no"]
        >>> release = nw.release.linear_regression(
        ...     people,
        ...     formula="spend ~ age + C(member)",
        ...     bounds=limits,
        ...     levels={"member": ["no", "yes"]},
        ...     epsilon=1.0,
        ... )
        >>> release.block("cell-sums").statistic.names[-2:]
        ('n[member=no]', 'n[member=yes]')
    """
    options = PrivacyOptions.of(MomentOptions, privacy)
    if formula is None:
        columns = columns_from_names(x, y, levels)
    else:
        _refuse_beside_formula(x, y, monomials)
        columns = columns_from_formula(formula, levels)
        _refuse_without_bounds(columns.numeric, bounds)
    limits = arguments.all_bounds(columns.numeric, bounds, tuple(columns.levels))
    groups = arguments.groups(options.groups)
    agreed = privacy_terms(options, None if groups is None else groups.column)
    if count_left_out:
        _refuse_left_out(agreed, groups)
    sums = columns.sums(agreed.count)
    if not many_sums:
        _refuse_many_sums(sums)
    statistics = [sums]
    if monomials:
        statistics.append(Monomials(columns.numeric[:-1]))
    if count_clamped:
        statistics.append(Clamped(columns.numeric))
    if count_left_out:
        statistics.append(LeftOut((*columns.numeric, *columns.levels)))
    request = ReleaseRequest(
        family="linear-regression",
        model=columns.model_entries,
        kinds=tuple(s.kind for s in statistics),
        specify=lambda _: tuple(statistics),  # whatever bounds a private search finds
        terms=agreed,
        options=options,
        bounds=limits,
        coded=tuple(columns.levels),
        groups=groups,
        fill=arguments.column_fill(fill, limits, columns.levels),
        takes_other=bool(columns.levels),
        dated=arguments.dated_columns(bounds or {}),
        other=arguments.other_levels(other, columns.levels),
        least_records=max(LEAST_RECORDS, columns.numeric_terms + 1, _least(sums)),
    )
    if not isinstance(source, Blank):
        _warn_of_formula(columns, limits)
    return cast(LinearRegressionRelease, publish(source, request))


@dataclass(frozen=True)
class RegressionColumns:
    """The columns of a regression: numeric ones, the response last, and factors with levels."""

    numeric: tuple[str, ...]
    formula: Formula | None = None
    levels: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)

    @property
    def numeric_terms(self) -> int:
        """The number of numeric terms, products among them: so many records at least are needed."""
        return len(self.numeric) - 1 if self.formula is None else len(self.formula.numeric)

    @property
    def _is_plain(self) -> bool:
        """Whether there is neither a factor nor a product of columns."""
        products = () if self.formula is None else self.formula.numeric
        return not self.levels and all(len(product) == 1 for product in products)

    @property
    def model_entries(self) -> dict[str, Any]:
        """What the release file says of the model, by key."""
        *x, y = self.numeric
        formula = {} if self.formula is None else {"formula": self.formula.text}
        return {"x": tuple(x), "y": y, **formula} if self._is_plain else {**formula, "y": y}

    def sums(self, count: bool) -> Statistic:
        """Return what is summed, where n is secret with ``count``.

        An ArgumentError where a file could not hold it.
        """
        if self.formula is None or self._is_plain:
            return Gram(self.numeric, count)
        try:
            return required_sums(self.formula, self.levels, count)
        except ReleaseError as error:
            why = str(error).removeprefix(f"{CellSums.kind}: ")
            why = why.replace("components, more than", "sums, more than a file may hold,")
            raise ArgumentError(
                f"levels: {why}; join levels, or leave out interactions of factors"
            ) from None


def _least(statistic: Statistic) -> int:
    """Return the records that the terms of a statistic within cells need."""
    return least_records(statistic) if isinstance(statistic, CellSums) else 0


def columns_from_names(x: object, y: object, levels: object) -> RegressionColumns:
    """Return the columns named as ``x`` and ``y``; all of them are numeric."""
    if x is None or y is None:
        raise ArgumentError(
            f"{'x' if x is None else 'y'}: name the covariates (x=) and the response (y=), or give "
            "a formula, such as formula='wages ~ age'"
        )
    if levels:
        raise ArgumentError("levels: go with a formula, such as formula='wages ~ age + C(sex)'")
    covariates = arguments.names(x, "x")
    response = arguments.name(y, "y")
    if response in covariates:
        raise ArgumentError(f"y: {response!r} is among x; the response must be another column")
    return RegressionColumns((*covariates, response))


def _refuse_beside_formula(x: object, y: object, monomials: bool) -> None:
    if x is not None or y is not None:
        given = "x" if x is not None else "y"
        raise ArgumentError(f"{given}: the formula names all columns; give one of the two")
    if monomials:
        raise ArgumentError("monomials: are those of x; name x and y in place of a formula")


def _refuse_without_bounds(numeric: tuple[str, ...], bounds: object) -> None:
    """Raise an ArgumentError for a column of a formula that has neither bounds nor levels.

    Where bounds are left over, ``all_bounds`` asks whether that is the same column, misspelt.
    """
    if not isinstance(bounds, Mapping) or not bounds or not set(bounds) <= set(numeric):
        return
    for column in numeric:
        if column not in bounds:
            raise ArgumentError(
                f"bounds: none for column {column!r}; bounds and levels are public knowledge: give "
                f"bounds={{{column!r}: (0, 1)}} if it is a number, with its smallest and largest "
                f"value, or levels={{{column!r}: ['a', 'b']}} if it is a factor"
            )


def columns_from_formula(text: object, levels: object) -> RegressionColumns:
    """Return the columns that a formula names; those with levels are factors."""
    lists = arguments.mapping(levels, "levels", "{column: [public list]}")
    formula = parse(text, [arguments.name(c, "levels") for c in lists])
    # Of a list that the formula does not use nothing is said but that.
    listed = {
        c: arguments.levels(v, f"levels[{c!r}]") if c in formula.columns else ()
        for c, v in lists.items()
    }
    idle = next((c for c in listed if c not in formula.columns), None)
    for factor in formula.factors:
        if factor not in listed and idle is not None:
            raise ArgumentError(
                f"levels: none for the factor {factor!r}, and {idle!r} has levels but is not in "
                "the formula: is one of them misspelt?"
            )
        if factor not in listed:
            raise ArgumentError(
                f"levels: none for the factor {factor!r}; levels are public knowledge: give them, "
                f"for example levels={{{factor!r}: ['a', 'b']}}"
            )
        if len(listed[factor]) < 2:
            raise ArgumentError(
                f"levels[{factor!r}]: a factor has two or more levels; one says nothing"
            )
    for column in listed:
        _refuse_idle_levels(column, formula)
    formula.check_references(listed)
    numeric = tuple(dict.fromkeys(c for product in formula.numeric for c in product))
    return RegressionColumns((*numeric, formula.response), formula, listed)


def _refuse_idle_levels(column: str, formula: Formula) -> None:
    """Raise an ArgumentError where a column has levels and is no factor of the formula."""
    if column == formula.response:
        raise ArgumentError(
            f"levels: {column!r} is the response, which must be a number and not a factor"
        )
    for term in formula.terms:
        if column in term.numeric:
            raise ArgumentError(
                f"levels: {column!r} is a number in {term.text}; only a factor, C({column}), has "
                "levels"
            )
    if column not in formula.factors:
        near = validation.nearest(column, formula.columns)
        raise ArgumentError(f"levels: {column!r} is not in the formula{near}")


def _refuse_left_out(agreed: PrivacyTerms, groups: Groups | None) -> None:
    """Raise an ArgumentError where no records are left out, or one person could be many of them."""
    guarantee = agreed.guarantee
    if guarantee.neighbours != "add-remove":
        raise ArgumentError(
            "count_left_out: under replace-one neighbours no record may be left out, so there is "
            "none to count; it goes with neighbours='add-remove'"
        )
    if guarantee.unit is not None or groups is not None:
        word = "groups" if guarantee.unit is None else "unit"
        raise ArgumentError(f"count_left_out: records are counted without {word}=; leave one out")


def _refuse_many_sums(statistic: Statistic) -> None:
    """Raise an ArgumentError where a formula needs more sums than an owner is likely to want."""
    count = len(statistic.units)
    if isinstance(statistic, CellSums) and count > MANY_SUMS:
        raise ArgumentError(
            f"levels: the formula needs {count:,} sums, more than {MANY_SUMS:,}; noise does not "
            "grow with the number of levels, but every sum has its own, and the more cells there "
            "are the fewer records each holds: join levels that are rare, leave out interactions "
            "of factors, or, if so many are meant, say many_sums=True"
        )


def _warn_of_formula(
    columns: RegressionColumns, limits: Mapping[str, Bounds | PrivateBounds]
) -> None:
    """Warn of products that noise makes nearly useless."""
    if columns.formula is None:
        return
    known = {c: b for c, b in limits.items() if isinstance(b, Bounds)}
    for warning in uncentred_products(columns.formula.numeric, known):
        warn_user(warning)


OWNER = Owner(
    release=linear_regression,
    summary="Release the sums behind every linear regression among the columns, once.",
    words=(
        Word("formula", "text", "such as 'wages ~ age + C(sex)', in place of --x and --y"),
        Word("x", "columns", "covariate; repeat for several"),
        Word("y", "column", "response"),
        Word(
            "bounds",
            "bounds",
            "public bounds, for every numeric column; private:LOWER,UPPER lets part of the budget "
            "find them within limits that may be far too wide",
        ),
        Word(
            "censored",
            "censored",
            "public bounds that cut values off; SIDES is both (the default), lower or upper",
        ),
        Word("levels", "levels", "public levels, for every factor of the formula; repeat"),
        Word("fill", "fill", "public value for missing entries; repeat", planned=False),
        Word(
            "other",
            "level",
            "the level of the public list that counts what is not on it; repeat",
            planned=False,
        ),
        Word("many_sums", "flag", "allow a formula that needs more than 2,000 sums"),
        Word(
            "monomials",
            "flag",
            "also release all products of x up to degree four, which method "
            "gibbs-noisy of the analyst needs",
        ),
        Word("count_clamped", "flag", "also release how many records lie outside the bounds"),
        Word("count_left_out", "flag", "also release how many records have gaps and do not count"),
    ),
    privacy=command_line_options(MomentOptions),
    prepare=with_censored_bounds,
)
"""The owner's part of the model, for the command line."""

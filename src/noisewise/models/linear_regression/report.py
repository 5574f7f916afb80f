"""The page of a regression: its title, effects of levels, and predictions over covariates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, Level, Release
from noisewise.formula import DesignColumn
from noisewise.inference.results import Result
from noisewise.models.linear_regression.posterior import RegressionPosterior
from noisewise.models.linear_regression.reference_levels import reference_of
from noisewise.report import drawings, html
from noisewise.report.pages import INFER_FIRST
from noisewise.report.pages import posterior_page as page_of_posterior

if TYPE_CHECKING:
    from noisewise.simulate.calibration_check import Check

POINTS = 25
"""Points at which a prediction's band is computed (chosen)."""
MAX_NAMED = 4
"""Covariates that a title names (chosen)."""
MAX_LEVELS_DRAWN = 120
"""Rows of one drawing of levels (chosen)."""

Row = tuple[str, float, float, float]
"""A name, and the lower end, mean and upper end of an interval."""


def page(result: Result | Release, check: Check | None = None) -> str:
    """Return the page of a regression's posterior."""
    if not isinstance(result, RegressionPosterior):
        raise ArgumentError(INFER_FIRST.format(family="linear-regression"))
    named = result.covariates
    given = ", ".join(named) if len(named) <= MAX_NAMED else f"{len(named)} covariates"
    by_level = {c.name for c in result.design_columns if c.levels}
    return page_of_posterior(
        result, f"{result.y} given {given}", _prediction(result), check,
        hills=[name for name in result.draws if name not in by_level], effects=_effects(result),
    )  # fmt: skip


def _effects(post: RegressionPosterior) -> str:
    """Return a drawing for every term with factors: one row per level, the reference at zero."""
    if post.keys is not None or not post.levels:
        return ""
    terms: dict[str, list[DesignColumn]] = {}
    for column in post.design:
        if column.levels:
            terms.setdefault(column.term, []).append(column)
    figures = []
    for term, columns in terms.items():
        rows = _level_rows(post, columns)
        described = f"95 % intervals of {term}: " + ", ".join(
            f"{name} {html.number(low)} to {html.number(high)}" for name, low, _, high in rows
        )
        figures.append(html.figure(drawings.intervals(described, rows), term))
    how_to_read = html.paragraphs(
        "Effects of levels, with 95 % intervals, against the reference level at zero. A level's "
        "slope is its difference from the reference level's."
    )
    return how_to_read + html.grid(figures)


def _level_rows(post: RegressionPosterior, columns: list[DesignColumn]) -> list[Row]:
    """Return the interval of every column of a term, and zero for its reference level."""
    rows = [(_levels_in_words(post, c), *_interval(post.draws[c.name])) for c in columns]
    factors = {f for c in columns for f, _ in c.levels}
    if len(factors) == 1:
        (factor,) = factors
        coded = {code for c in columns for _, code in c.levels}
        for code, level in enumerate(post.levels[factor]):
            if code not in coded:
                rows.insert(code, (f"{level} (reference)", 0.0, 0.0, 0.0))
    return rows[:MAX_LEVELS_DRAWN]


def _levels_in_words(post: RegressionPosterior, column: DesignColumn) -> str:
    return ", ".join(str(post.levels[f][code]) for f, code in column.levels)


def _interval(draws: np.ndarray) -> tuple[float, float, float]:
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(draws.mean()), float(high)


def _prediction(post: RegressionPosterior) -> str:
    """Return bands over each covariate's public range and points at levels, others held."""
    if post.keys is not None:
        return html.paragraphs("Ask for a group's prediction with noisewise predict.")
    limits = post.releases[0].bounds if post.releases else {}
    numeric = [c for c in post.covariates if c not in post.levels]
    if not set(numeric) <= set(limits):
        return ""
    held: dict[str, float | Level] = {c: limits[c].centre for c in numeric}
    for factor, levels in post.levels.items():
        held[factor] = levels[reference_of(post.design, post.levels, factor) or 0]
    figures = [html.figure(_band(post, c, limits[c], held), f"{post.y} over {c}") for c in numeric]
    figures += [
        html.figure(_points(post, f, held), f"{post.y} by {f}: the mean of records")
        for f in post.levels
    ]
    others = ""
    if len(held) > 1:
        others = " The other covariates are held at the middle of their bounds"
        others += ", factors at their reference level." if post.levels else "."
    heading = html.paragraphs(f"Over the public range of each covariate.{others}")
    keys = html.legend(("band", "the line itself: 90 %"), ("soft", "a new record: 90 % of them"))
    return heading + keys + html.grid(figures)


def _band(
    post: RegressionPosterior, column: str, bounds: Bounds, held: Mapping[str, float | Level]
) -> str:
    """Return the drawing of predictions over the public range of a numeric covariate."""
    at = np.linspace(bounds.lower, bounds.upper, POINTS)
    predicted = [post.predict({**held, column: float(v)}) for v in at]
    line = np.array([p.mean_interval(0.9) for p in predicted])
    record = np.array([p.interval(0.9) for p in predicted])
    mean = np.array([float(p.mean) for p in predicted])
    return drawings.band(column, post.y, at, mean, line, record)


def _points(post: RegressionPosterior, factor: str, held: Mapping[str, float | Level]) -> str:
    """Return the drawing of predicted means at every level of a factor."""
    rows: list[Row] = []
    for level in post.levels[factor][:MAX_LEVELS_DRAWN]:
        predicted = post.predict({**held, factor: level})
        low, high = predicted.mean_interval(0.9)
        rows.append((str(level), float(low), float(predicted.mean), float(high)))
    described = f"Predicted mean of {post.y} by {factor}: " + ", ".join(
        f"{name} {html.number(mean)}" for name, _, mean, _ in rows
    )
    return drawings.intervals(described, rows, zero=False)

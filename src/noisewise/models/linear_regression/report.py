"""The page of a regression: its title, effects of levels, and predictions over covariates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, Level, Release
from noisewise.artifact.readable_numbers import readable
from noisewise.formula import INTERCEPT, DesignColumn
from noisewise.inference.results import Result
from noisewise.models.linear_regression.posterior import RegressionPosterior
from noisewise.models.linear_regression.reference_levels import reference_of
from noisewise.report import drawings, html, sentences
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
"""A name, and the lower end, median and upper end of an interval."""


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
        findings=findings(result),
    )  # fmt: skip


def findings(result: Result | Release) -> list[str]:
    """Return what goes with higher or lower values of the response, and what cannot be told."""
    if not isinstance(result, RegressionPosterior):
        raise ArgumentError(INFER_FIRST.format(family="linear-regression"))
    post = result
    told = list(_by_group(post)) if post.keys is not None else list(_of_terms(post))
    if not told:
        told = [f"The release tells of the mean of `{post.y}` only: see the result below."]
    return [*sentences.opening(post), *sentences.limited(told)]


def _of_terms(post: RegressionPosterior) -> Iterator[str]:
    """Yield a sentence about every covariate, or about every level of a factor."""
    without = post.without_noise() if post.without_noise is not None else {}
    intervals = sentences.Intervals(post.method == "naive")
    held = ", the other columns being equal" if len(post.covariates) > 1 else ""
    for covariate in post.covariates:
        columns = [c for c in post.design_columns if covariate in _columns_of(c)]
        if any(_columns_of(c) != (covariate,) for c in columns):
            yield from _in_products(post, covariate, intervals)
        elif covariate in post.levels:
            yield from _of_levels(post, covariate, columns, without, intervals, held)
        else:
            yield _of_slope(post, covariate, columns[0], without, intervals, held)


def _columns_of(column: DesignColumn) -> tuple[str, ...]:
    """Return the table's columns that a column of the design is made of, powers repeated."""
    return (*column.numeric, *(factor for factor, _ in column.levels))


def _limits(post: RegressionPosterior, column: str) -> Bounds | None:
    return post.releases[0].bounds.get(column) if post.releases else None


def _of_slope(
    post: RegressionPosterior,
    covariate: str,
    column: DesignColumn,
    without: Mapping[str, Any],
    intervals: sentences.Intervals,
    held: str,
) -> str:
    limits = _limits(post, covariate)
    size, more = sentences.step(limits), sentences.more_of(covariate, limits)
    at = sentences.estimate(post.draws[column.name], without.get(column.name), size)
    if not at.sign and column.name in (post.details.get("hidden") or ()):
        return (
            f"The privacy noise hides how much `{covariate}` varies: the release does not say "
            f"whether more of it goes with higher or lower `{post.y}`."
        )
    return sentences.comparison(more, post.y, at, intervals, held)


def _of_levels(
    post: RegressionPosterior,
    factor: str,
    columns: list[DesignColumn],
    without: Mapping[str, Any],
    intervals: sentences.Intervals,
    held: str,
) -> Iterator[str]:
    """Yield a sentence about each level against the reference, or about the clearest of many."""
    code = reference_of(post.design, post.levels, factor)
    if code is None:
        return
    reference = post.levels[factor][code]
    found = {
        column.name: sentences.estimate(post.draws[column.name], without.get(column.name))
        for column in columns
    }
    shown = columns
    if len(columns) > sentences.MOST_LEVELS:
        clear = [c for c in columns if found[c.name].sign]
        shown = sorted(clear, key=lambda c: -abs(found[c.name].median))[
            : sentences.MOST_LEVELS // 2
        ]
        up = sum(found[c.name].sign > 0 for c in columns)
        down = sum(found[c.name].sign < 0 for c in columns)
        yield (
            f"Of the {len(columns)} other levels of `{factor}`, {up} go with higher and {down} "
            f"with lower `{post.y}` than {reference}{held}; of {len(columns) - up - down} the "
            "release does not say."
        )
    for column in shown:
        level = post.levels[factor][column.levels[0][1]]
        yield _against(
            f"`{factor}` {level} against {reference}", post.y, found[column.name], intervals, held
        )


def _against(
    what: str, y: str, at: sentences.Estimate, intervals: sentences.Intervals, held: str
) -> str:
    """Return the sentence about a level against the reference."""
    if at.sign:
        middle, interval = intervals(at.size)
        return f"{what}: {middle} {'higher' if at.sign > 0 else 'lower'} `{y}`{held} {interval}."
    _, interval = intervals(at)
    return f"{what}: the release does not say which has the higher `{y}`{held} {interval}."


def _in_products(
    post: RegressionPosterior, covariate: str, intervals: sentences.Intervals
) -> Iterator[str]:
    """Yield sentences about a covariate in powers or products, from predictions at two records."""
    held = _held(post)
    if held is None:
        return
    beside = [f for f in post.levels if f != covariate and any(
        {covariate, f} <= set(_columns_of(c)) for c in post.design_columns
    )]  # fmt: skip
    settings = [{beside[0]: level} for level in post.levels[beside[0]][: sentences.MOST_LEVELS]] \
        if beside else [{}]  # fmt: skip
    for setting in settings:
        record = {**held, **setting}
        where = "".join(f"`{f}` being {level}" for f, level in setting.items())
        others = [c for c in held if c != covariate and c not in setting]
        at = ", ".join(f"`{c}` {_value(held[c])}" for c in others)
        equal = "".join(f", {part}" for part in (where, f"with {at}" if at else "") if part)
        if covariate in post.levels:
            yield from _level_pairs(post, covariate, record, intervals, equal)
            continue
        limits = _limits(post, covariate)
        assert limits is not None  # noqa: S101  # `_held` found all of them
        low, high = (limits.centre + side * limits.half_width / 2 for side in (-1, 1))
        change = _difference(post, {**record, covariate: low}, {**record, covariate: high})
        more = f"`{covariate}` {readable(high)} rather than {readable(low)}"
        yield sentences.comparison(more, post.y, sentences.estimate(change), intervals, equal)


def _level_pairs(
    post: RegressionPosterior,
    factor: str,
    record: Mapping[str, float | Level],
    intervals: sentences.Intervals,
    equal: str,
) -> Iterator[str]:
    reference = record[factor]
    for level in post.levels[factor][: sentences.MOST_LEVELS]:
        if level != reference:
            change = _difference(post, record, {**record, factor: level})
            yield _against(
                f"`{factor}` {level} against {reference}", post.y, sentences.estimate(change),
                intervals, equal,
            )  # fmt: skip


def _difference(
    post: RegressionPosterior,
    first: Mapping[str, float | Level],
    second: Mapping[str, float | Level],
) -> np.ndarray:
    """Return draws of how much the mean of the second record is above that of the first."""
    return np.asarray(post.predict(second).expected - post.predict(first).expected)


def _value(value: float | Level) -> str:
    return readable(value) if isinstance(value, float) else str(value)


def _by_group(post: RegressionPosterior) -> Iterator[str]:
    """Yield sentences about every slope, group by group, and about the mean of them all."""
    names = [c.column for r in post.releases if (c := r.groups) is not None]
    column = names[0] if names else "group"
    for part in post.design_columns:
        if part.name == INTERCEPT:
            continue
        alone = part.numeric if len(part.numeric) == 1 and not part.levels else ()
        limits = _limits(post, alone[0]) if alone else None
        size = sentences.step(limits) if alone else 1.0
        whole = f"One more unit of `{part.name}`"
        more = sentences.more_of(alone[0], limits) if alone else whole
        found = [
            (str(key), sentences.estimate(drawn, None, size))
            for key, drawn in zip(post.keys or (), post.draws[part.name], strict=True)
        ]
        yield from sentences.by_group(more, post.y, found, column, post.method == "naive")


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
    low, middle, high = np.quantile(draws, [0.025, 0.5, 0.975])
    return float(low), float(middle), float(high)


def _prediction(post: RegressionPosterior) -> str:
    """Return bands over each covariate's public range and points at levels, others held."""
    if post.keys is not None:
        return html.paragraphs("Ask for a group's prediction with noisewise predict.")
    held = _held(post)
    if held is None:
        return ""
    limits = post.releases[0].bounds if post.releases else {}
    numeric = [c for c in post.covariates if c not in post.levels]
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


def _held(post: RegressionPosterior) -> dict[str, float | Level] | None:
    """Return the middle of every column's bounds and the reference levels; None without bounds."""
    limits = post.releases[0].bounds if post.releases else {}
    numeric = [c for c in post.covariates if c not in post.levels]
    if not set(numeric) <= set(limits):
        return None
    held: dict[str, float | Level] = {c: limits[c].centre for c in numeric}
    for factor, levels in post.levels.items():
        held[factor] = levels[reference_of(post.design, post.levels, factor) or 0]
    return held


def _band(
    post: RegressionPosterior, column: str, bounds: Bounds, held: Mapping[str, float | Level]
) -> str:
    """Return the drawing of predictions over the public range of a numeric covariate."""
    at = np.linspace(bounds.lower, bounds.upper, POINTS)
    predicted = [post.predict({**held, column: float(v)}) for v in at]
    line = np.array([p.mean_interval(0.9) for p in predicted])
    record = np.array([p.interval(0.9) for p in predicted])
    middle = np.array([float(p.median) for p in predicted])
    return drawings.band(column, post.y, at, middle, line, record)


def _points(post: RegressionPosterior, factor: str, held: Mapping[str, float | Level]) -> str:
    """Return the drawing of predicted means at every level of a factor."""
    rows: list[Row] = []
    for level in post.levels[factor][:MAX_LEVELS_DRAWN]:
        predicted = post.predict({**held, factor: level})
        low, high = predicted.mean_interval(0.9)
        rows.append((str(level), float(low), float(predicted.median), float(high)))
    described = f"Predicted mean of {post.y} by {factor}: " + ", ".join(
        f"{name} {html.number(middle)}" for name, _, middle, _ in rows
    )
    return drawings.intervals(described, rows, zero=False)

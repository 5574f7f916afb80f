"""The page of a generalized linear model: effects, and predictions over covariates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, Level, Release
from noisewise.formula import DesignColumn
from noisewise.inference.results import Result
from noisewise.models.generalized_linear.posterior import GeneralizedPosterior
from noisewise.models.linear_regression.reference_levels import reference_of
from noisewise.report import drawings, html, sentences
from noisewise.report.pages import INFER_FIRST, posterior_page

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.simulate.calibration_check import Check

POINTS = 25
"""Points at which a prediction's band is computed (chosen)."""


def page(result: Result | Release, check: Check | None = None) -> str:
    """Return the page of a posterior."""
    if not isinstance(result, GeneralizedPosterior):
        family = result.family if isinstance(result, Release) else "logistic-regression"
        raise ArgumentError(INFER_FIRST.format(family=family))
    title = f"{result.y} given {', '.join(result.covariates)}: {result.link} regression"
    return posterior_page(
        result, title, _prediction(result), check, effects=_effects(result),
        findings=findings(result),
    )  # fmt: skip


def findings(result: Result | Release) -> list[str]:
    """Return what multiplies the odds or the rate, and what cannot be told."""
    if not isinstance(result, GeneralizedPosterior):
        family = result.family if isinstance(result, Release) else "logistic-regression"
        raise ArgumentError(INFER_FIRST.format(family=family))
    told = _in_groups(result) if result.keys is not None else _of_covariates(result)
    return [*sentences.opening(result), *sentences.limited(told)]


def _steps(post: GeneralizedPosterior) -> dict[str, tuple[float, str]]:
    """Return by covariate how much more of it to speak of, as a number and in words."""
    limits = post.releases[0].bounds if post.releases else {}
    columns = {c.name: c for c in post.design}
    steps = {}
    for name, indicator in zip(post.x, post.moments.indicators, strict=True):
        if name in columns and columns[name].levels:
            steps[name] = 1.0, _against_reference(post, columns[name])
        elif indicator:
            steps[name] = 1.0, f"`{name}` 1 against 0"
        else:
            bounds = limits.get(name)
            steps[name] = sentences.step(bounds), sentences.more_of(name, bounds)
    return steps


def _against_reference(post: GeneralizedPosterior, column: DesignColumn) -> str:
    """Return the level of a column, and the one that it is compared with, in words."""
    ((factor, code),) = column.levels
    level, reference = post.levels[factor][code], reference_of(post.design, post.levels, factor)
    against = "the reference" if reference is None else post.levels[factor][reference]
    return f"`{factor}` {level} against {against}"


def _event(post: GeneralizedPosterior) -> str:
    """Return what the response's mean is of."""
    return f"`{post.y}`" if post.link == "poisson" else f"`{post.y}` = 1"


def _of_covariates(post: GeneralizedPosterior) -> Iterator[str]:
    """Yield a sentence about every covariate."""
    without = post.without_noise() if post.without_noise is not None else {}
    intervals = sentences.Intervals(post.method == "naive")
    held = ", the other columns being equal" if len(post.x) > 1 else ""
    for name, (size, more) in _steps(post).items():
        at = sentences.estimate(post.draws[name], without.get(name), size)
        on_average = post.mean_slope[0] * post.draws[name] * size
        if not at.sign:
            _, interval = intervals(_as_ratio(at) if post.law.ratio else at)
            what = f"{more[0].lower()}{more[1:]}"
            numbers = f" {interval}" if name not in (post.details.get("hidden") or ()) else ""
            unit = f": times {interval[1:-1]}" if numbers and post.law.ratio else ""
            yield (
                f"The release does not say whether {what} goes with a higher or lower "
                f"{post.law.mean_name} of {_event(post)}{held}{unit}."
            )
        elif post.law.ratio is None:
            yield _average(post, more, on_average, intervals, held)
        else:
            middle, interval = intervals(_as_ratio(at))
            what = "odds" if post.law.ratio == "odds_ratio" else "rate"
            yield f"{more} multiplies the {what} of {_event(post)} by {middle}{held} {interval}."
            yield _average(post, "Averaged over the records, that", on_average, None, "")


def _average(
    post: GeneralizedPosterior,
    what: str,
    draws: np.ndarray,
    intervals: sentences.Intervals | None,
    held: str,
) -> str:
    """Return the sentence about the average change of the mean."""
    if post.link == "poisson":
        at = sentences.estimate(draws)
        unit = ""
    else:
        at, unit = sentences.estimate(draws, None, 100.0), " percentage points"
    middle, interval = (intervals or sentences.Intervals(post.method == "naive"))(at.size)
    if intervals is None:
        low, high = sentences.told((at.size.lower, at.size.upper), at.upper - at.lower)
        interval = f"({low} to {high})"
    direction = "higher" if at.median > 0 else "lower"
    return (
        f"{what} goes with a {post.law.mean_name} of {_event(post)} that is {middle}{unit} "
        f"{direction}{held} {interval}."
    )


def _as_ratio(at: sentences.Estimate) -> sentences.Estimate:
    """Return what multiplies odds or rates, where its logarithm is an estimate."""
    with np.errstate(over="ignore"):
        median, lower, upper = np.exp([at.median, at.lower, at.upper]).tolist()
        without = None if at.without is None else tuple(np.exp(at.without).tolist())
    return sentences.Estimate(median, lower, upper, without)


def _in_groups(post: GeneralizedPosterior) -> Iterator[str]:
    """Yield sentences about every covariate, group by group: of changes of the mean."""
    names = [c.column for r in post.releases if (c := r.groups) is not None]
    column = names[0] if names else "group"
    for name, (size, more) in _steps(post).items():
        changes = post.mean_slope * post.draws[name] * size
        found = [
            (str(key), sentences.estimate(drawn))
            for key, drawn in zip(post.keys or (), changes, strict=True)
        ]
        what = f"{post.law.mean_name} of {post.y}"
        yield from sentences.by_group(more, what, found, column, post.method == "naive")


def _effects(post: GeneralizedPosterior) -> str:
    """Return drawings of odds or rate ratios, and of average effects, one row per covariate.

    Of columns that are not 0 or 1 per standard deviation, so that rows share one scale.
    """
    if post.keys is not None:
        return ""
    moments = post.moments
    sd = moments.half * np.sqrt(np.diagonal(moments.covariance[0]))
    per = {
        name: 1.0 if indicator else float(f"{size:.2g}")
        for name, size, indicator in zip(post.x, sd, moments.indicators, strict=True)
    }
    table = post.effects(per)
    named = [name if per[name] == 1 else f"{name} (per {per[name]:g})" for name in post.x]
    figures = []
    if post.law.ratio is not None:
        what = "odds" if post.law.ratio == "odds_ratio" else "rate"
        words = f"What more of a covariate multiplies the {what} by, with 95 % intervals"
        figures.append(_intervals(table, named, post.law.ratio, words))
    words = f"Average change of the {post.law.mean_name}, with 95 % intervals"
    figures.append(_intervals(table, named, "average_effect", words))
    return html.grid(figures)


def _intervals(table: pd.DataFrame, named: list[str], column: str, words: str) -> str:
    """Return a drawing of one effect's intervals."""
    ends = table[[f"{column}_lower", column, f"{column}_upper"]].to_numpy()
    rows = [(n, float(low), float(at), float(high))
            for n, (low, at, high) in zip(named, ends, strict=True)]  # fmt: skip
    described = f"{words}: " + ", ".join(
        f"{name} {html.number(low)} to {html.number(high)}" for name, low, _, high in rows
    )
    return html.figure(drawings.intervals(described, rows, zero=column == "average_effect"), words)


def _prediction(post: GeneralizedPosterior) -> str:
    """Return the band of the mean over each covariate's public range, others held."""
    if post.keys is not None:
        return html.paragraphs("Ask for a group's prediction with noisewise predict.")
    limits = post.releases[0].bounds if post.releases else {}
    numbers = [c for c in post.covariates if c not in post.levels]
    if not numbers or not set(numbers) <= set(limits):
        return ""
    mean = dict(zip(post.x, post.moments.centre + post.moments.half * post.moments.mean[0],
                    strict=True))  # fmt: skip
    held: dict[str, float | Level] = {f: levels[0] for f, levels in post.levels.items()}
    for c in numbers:
        low, high = limits[c].lower, limits[c].upper
        held[c] = float(np.clip(mean.get(c, 0.5 * (low + high)), low, high))
    figures = [
        html.figure(_band(post, c, limits[c], held), f"{post.law.mean_name} of {post.y} over {c}")
        for c in numbers
    ]
    others = " The other covariates are held at their means." if len(numbers) > 1 else ""
    others += " Factors are held at their first levels." if post.levels else ""
    heading = html.paragraphs(f"Over the public range of each covariate.{others}")
    keys = html.legend(("band", f"the {post.law.mean_name}: 90 %"))
    return heading + keys + html.grid(figures)


def _band(
    post: GeneralizedPosterior, column: str, bounds: Bounds, held: Mapping[str, float | Level]
) -> str:
    """Return the drawing of the mean response over the public range of a covariate."""
    at = np.linspace(bounds.lower, bounds.upper, POINTS)
    predicted = [post.predict({**held, column: float(v)}) for v in at]
    line = np.array([p.mean_interval(0.9) for p in predicted])
    middle = np.array([float(p.median) for p in predicted])
    name = f"{post.law.mean_name} of {post.y}"
    return drawings.band(column, name, at, middle, line, line)

"""The page of a generalized linear model: effects, and predictions over covariates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, Level, Release
from noisewise.inference.results import Result
from noisewise.models.generalized_linear.posterior import GeneralizedPosterior
from noisewise.report import drawings, html
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
    return posterior_page(result, title, _prediction(result), check, effects=_effects(result))


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
    mean = np.array([float(p.mean) for p in predicted])
    name = f"{post.law.mean_name} of {post.y}"
    return drawings.band(column, name, at, mean, line, line)

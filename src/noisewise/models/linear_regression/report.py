"""The page of a regression: its title, and predictions over every covariate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.inference.results import Result
from noisewise.models.linear_regression.posterior import RegressionPosterior
from noisewise.report import drawings, html
from noisewise.report.pages import INFER_FIRST
from noisewise.report.pages import posterior_page as page_of_posterior

if TYPE_CHECKING:
    from noisewise.simulate.calibration_check import Check

POINTS = 25
"""Points at which a prediction's band is computed (chosen)."""
MAX_NAMED = 4
"""Covariates that a title names (chosen)."""


def page(result: Result | Release, check: Check | None = None) -> str:
    """Return the page of a regression's posterior."""
    if not isinstance(result, RegressionPosterior):
        raise ArgumentError(INFER_FIRST.format(family="linear-regression"))
    few = len(result.x) <= MAX_NAMED
    given = ", ".join(result.x) if few else f"{len(result.x)} covariates"
    return page_of_posterior(result, f"{result.y} given {given}", _prediction(result), check)


def _prediction(post: RegressionPosterior) -> str:
    """Return bands over the public range of each covariate, the others at their middle."""
    if post.keys is not None:
        return html.paragraphs("Ask for a group's prediction with noisewise predict.")
    limits = post.releases[0].bounds if post.releases else {}
    if not set(post.x) <= set(limits):
        return ""
    middle = {c: limits[c].centre for c in post.x}
    figures = []
    for column in post.x:
        at = np.linspace(limits[column].lower, limits[column].upper, POINTS)
        predicted = [post.predict({**middle, column: float(v)}) for v in at]
        line = np.array([p.mean_interval(0.9) for p in predicted])
        record = np.array([p.interval(0.9) for p in predicted])
        mean = np.array([float(p.mean) for p in predicted])
        drawn = drawings.band(column, post.y, at, mean, line, record)
        figures.append(html.figure(drawn, f"{post.y} over {column}"))
    others = (
        "" if len(post.x) == 1 else " The other covariates are held at the middle of their bounds."
    )
    heading = html.paragraphs(f"Over the public range of each covariate.{others}")
    keys = html.legend(("band", "the line itself: 90 %"), ("soft", "a new record: 90 % of them"))
    return heading + keys + html.grid(figures)

"""The page of one column's family: its title, and a new record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.inference.results import CategoryPrediction, Result
from noisewise.models.exponential_family.posterior import FamilyPosterior
from noisewise.report import drawings, html
from noisewise.report.pages import INFER_FIRST, posterior_page

if TYPE_CHECKING:
    from noisewise.simulate.calibration_check import Check


def page(result: Result | Release, check: Check | None = None) -> str:
    """Return the page of a family's posterior."""
    if not isinstance(result, FamilyPosterior):
        raise ArgumentError(INFER_FIRST.format(family="exponential-family"))
    return posterior_page(result, result.title, _prediction(result), check)


def _prediction(post: FamilyPosterior) -> str:
    """Return where a new record will lie, or the probability of each category."""
    if post.keys is not None:
        return html.paragraphs("Ask for a group's prediction with noisewise predict.")
    predicted = post.predict()
    if isinstance(predicted, CategoryPrediction):
        levels = predicted.probabilities
        names, chance = [str(k) for k in levels], np.array([float(v) for v in levels.values()])
        said = "Probability of each category: " + ", ".join(
            f"{n} {p:.1%}" for n, p in zip(names, chance, strict=True)
        )
        heading = html.paragraphs("A new record falls into")
        return heading + html.figure(drawings.bars(said, names, chance))
    low, high = predicted.interval(0.9)
    heading = html.paragraphs(
        f"A new record of {post.y} lies between {html.number(low)} and {html.number(high)} with "
        "probability 90 %."
    )
    drawn = drawings.density(
        f"a new record of {post.y}", predicted.draws.ravel().astype(float), None
    )
    return heading + html.figure(drawn, f"a new record of {post.y}")

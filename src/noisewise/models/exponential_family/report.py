"""The page of one column's family: its title, and a new record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.inference.results import CategoryPrediction, Result
from noisewise.models.exponential_family.families import Binomial, Categorical
from noisewise.models.exponential_family.posterior import FamilyPosterior
from noisewise.report import drawings, html, sentences
from noisewise.report.pages import INFER_FIRST, posterior_page

if TYPE_CHECKING:
    from noisewise.simulate.calibration_check import Check


def page(result: Result | Release, check: Check | None = None) -> str:
    """Return the page of a family's posterior."""
    if not isinstance(result, FamilyPosterior):
        raise ArgumentError(INFER_FIRST.format(family="exponential-family"))
    return posterior_page(
        result, result.title, _prediction(result), check, findings=findings(result)
    )


def findings(result: Result | Release) -> list[str]:
    """Return shares or means, in every group where there are groups."""
    if not isinstance(result, FamilyPosterior):
        raise ArgumentError(INFER_FIRST.format(family="exponential-family"))
    told = _in_groups(result) if result.keys is not None else _of_one(result)
    return [*sentences.opening(result), *sentences.limited(told)]


def _quantities(post: FamilyPosterior) -> Iterator[tuple[str, str, np.ndarray, float]]:
    """Yield what is told: words with a place for the number, its parameter, draws, times which."""
    family, y = post.family, post.y
    if isinstance(family, Categorical):
        for level, name in zip(family.levels, family.names, strict=True):
            yield f"About {{}} of the records have `{y}` {level}", name, post.draws[name], 100.0
    elif isinstance(family, Binomial) and family.trials == 1:
        yield f"About {{}} of the records have `{y}` = 1", "p", post.draws["p"], 100.0
    else:
        mean = post.predict().expected
        same = next((n for n, d in post.draws.items() if np.array_equal(d, mean)), "")
        yield f"The mean of `{y}` is about {{}}", same, mean, 1.0


def _of_one(post: FamilyPosterior) -> Iterator[str]:
    """Yield a sentence about every quantity."""
    without = post.without_noise() if post.without_noise is not None else {}
    intervals = None
    for words, parameter, draws, times in _quantities(post):
        unit = " %" if times == 100 else ""
        intervals = intervals or sentences.Intervals(post.method == "naive", unit)
        mean, interval = intervals(sentences.estimate(draws, without.get(parameter), times))
        yield f"{words.format(mean)} {interval}."


def _in_groups(post: FamilyPosterior) -> Iterator[str]:
    """Yield a sentence about every quantity, group by group."""
    names = [c.column for r in post.releases if (c := r.groups) is not None]
    column, keys = (names[0] if names else "group"), post.keys or ()
    for words, _, draws, times in _quantities(post):
        found = [
            (str(k), sentences.estimate(d, None, times)) for k, d in zip(keys, draws, strict=True)
        ]
        unit = " %" if times == 100 else ""
        yield sentences.levels_by_group(words, found, column, unit, post.method == "naive")


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

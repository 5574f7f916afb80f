"""The page about a result: the shared page of a posterior, and one sentence of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noisewise.artifact import ArgumentError, Release
from noisewise.report import html
from noisewise.report.pages import posterior_page
from tests.toy_model.analyst import TwoMeansPosterior

if TYPE_CHECKING:
    from noisewise.inference import Result
    from noisewise.simulate import Check


def page(result: Result | Release, check: Check | None = None) -> str:
    """Return the page of a posterior of two means."""
    if not isinstance(result, TwoMeansPosterior):
        raise ArgumentError("result: infer the means first, and report on the posterior")
    if result.keys is not None:
        return posterior_page(result, result.title, "", check)
    low, high = result.predict().interval(0.9)
    one, two = result.columns
    sentence = html.paragraphs(
        f"{one} minus {two} of a new record lies between {html.number(low)} and "
        f"{html.number(high)} with probability 90 %."
    )
    return posterior_page(result, result.title, sentence, check)

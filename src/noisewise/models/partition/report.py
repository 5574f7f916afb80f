"""The page of a partition release, which is its own answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import ArgumentError, PartitionRelease, Release
from noisewise.artifact.readable_numbers import probability, probability_range
from noisewise.artifact.statistics import ProbabilitySums, QuantileSum
from noisewise.report import html
from noisewise.report.pages import promise, release_content

if TYPE_CHECKING:
    from noisewise.inference.results import Result
    from noisewise.simulate import Check

GIVEN = "; they do not cover a private search that missed"
"""Ends the sentence about the interval of a quantile."""


def findings(release: Result | Release) -> list[str]:
    """Return the answer in a sentence for every question."""
    if not isinstance(release, PartitionRelease):
        raise ArgumentError("result: is no answer by partitions")
    found = release.answer()
    what = f"`{found.statistic.coefficient}`"
    ends = found.band(0.9)
    hold = "; where it would be without the noise in it, with probability 90 %"
    if isinstance(found.statistic, QuantileSum):
        (low, high), at = ends[0], found.statistic.p
        searched = ", and see the cautions below" if found.cautions else GIVEN
        return [
            f"With probability {probability(at)} the coefficient of {what} is at most "
            f"{html.number(found.quantile)} ({html.number(low)} to {html.number(high)}"
            f"{hold}{searched})."
        ]
    assert isinstance(found.statistic, ProbabilitySums)  # noqa: S101  # the other kind
    values = np.atleast_1d(found.probability)
    return [
        f"The probability that the coefficient of {what} is at most {html.number(float(b))} is "
        f"{probability(float(v))} ({probability_range(*map(float, pair))}{hold})."
        for b, v, pair in zip(found.statistic.at, values, ends, strict=True)
    ]


def page(release: Result | Release, check: Check | None = None) -> str:
    """Return guarantee, answer, and where it would lie without the noise."""
    if not isinstance(release, PartitionRelease):
        raise ArgumentError("result: is no answer by partitions")
    quantile = release.family == "posterior-quantile"
    found = release.answer()
    values = np.atleast_1d(found.quantile if quantile else found.probability)
    ends = found.band(0.9)
    rows = [
        (str(i + 1), *((float(x) if quantile else probability(float(x))) for x in (v, a, b)))
        for i, (v, (a, b)) in enumerate(zip(values, ends, strict=True))
    ]
    said = {k: ", ".join(v) if isinstance(v, tuple) else v for k, v in release.model.items()}
    asked = html.table("What was asked", ("word", "value"), [(k, str(v)) for k, v in said.items()])
    name = "quantile" if quantile else "probability"
    answer = html.table(
        "The answer; lower and upper hold what it would be without the noise in the value, with "
        "probability 90 %" + (GIVEN if quantile else ""),
        ("answer", name, "lower", "upper"),
        rows,
    )
    careful = "".join(html.text("li", c, "warn") for c in found.cautions)
    lead = html.findings(findings(release)) + html.paragraphs(
        "Answered by random partitions of the table: the release is the answer."
    )
    sections = (
        html.section(
            "result", "The answer", answer, f"<ul>{careful}</ul>" if careful else "", asked
        ),
        html.section(
            "promise", "What was promised",
            promise([release], [release.statement()]),
        ),
        html.section("released", "What was released", release_content(release)),
    )  # fmt: skip
    return html.page(f"A posterior {name} of one coefficient", lead, sections)

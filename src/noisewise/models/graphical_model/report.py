"""The page of a fitted graphical model: what it is of, and the share of every level."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.models.graphical_model.fitted_model import GraphicalModel
from noisewise.models.graphical_model.grouped_results import GraphicalGroups
from noisewise.models.graphical_model.posterior import GraphicalPosterior
from noisewise.models.graphical_model.structure import marginalise
from noisewise.report import drawings, html, sentences
from noisewise.report.pages import INFER_FIRST

if TYPE_CHECKING:
    from noisewise.inference.results import Result
    from noisewise.simulate import Check


NO_INTERVALS = (
    "This is one fitted model without intervals: how far its shares are off is not known, so do "
    "not quote them as findings. Method bayes gives intervals."
)
"""What is found by a fit."""
MOST_PAIRS = 3
"""Pairs of columns that have a sentence (chosen)."""


def page(result: Result | Release, check: Check | None = None) -> str:
    """Return the page of a fitted model, or of draws of one."""
    if isinstance(result, GraphicalPosterior):
        return page_of_draws(result)
    if isinstance(result, GraphicalGroups):
        raise ArgumentError(
            "result: is of several groups, and a page is of one: give one group's result, such as "
            f"result[{result.group_keys[0]!r}]"
        )
    if not isinstance(result, GraphicalModel):
        raise ArgumentError(INFER_FIRST.format(family="graphical-model"))
    return page_of_model(result)


def findings(result: Result | Release) -> list[str]:
    """Return the most frequent levels and the strongest associations, with intervals."""
    if not isinstance(result, GraphicalPosterior):
        if isinstance(result, GraphicalModel):
            return [NO_INTERVALS]
        if isinstance(result, GraphicalGroups):
            return []
        raise ArgumentError(INFER_FIRST.format(family="graphical-model"))
    told = [*_associations(result), *_frequent(result)]
    if not result.converged:
        warned = "The computation has not converged: do not quote the numbers of this page."
        return [warned, *sentences.limited(told)]
    return sentences.limited(told)


def _pairs(post: GraphicalPosterior) -> list[tuple[str, str]]:
    """Return pairs of columns within a clique, the most strongly associated first."""
    pairs = set[tuple[str, str]]()
    for clique in post.cliques:
        for pair in combinations(clique, 2):
            first, second = sorted(pair, key=post.columns.index)
            pairs.add((first, second))
    return sorted(pairs, key=lambda pair: (-_information(post.marginal_array(pair)), pair))


def _information(joint: np.ndarray) -> float:
    """Return the mutual information of two columns in nats, from their joint shares."""
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    inside = joint > 0
    return float((joint[inside] * np.log(joint[inside] / product[inside])).sum())


def _associations(post: GraphicalPosterior) -> Iterator[str]:
    """Yield a sentence about each of the strongest pairs: two shares, and their difference."""
    intervals = sentences.Intervals(unit=" percentage points")
    for first, second in _pairs(post)[:MOST_PAIRS]:
        drawn = marginalise(post.draws, (first, second), leading=2)
        assert drawn is not None  # noqa: S101  # pairs are of one clique
        whole = drawn.sum(axis=-1, keepdims=True)
        shares = np.divide(drawn, whole, out=np.zeros_like(drawn), where=whole > 0)
        mean = shares.mean(axis=(0, 1))
        # The level of the second column whose share differs most between two of the first's.
        level = int(np.argmax(np.ptp(mean, axis=0)))
        most, least = int(np.argmax(mean[:, level])), int(np.argmin(mean[:, level]))
        if most == least:
            continue
        change = sentences.estimate(shares[..., most, level] - shares[..., least, level], None, 100)
        one, two = post.levels[first], post.levels[second][level]
        points, interval = intervals(change)
        if change.sign > 0:
            high, low = (f"{100 * mean[i, level]:.0f} %" for i in (most, least))
            yield (
                f"Of records with `{first}` {one[most]}, about {high} have `{second}` {two}; of "
                f"those with `{first}` {one[least]}, about {low}: {points} more {interval}."
            )
        else:
            yield (
                f"The release does not say whether `{second}` {two} is more frequent among "
                f"`{first}` {one[most]} or {one[least]} {interval}."
            )


def _frequent(post: GraphicalPosterior) -> Iterator[str]:
    """Yield a sentence about every column's most frequent level."""
    intervals = sentences.Intervals(unit=" %")
    for column in post.columns:
        drawn = marginalise(post.draws, (column,), leading=2)
        assert drawn is not None  # noqa: S101  # every column is in a clique
        level = int(np.argmax(drawn.mean(axis=(0, 1))))
        share, interval = intervals(sentences.estimate(drawn[..., level], None, 100))
        yield f"About {share} of records have `{column}` {post.levels[column][level]} {interval}."


def page_of_model(model: GraphicalModel) -> str:
    """Return the page of a fit: marginals of the single columns."""
    shares = html.section("marginals", "Shares of the levels", html.grid(_figures(model)))
    said = "A fit is one model; method 'bayes' gives intervals as well."
    return _page(model, said, shares)


def page_of_draws(posterior: GraphicalPosterior) -> str:
    """Return the same page with intervals, for draws of a graphical model."""
    model = posterior.model
    rows = []
    for column in model.columns:
        low, high = posterior.interval_array(column)
        for level, share, *ends in zip(
            model.levels[column], posterior.marginal_array(column), low, high, strict=True
        ):
            rows.append((column, str(level), *(f"{x:.2%}" for x in (share, *ends))))
    heads = ("column", "level", "mean", "lower", "upper")
    shares = html.section(
        "marginals", "Shares of the levels", html.grid(_figures(posterior)),
        html.table("Posterior means, with intervals of 95 %", heads, rows),
    )  # fmt: skip
    said = "Intervals account for privacy noise and sampling noise together."
    return _page(posterior, said, shares)


def _figures(result: GraphicalModel | GraphicalPosterior) -> list[str]:
    """Draw the shares of every column's levels."""
    figures = []
    for column in result.columns:
        names, shares = [str(v) for v in result.levels[column]], result.marginal_array(column)
        said = f"Shares of {column}: " + ", ".join(
            f"{n} {s:.1%}" for n, s in zip(names, shares, strict=True)
        )
        figures.append(html.figure(drawings.bars(said, names, shares), column))
    return figures


def _page(
    result: GraphicalModel | GraphicalPosterior, said: str, shares: tuple[str, str, str]
) -> str:
    """Return the page: how the result was made, whether to trust it, and its shares."""
    model = result.point
    cliques = [(", ".join(c), len(c)) for c in model.cliques]
    lead = html.findings(findings(result)) + html.paragraphs(
        f"Fitted by method {model.method!r} to noisy contingency tables of about {model.n:,.0f} "
        f"records (people, where each weighs one). {said}"
    )
    verdict = html.section(
        "result", "The result",
        html.verdict(result.converged, result.status.split(":")[0].capitalize(), result.status),
        html.table("Tables that were released", ("columns", "number"), cliques),
    )  # fmt: skip
    title = f"A graphical model of {len(model.columns)} columns"
    return html.page(title, lead, (verdict, shares))

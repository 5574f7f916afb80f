"""The page of a fitted graphical model: what it is of, and the share of every level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noisewise.artifact import ArgumentError, Release
from noisewise.models.graphical_model.fitted_model import GraphicalModel
from noisewise.models.graphical_model.grouped_results import GraphicalGroups
from noisewise.models.graphical_model.posterior import GraphicalPosterior
from noisewise.report import drawings, html
from noisewise.report.pages import INFER_FIRST

if TYPE_CHECKING:
    from noisewise.inference.results import Result
    from noisewise.simulate import Check


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
    lead = html.paragraphs(
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

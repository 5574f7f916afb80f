"""The page of a fitted graphical model: what it is of, and the share of every level."""

from __future__ import annotations

from typing import Any

from noisewise.report import html, pictures


def page(model: Any) -> str:
    """Marginals of the single columns; the model answers for sets of them from Python."""
    figures = []
    for column in model.columns:
        names, shares = [str(v) for v in model.levels[column]], model.marginal(column)
        said = f"Shares of {column}: " + ", ".join(
            f"{n} {s:.1%}" for n, s in zip(names, shares, strict=True)
        )
        figures.append(html.figure(pictures.bars(said, names, shares), column))
    cliques = [(", ".join(c), len(c)) for c in model.cliques]
    lead = html.paragraphs(
        f"Fitted by method {model.method!r} to noisy contingency tables of about {model.n:,.0f} "
        "records. A fit is one model; method 'bayes' gives intervals as well."
    )
    sections = (
        html.section(
            "result", "The result",
            html.verdict(model.converged, model.status.split(":")[0].capitalize(), model.status),
            html.table("Tables that were released", ("columns", "number"), cliques),
        ),
        html.section("marginals", "Shares of the levels", html.grid(figures)),
    )  # fmt: skip
    return html.page(f"A graphical model of {len(model.columns)} columns", lead, sections)

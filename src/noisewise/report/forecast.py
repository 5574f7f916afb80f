"""What ``noisewise plan`` found, as a page."""

from __future__ import annotations

from typing import Any

from noisewise.report import html, pictures


def page(plan: Any) -> str:
    """Widths and coverage by epsilon, warnings, and what was assumed."""
    said = plan.settings
    lead = html.paragraphs(
        f"{said['trials']} releases of {said['n']:,} records were simulated for every epsilon. No "
        "data were touched and no budget was spent."
    )
    boxes = html.verdict(plan.wish.epsilon is not None, plan.wish.words) if plan.wish else ""
    names = tuple(plan.without)
    figures = [
        html.figure(
            pictures.widths(
                name,
                plan.epsilons,
                {m: [plan.row(e, m, name).width for e in plan.epsilons] for m in plan.methods},
                plan.without[name],
            ),
            f"{name}: width of 95 % intervals over epsilon",
        )
        for name in names
    ]
    rows = [
        (f"{r.epsilon:g}", r.method, r.parameter, r.width, f"{r.coverage:.0%}",
         r.width / plan.without[r.parameter])
        for r in plan.rows
    ]  # fmt: skip
    head = ("epsilon", "method", "parameter", "mean width", "coverage", "times without privacy")
    keys = html.legend(*((f"chain{i % 4}", m) for i, m in enumerate(plan.methods)))
    told = html.paragraphs(
        "Dashed: the width without privacy, which only more records would lower. Both axes are "
        "logarithmic."
    )
    listed = "".join(html.text("li", w, "warn") for w in plan.warnings)
    guess = [(k, float(v)) for k, v in plan.guess.items()]
    settings = [(k, str(v)) for k, v in said.items()]
    sections = (
        html.section(
            "widths", "What analysts will get", boxes, keys, html.grid(figures), told,
            html.table("Coverage: how often intervals meant to hold the guess in 95 % of the "
                       "trials did", head, rows),
        ),
        html.section("warnings", "Warnings", f"<ul>{listed}</ul>" if listed else ""),
        html.section(
            "assumed", "What was assumed",
            html.paragraphs("If the data are otherwise, so are the widths."),
            html.table("Guess", ("word", "value"), guess),
            html.table("Settings", ("word", "value"), settings),
        ),
    )  # fmt: skip
    return html.page(f"Plan: {said['what']}", lead, sections)

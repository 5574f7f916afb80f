"""Pages of what was simulated: which methods are calibrated (``check``), what a plan will give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noisewise.report import drawings, html

if TYPE_CHECKING:
    from noisewise.simulate import Check, Plan


def calibration(check: Check | None) -> str:
    """Return verdict, table and drawings; where nothing was checked, how to do it."""
    if check is None:
        return html.paragraphs(
            "Not checked. Run noisewise check on the release, and give its file to --check."
        )
    settings = check.settings
    introduction = html.paragraphs(
        f"{settings['trials']} releases like this one were simulated ({settings['n']:,} records, "
        f"epsilon {settings['epsilon']:g}, the same bounds, noise and prior), with parameters "
        "drawn from the prior. A method can be trusted here if the truth is found where the method "
        "says it is."
    )
    verdict = html.verdict(check.recommended is not None, check.advice)
    rows = [
        (
            m.method, "calibrated" if m.passed else "flagged", name, m.coverage[i], m.p_values[i],
            m.width[i],
        )
        for m in check.methods
        for i, name in enumerate(m.parameters)
    ]  # fmt: skip
    head = ("method", "verdict", "parameter", "coverage", "p-value of ranks", "mean width")
    table = html.table("Intervals meant to hold the truth in 95 % of the trials", head, rows)
    figures = [
        html.figure(drawings.ranks(m.method, m.parameters, m.ranks), f"{m.method}: {m.verdict}")
        for m in check.methods
    ]
    how_to_read = html.paragraphs(
        "Each line is a parameter: how many more or fewer truths than expected lie below each "
        "quantile of their posteriors. Lines that stay in the shaded band are calibrated."
    )
    return introduction + verdict + table + how_to_read + html.grid(figures)


def check_page(check: Check) -> str:
    """Return the page of a calibration check alone."""
    lead = html.paragraphs(
        "Simulation-based calibration with a release's own settings. The release's numbers were "
        "not looked at; no budget was spent."
    )
    rows = [(k, str(v)) for k, v in check.settings.items()]
    sections = (
        html.section("verdict", "Which method can be trusted here?", calibration(check)),
        html.section(
            "settings", "What was simulated", html.table("Settings", ("word", "value"), rows)
        ),
    )
    return html.page(f"Calibration check: {check.settings['what']}", lead, sections)


def plan_page(plan: Plan) -> str:
    """Return the page of a plan: widths and coverage by epsilon, warnings, what was assumed."""
    settings = plan.settings
    lead = html.paragraphs(
        f"{settings['trials']} releases of {settings['n']:,} records were simulated for every "
        "epsilon. No data were touched and no budget was spent."
    )
    boxes = html.verdict(plan.wish.epsilon is not None, plan.wish.words) if plan.wish else ""
    names = tuple(plan.without)
    figures = [
        html.figure(
            drawings.widths(
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
    how_to_read = html.paragraphs(
        "Dashed: the width without privacy, which only more records would lower. Both axes are "
        "logarithmic."
    )
    listed = "".join(html.text("li", w, "warn") for w in plan.warnings)
    guess = [(k, float(v)) for k, v in plan.guess.items()]
    words = [(k, str(v)) for k, v in settings.items()]
    sections = (
        html.section(
            "widths", "What analysts will get", boxes, keys, html.grid(figures), how_to_read,
            html.table("Coverage: how often intervals meant to hold the guess in 95 % of the "
                       "trials did", head, rows),
        ),
        html.section("warnings", "Warnings", f"<ul>{listed}</ul>" if listed else ""),
        html.section(
            "assumed", "What was assumed",
            html.paragraphs("If the data are otherwise, so are the widths."),
            html.table("Guess", ("word", "value"), guess),
            html.table("Settings", ("word", "value"), words),
        ),
    )  # fmt: skip
    return html.page(f"Plan: {settings['what']}", lead, sections)

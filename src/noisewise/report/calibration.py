"""What ``noisewise check`` found, on a page of its own or as part of a posterior's."""

from __future__ import annotations

from typing import Any

from noisewise.report import html, pictures


def calibration(check: Any) -> str:
    """Verdict, table and pictures; where nothing was checked, how to do it."""
    if check is None:
        return html.paragraphs(
            "Not checked. Run noisewise check on the release, and give its file to --check."
        )
    said = check.settings
    told = html.paragraphs(
        f"{said['trials']} releases like this one were simulated ({said['n']:,} records, epsilon "
        f"{said['epsilon']:g}, the same bounds, noise and prior), with parameters drawn from the "
        "prior. A method can be trusted here if the truth is found where the method says it is."
    )
    made = html.verdict(check.recommended is not None, check.advice)
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
        html.figure(pictures.ranks(m.method, m.parameters, m.ranks), f"{m.method}: {m.verdict}")
        for m in check.methods
    ]
    how = html.paragraphs(
        "Each line is a parameter: how many more or fewer truths than expected lie below each "
        "quantile of their posteriors. Lines that stay in the shaded band are calibrated."
    )
    return told + made + table + how + html.grid(figures)


def page(check: Any) -> str:
    """The check alone."""
    said = check.settings
    lead = html.paragraphs(
        "Simulation-based calibration with a release's own settings. The release's numbers were "
        "not looked at; no budget was spent."
    )
    rows = [(k, str(v)) for k, v in said.items()]
    sections = (
        html.section("verdict", "Which method can be trusted here?", calibration(check)),
        html.section(
            "settings", "What was simulated", html.table("Settings", ("word", "value"), rows)
        ),
    )
    return html.page(f"Calibration check: {said['what']}", lead, sections)

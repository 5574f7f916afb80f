"""The page of a posterior, section by section."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from noisewise.report import drawings, html, release_section
from noisewise.report.simulation_pages import calibration

if TYPE_CHECKING:
    from noisewise.inference.posterior import Posterior
    from noisewise.simulate.check_result import Check

PRIOR_DRAWS = 20_000
"""Draws behind the prior's curve (chosen)."""
MAX_TRACES = 3
"""Parameters whose chains are drawn: those with the highest R-hat (chosen)."""
MAX_GROUPS_DRAWN = 120
"""Groups in one drawing; of more, evenly spaced ones (chosen: a line each on a phone)."""
MAX_ROWS = 2000
"""Rows of the table of results (chosen)."""


def page(post: Posterior, title: str, prediction: str, check: Check | None = None) -> str:
    """Return the page of a posterior.

    ``title`` and the section ``prediction`` are the model's own.
    """
    lead = html.paragraphs(
        f"A posterior by method {post.method!r}, worked out from "
        + ("a public file" if len(post.guarantees) < 2 else f"{len(post.guarantees)} public files")
        + " alone. It accounts for too little data and for the privacy noise together."
        if post.method != "naive"
        else "A posterior by method 'naive', which takes the noisy numbers for exact ones."
    )
    sections = (
        html.section("result", "The result", _result(post)),
        html.section(
            "promise", "What was promised", release_section.promise(post.releases, post.guarantees)
        ),
        html.section("released", "What was released", *map(release_section.content, post.releases)),
        html.section("posterior", "Posterior and prior", _posterior(post)),
        html.section("privacy", "What privacy cost", _cost(post)),
        html.section("prediction", "Prediction", prediction),
        html.section("convergence", "Can the computation be trusted?", _convergence(post)),
        html.section("calibration", "Is the method calibrated here?", calibration(check)),
    )  # fmt: skip
    return html.page(title, lead, sections)


def _result(post: Posterior) -> str:
    verdicts = html.verdict(post.converged, post.status.split(":")[0].capitalize(), post.status)
    if post.method == "naive":
        verdicts += html.verdict(
            False, "Do not rely on these intervals", "The method ignores the privacy noise."
        )
    rows = post.summary().reset_index()
    leading = [c for c in ("group", "parameter") if c in rows]
    numbers = ("mean", "sd", "lower", "upper")
    listed = [
        (*(str(row[c]) for c in leading), *(float(row[c]) for c in numbers))
        for _, row in rows.head(MAX_ROWS).iterrows()
    ]
    if len(rows) > len(listed):
        verdicts += html.paragraphs(f"The first {len(listed)} of {len(rows)} rows are shown.")
    caption = "Posterior in the units of the data; lower and upper end a 95 % interval"
    return verdicts + html.table(caption, (*leading, *numbers), listed)


def _posterior(post: Posterior) -> str:
    if post.keys is not None:
        return _groups(post, post.keys)
    before = post.prior_draws(PRIOR_DRAWS) if post.prior_draws is not None else {}
    figures = [
        html.figure(drawings.density(name, values.ravel(), before.get(name)), name)
        for name, values in post.draws.items()
    ]
    keys = [("posterior", "posterior")]
    if before:
        keys.append(("prior", "prior: what was believed before the release"))
    how_to_read = html.paragraphs(
        "The line under a hill marks its 95 % interval. Where posterior and prior look alike, the "
        "release said little, and the answer is mostly the prior's."
        if before
        else "The line under a hill marks its 95 % interval."
    )
    prior = html.folded("The prior in numbers", html.text("pre", post.prior)) if post.prior else ""
    return how_to_read + html.legend(*keys) + html.grid(figures) + prior


def _groups(post: Posterior, keys: tuple[str | int, ...]) -> str:
    chosen = np.unique(np.linspace(0, len(keys) - 1, MAX_GROUPS_DRAWN).round().astype(int))
    figures = []
    for name, values in post.draws.items():
        flat = values[chosen].reshape(len(chosen), -1)
        low, high = np.quantile(flat, [0.025, 0.975], axis=1)
        drawn = drawings.caterpillar(name, low, flat.mean(axis=1), high)
        figures.append(html.figure(drawn, name))
    some = f"{len(chosen)} of the {len(keys)} groups are drawn. " if len(chosen) < len(keys) else ""
    how_to_read = html.paragraphs(f"{some}95 % intervals of every group, from the lowest mean up.")
    return how_to_read + html.grid(figures)


def _cost(post: Posterior) -> str:
    if post.without_noise is None or post.keys is not None:
        return html.paragraphs(
            "How wide the intervals would be without privacy noise is worked out for one group, "
            "and for methods that model the noise."
        )
    alone = post.without_noise()
    sd = {name: float(values.std(ddof=1)) for name, values in post.draws.items()}
    # Monte Carlo error can make the part larger than the whole by a hair.
    share = np.array([np.clip(1 - (float(alone[n]) / sd[n]) ** 2, 0, 1) for n in sd])
    rows = [(n, sd[n], float(alone[n]), f"{s:.0%}") for n, s in zip(sd, share, strict=True)]
    head = ("parameter", "sd", "sd without privacy", "variance due to privacy")
    description = "Share of the variance that is due to privacy: " + ", ".join(
        f"{n} {s:.0%}" for n, s in zip(sd, share, strict=True)
    )
    explanation = html.paragraphs(
        "Had the sums been published as they are, the posterior could be expected to have the "
        "smaller standard deviation. The rest of the variance is the price of privacy; the "
        "remaining part only more records would lower."
    )
    figure = html.figure(drawings.bars(description, tuple(sd), share))
    return explanation + figure + html.table("Standard deviations", head, rows)


def _convergence(post: Posterior) -> str:
    rhat = {n: float(np.max(v)) for n, v in post.rhat.items()}
    ess = {n: float(np.min(v)) for n, v in post.ess.items()}
    head = ("parameter", "R-hat", "effective draws")
    worst = "" if post.keys is None else " (the worst group's)"
    table = html.table(
        f"R-hat should be below 1.01, effective draws at least 400{worst}",
        head,
        [(n, f"{rhat[n]:.4f}", f"{ess[n]:.0f}") for n in rhat],
    )
    if post.keys is not None:
        return table
    chosen = sorted(rhat, key=lambda n: -rhat[n])[:MAX_TRACES]
    figures = [html.figure(drawings.trace(n, post.draws[n]), f"draws of {n}") for n in chosen]
    how_to_read = html.paragraphs(
        "Chains that started far apart should cover the same ground; these are the parameters "
        "with the highest R-hat."
    )
    return table + how_to_read + html.grid(figures)

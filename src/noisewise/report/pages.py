"""Pages about a posterior, a calibration check and a plan, and the sections they are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import Bounds, Censored, Release
from noisewise.artifact.guarantee import noise_sd
from noisewise.artifact.readable_numbers import probability
from noisewise.inference.summary_table import DECIDED_BY_TAILS, WHY_UNTOLD, beyond_interval
from noisewise.plots import PRIOR_DRAWS
from noisewise.report import drawings, html

if TYPE_CHECKING:
    from noisewise.inference.results import Posterior
    from noisewise.simulate import Check, Plan

INFER_FIRST = (
    "posterior: this is a {family} release; run noisewise infer on it first, and report on the "
    "posterior"
)
"""The error where a page is asked of a release that needs inference first."""

LARGE_EPSILON = 5
"""Above it the page says that little is promised: an observer could be 99 % sure (chosen)."""

LEAST_NOISE_SD = 1e-300
"""Floor of a noise sd that a size is divided by (chosen: only keeps 0/0 out)."""


def promise(releases: Sequence[Release], guarantees: Sequence[str]) -> str:
    """Return the guarantee in words, and what it means for one person."""
    sentences = [html.paragraphs(g) for g in guarantees]
    if not sentences:
        return html.paragraphs("The file does not say what was promised to the people in the data.")
    pure = [r.guarantee for r in releases if r.guarantee.rho is None]
    kinds = {(g.neighbours, g.unit) for g in pure}
    # Promises about unlike changes do not add up.
    if len(pure) == len(releases) and len(kinds) == 1:
        epsilon = sum(g.epsilon for g in pure)
        if len(releases) > 1:
            sentences.append(
                html.paragraphs(
                    f"Together the {len(releases)} releases keep {epsilon:g}-differential privacy."
                )
            )
        sentences.append(html.paragraphs(_meaning(epsilon, *kinds.pop())))
    sentences.append(
        html.paragraphs(
            "This page, like every result worked out from the release, tells no more about any "
            "person than the release does."
        )
    )
    return "".join(sentences)


def _meaning(epsilon: float, neighbours: str, unit: str | None) -> str:
    """Return what an epsilon means, as odds, for someone who has never seen one."""
    if epsilon > LARGE_EPSILON:
        return (
            "An epsilon this large promises little to any one person: an observer may become "
            "practically sure of what a record holds."
        )
    sure = 1 / (1 + math.exp(-epsilon))
    whose = "a person's record" if unit is None else "all records of a person"
    held = f"two versions of {whose} for equally likely"
    learnt = f"can be at most {sure:.0%} sure of one of them after"
    if neighbours == "add-remove":
        held = f"it for equally likely that the table holds {whose} or does not"
        learnt = f"can be at most {sure:.0%} sure of either after"
    return f"In other words: someone who held {held} before, and knows everybody else's, {learnt}."


def release_content(release: Release) -> str:
    """Return what a release holds: how many records, which bounds, which sums."""
    return "".join(
        (
            html.paragraphs(_records(release), _selected(release), _group_words(release)),
            _bounds(release),
            _sums(release),
            html.paragraphs(f"Made by {release.software}, {release.created or 'undated'}."),
        )
    )


def _records(release: Release) -> str:
    population = release.population
    if population.policy == "public":
        return f"Records: {sum(population.sizes):,}, publicly known."
    if all(block.statistic.over_partitions for block in release.blocks):
        return "How many records there are is secret."
    known = "" if population.total is None else f" ({population.total:,} in all is public)"
    return f"How many records there are is secret, and was itself released with noise{known}."


def _selected(release: Release) -> str:
    return "" if release.where is None else f"Selected: records with {release.where}."


def _group_words(release: Release) -> str:
    if release.groups is None:
        return ""
    return (
        f"Groups: {len(release.groups.keys):,}, of the public list of "
        f"{release.groups.column!r}. Sizes below are medians over the groups."
    )


def _bounds(release: Release) -> str:
    if not release.bounds:
        return ""
    chosen = {s.column for s in release.selections}
    rows = [
        (column, b.lower, b.upper, _cut_sides(b), _chooser(column in chosen))
        for column, b in release.bounds.items()
    ]
    dropped = any(getattr(b.statistic, "outside", "") == "drop" for b in release.blocks)
    fate = "were left out of the sums" if dropped else "were moved to the nearer bound"
    searches = [html.text("p", f"{words}.") for words in release.searches_in_words()]
    return "".join(searches) + html.table(
        f"Bounds, which are public; values outside {fate}",
        ("column", "lower", "upper", "cut values off", "chosen"),
        rows,
    )


def _cut_sides(bounds: Bounds) -> str:
    return bounds.sides if isinstance(bounds, Censored) else "not said to"


def _chooser(privately: bool) -> str:
    return "by a private search" if privately else "by the owner"


def _sums(release: Release) -> str:
    in_cells = any(block.statistic.kind == "cell-sums" for block in release.blocks)
    frame = release.table(units="box" if in_cells else "user")
    if in_cells:
        noise = release.blocks[0].noise
        frame["noise_sd"] = frame["noise_scale"] * (noise_sd(noise) / noise.scale)
    frame = frame.assign(size=frame["value"].abs())
    by = frame.groupby("statistic", sort=False)
    grouped = release.groups is not None
    rows = [
        (
            str(name),
            float(part["size"].median() if grouped else part["value"].iloc[0]),
            float(part["noise_sd"].iloc[0]),
            float(part["size"].median() / max(part["noise_sd"].iloc[0], LEAST_NOISE_SD)),
        )
        for name, part in by
    ]
    shown = "median size" if grouped else "value"
    head = ("statistic", shown, "noise sd", "size/noise")
    what = (
        "of columns mapped to [-1, 1] by their bounds" if in_cells else "in the units of the data"
    )
    table = html.table(f"Published sums, {what}", head, rows)
    loud = sum(row[3] < 1 for row in rows)
    if loud:
        table += html.paragraphs(
            f"{loud} of {len(rows)} published numbers are smaller than their noise. Taken at face "
            "value they would mislead; the posterior below knows how loud the noise was."
        )
    return table


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
        "drawn from the prior. A method can be trusted with data that follow its model if the "
        "truth is found where the method says it is; whether this table does was not looked at."
    )
    cautions = "".join(html.verdict(False, "To know first", f"{c}.") for c in check.cautions)
    verdict = cautions + html.verdict(check.recommended is not None, check.advice)
    rows = [
        (
            m.method, "calibrated" if m.passed else "flagged", name, m.coverage[i],
            probability(m.p_values[i]), m.times_as_wide(i),
        )
        for m in check.methods
        for i, name in enumerate(m.parameters)
    ]  # fmt: skip
    head = ("method", "verdict", "parameter", "coverage", "p-value of ranks", "width / exact's")
    table = html.table("Intervals meant to hold the truth in 95 % of the trials", head, rows)
    figures = [
        html.figure(drawings.ranks(m.method, m.parameters, m.ranks), f"{m.method}: {m.verdict}")
        for m in check.methods
    ]
    how_to_read = html.paragraphs(
        "Each line is a parameter: how many more or fewer truths than expected lie below each "
        "quantile of their posteriors. Lines that stay in the shaded band are calibrated."
    )
    table += html.paragraphs(check.widths)
    return introduction + verdict + table + how_to_read + html.grid(figures)


def check_page(check: Check) -> str:
    """Return the page of a calibration check alone."""
    lead = html.paragraphs(
        "Simulation-based calibration with a release's own settings. The release's numbers were "
        "not looked at, but for a count of clamped records; no budget was spent."
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
    boxes = "".join(html.verdict(w.epsilon is not None, w.words) for w in plan.targets)
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
        (f"{r.epsilon:g}", r.method, r.parameter, r.width,
         f"{r.coverage:.0%}" if plan.tells_coverage else "too few trials to tell",
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
            html.paragraphs("If the data are otherwise, so are the widths.", *plan.assumptions),
            html.table("Guess", ("word", "value"), guess),
            html.table("Settings", ("word", "value"), words),
        ),
    )  # fmt: skip
    return html.page(f"Plan: {settings['what']}", lead, sections)


MAX_TRACES = 3
"""Parameters whose chains are drawn: those with the highest R-hat (chosen)."""
MAX_GROUPS_DRAWN = 120
"""Groups in one drawing; of more, evenly spaced ones (chosen: a line each on a phone)."""
MAX_GROUPS_NAMED = 40
"""Groups up to which a drawing names each (chosen: about two screens of a phone)."""
MAX_RESULT_ROWS = 2000
"""Rows of the table of results (chosen)."""


def posterior_page(
    post: Posterior,
    title: str,
    prediction: str,
    check: Check | None = None,
    *,
    hills: Sequence[str] | None = None,
    effects: str = "",
    findings: Sequence[str] = (),
) -> str:
    """Return the page of a posterior.

    Args:
        post: what the page is about.
        title: of the page.
        prediction: the section on predictions, the model's own.
        check: of its calibration, where there is one.
        hills: the parameters whose densities are drawn; all unless given.
        effects: what is drawn of the other parameters, the model's own.
        findings: what was found, in the sentences that the page begins with.
    """
    lead = html.findings(findings) + html.paragraphs(
        f"A posterior by method {post.method!r}, worked out from "
        + ("a public file" if len(post.guarantees) < 2 else f"{len(post.guarantees)} public files")
        + " alone. It accounts for too little data and for the privacy noise together."
        if post.method != "naive"
        else "A posterior by method 'naive', which takes the noisy numbers for exact ones."
    )
    densities = _posterior(post, hills or tuple(post.draws))
    sections = (
        html.section("result", "The result", _result(post)),
        html.section(
            "promise", "What was promised", promise(post.releases, post.guarantees)
        ),
        html.section("released", "What was released", *map(release_content, post.releases)),
        html.section("posterior", "Posterior and prior", densities, effects),
        html.section("population", "What the groups share", _population(post)),
        html.section("privacy", "What privacy cost", _cost(post)),
        html.section("prediction", "Prediction", prediction),
        html.section("convergence", "Can the computation be trusted?", _convergence(post)),
        html.section("calibration", "Is the method calibrated here?", calibration(check)),
    )  # fmt: skip
    return html.page(title, lead, sections)


def _result(post: Posterior) -> str:
    verdicts = "".join(html.verdict(False, "To know first", f"{c}.") for c in post.cautions)
    words = post.convergence
    verdicts += html.verdict(post.converged, words.split(":")[0].capitalize(), words)
    if post.method == "naive":
        verdicts += html.verdict(
            False, "Do not rely on these intervals", "The method ignores the privacy noise."
        )
    rows = post.summary().reset_index()
    leading = [c for c in ("group", "parameter") if c in rows]
    numbers = [c for c in ("median", "lower", "upper", "mean", "sd", "times_wider") if c in rows]
    # A number that is none is shown as a dash.
    far = beyond_interval(rows)
    rows.loc[far, list(DECIDED_BY_TAILS)] = np.nan
    listed = [
        (*(str(row[c]) for c in leading), *(float(row[c]) for c in numbers))
        for _, row in rows.head(MAX_RESULT_ROWS).iterrows()
    ]
    if len(rows) > len(listed):
        verdicts += html.paragraphs(f"The first {len(listed)} of {len(rows)} rows are shown.")
    caption = "Posterior in the units of the data; lower and upper end a 95 % interval"
    head = [c.replace("times_wider", "times wider by privacy") for c in (*leading, *numbers)]
    untold = html.paragraphs(f"{WHY_UNTOLD}.") if far.any() else ""
    return verdicts + html.table(caption, head, listed) + untold


def _posterior(post: Posterior, hills: Sequence[str]) -> str:
    if post.keys is not None:
        return _group_intervals(post, post.keys)
    before = post.prior_draws(PRIOR_DRAWS) if post.prior_draws is not None else {}
    figures = [
        html.figure(drawings.density(name, post.draws[name].ravel(), before.get(name)), name)
        for name in hills
    ]
    keys = [("posterior", "posterior")]
    if before:
        keys.append(("prior", "prior: what was believed before the release"))
    how_to_read = html.paragraphs(
        "The line under a hill marks its 95 % interval. Where posterior and prior look alike, the "
        "release said little, and the answer is mostly the prior's."
        if before
        else "The line under a hill marks its 95 % interval; draws more than its length beyond are "
        "not drawn."
    )
    prior = html.folded("The prior in numbers", html.text("pre", post.prior)) if post.prior else ""
    return how_to_read + html.legend(*keys) + html.grid(figures) + prior


def _group_intervals(post: Posterior, keys: tuple[str | int, ...]) -> str:
    chosen = np.unique(np.linspace(0, len(keys) - 1, MAX_GROUPS_DRAWN).round().astype(int))
    figures, named = [], len(keys) <= MAX_GROUPS_NAMED
    for name, values in post.draws.items():
        flat = values[chosen].reshape(len(chosen), -1)
        low, at, high = np.quantile(flat, [0.025, 0.5, 0.975], axis=1)
        middle = None if post.population is None else float(values.mean())
        names = [str(keys[i]) for i in chosen]
        if named:
            words = f"{name}, by group: " + ", ".join(
                f"{group} {html.number(low[i])} to {html.number(high[i])}"
                for i, group in enumerate(names)
            )
            rows = list(zip(names, low.tolist(), at.tolist(), high.tolist(), strict=True))
            inside = middle is None and bool(low.min() <= 0 <= high.max())
            drawn = drawings.intervals(words, rows, zero=inside, reference=middle)
        else:
            drawn = drawings.caterpillar(name, low, at, high, names, middle)
        figures.append(html.figure(drawn, name))
    some = f"{len(chosen)} of the {len(keys)} groups are drawn. " if len(chosen) < len(keys) else ""
    order = (
        "with its median as a dot"
        if named
        else "from the lowest median up; the pointer shows a group's name, and the table above "
        "has them all"
    )
    how_to_read = html.paragraphs(
        f"{some}95 % intervals of every group, {order}."
        + (" Dashed: the mean of all groups." if post.population else "")
        + (" Dashed: zero, where it is in the picture." if named and not post.population else "")
    )
    return how_to_read + html.grid(figures)


def _population(post: Posterior) -> str:
    """Return what pooled groups share, who says so, and where each group ranks."""
    shared = post.population
    if shared is None:
        return ""
    rows = [
        (str(name), *(float(row[c]) for c in ("mean", "sd", "lower", "upper")), row["judgement"])
        for name, row in shared.summary().iterrows()
    ]
    head = ("parameter", "mean", "sd", "lower", "upper", "who speaks")
    introduction = html.paragraphs(
        "Groups were pooled: each is taken as drawn from a population, which was inferred with "
        "them. Groups about which the release says little are drawn towards it.",
        "Learnt from data: the release at least halved what the prior left open. Mostly prior: it "
        "did not. Upper bound only: groups may as well not differ at all.",
    )
    table = html.table("The population; lower and upper end a 95 % interval", head, rows)
    return introduction + table + _ranks(post)


def _ranks(post: Posterior) -> str:
    """Return where every group ranks, by its first parameter."""
    name = next(iter(post.draws))
    ranked = post.by_group(name).sort_values("rank").head(MAX_RESULT_ROWS)
    rows = [
        (str(key), float(row["mean"]), f"{row['rank']:g}",
         f"{row['rank_lower']:.0f} to {row['rank_upper']:.0f}", f"{row['top_decile']:.0%}",
         f"{row['bottom_decile']:.0%}")
        for key, row in ranked.iterrows()
    ]  # fmt: skip
    head = (str(ranked.index.name), "mean", "rank", "95 % interval", "in top decile",
            "in bottom decile")  # fmt: skip
    explanation = html.paragraphs(
        f"Ranks by {name}, 1 for the largest. Where intervals of ranks overlap, the release does "
        "not say which group is ahead. noisewise ranks writes the same as a table for a map."
    )
    return explanation + html.table(f"Ranks of {len(post.keys or ())} groups", head, rows)


def _cost(post: Posterior) -> str:
    if post.without_noise is None or post.keys is not None:
        return html.paragraphs(
            "How wide the intervals would be without privacy noise is worked out for one group, "
            "and for methods that model the noise."
        )
    table = post.summary()
    far = dict(zip(table.index, beyond_interval(table), strict=True))
    alone = {n: v for n, v in post.without_noise().items() if np.isfinite(v) and not far[n]}
    hidden = [name for name in post.draws if far[name]]
    sd = {name: float(post.draws[name].std(ddof=1)) for name in alone}
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
    if hidden:
        explanation += html.paragraphs(
            f"Of {', '.join(hidden)} the noise leaves so little that there is no deviation to "
            "compare: nearly all of the uncertainty is due to privacy."
        )
    if not sd:
        return explanation
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
        "with the highest R-hat. Draws far beyond the 95 % interval are drawn at the edge."
    )
    return table + how_to_read + html.grid(figures)

"""Sections of a page that are about the release: what was promised, and what was published."""

from __future__ import annotations

import math
from collections.abc import Sequence

from noisewise.artifact import Release
from noisewise.report import html

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
    pure = [r.guarantee.epsilon for r in releases if r.guarantee.rho is None]
    if releases and len(pure) == len(releases):
        epsilon = sum(pure)
        if len(releases) > 1:
            sentences.append(
                html.paragraphs(
                    f"Together the {len(releases)} releases keep {epsilon:g}-differential privacy."
                )
            )
        sentences.append(html.paragraphs(_meaning(epsilon)))
    sentences.append(
        html.paragraphs(
            "This page, like every result worked out from the release, tells no more about any "
            "person than the release does."
        )
    )
    return "".join(sentences)


def _meaning(epsilon: float) -> str:
    """Return what an epsilon means, as odds, for someone who has never seen one."""
    if epsilon > LARGE_EPSILON:
        return (
            "An epsilon this large promises little to any one person: an observer may become "
            "practically sure of what a record holds."
        )
    sure = 1 / (1 + math.exp(-epsilon))
    return (
        "In other words: someone who held two versions of a person's record for equally likely "
        f"before, and knows everybody else's, can be at most {sure:.0%} sure of one of them after."
    )


def content(release: Release) -> str:
    """Return what a release holds: how many records, which bounds, which sums."""
    return "".join(
        (
            html.paragraphs(_records(release), _selected(release), _groups(release)),
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


def _groups(release: Release) -> str:
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
        (column, b.lower, b.upper, "by private quantiles" if column in chosen else "by the owner")
        for column, b in release.bounds.items()
    ]
    dropped = any(getattr(b.statistic, "outside", "") == "drop" for b in release.blocks)
    fate = "were left out of the sums" if dropped else "were moved to the nearer bound"
    return html.table(
        f"Bounds, which are public; values outside {fate}",
        ("column", "lower", "upper", "chosen"),
        rows,
    )


def _sums(release: Release) -> str:
    frame = release.table(units="user")
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
    table = html.table("Published sums, in the units of the data", head, rows)
    loud = sum(row[3] < 1 for row in rows)
    if loud:
        table += html.paragraphs(
            f"{loud} of {len(rows)} published numbers are smaller than their noise. Taken at face "
            "value they would mislead; the posterior below knows how loud the noise was."
        )
    return table

"""What a new record will be, on the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisewise.report import html, pictures

POINTS = 25


def prediction(post: Any) -> str:
    """Over every covariate, or of the one column."""
    if post.keys is not None:
        return html.paragraphs("Ask for a group's prediction with noisewise predict.")
    if post.family is not None:
        return _new_record(post)
    limits = post.releases[0].bounds if post.releases else {}
    if not set(post.x) <= set(limits):
        return ""
    middle = {c: limits[c].centre for c in post.x}
    figures = []
    for column in post.x:
        at = np.linspace(limits[column].lower, limits[column].upper, POINTS)
        found = [post.predict({**middle, column: float(v)}) for v in at]
        line, record = ([getattr(p, k)(0.9) for p in found] for k in ("mean_interval", "interval"))
        mean = np.array([float(p.mean) for p in found])
        drawn = pictures.band(column, post.y, at, mean, np.array(line), np.array(record))
        figures.append(html.figure(drawn, f"{post.y} over {column}"))
    others = (
        "" if len(post.x) == 1 else " The other covariates are held at the middle of their bounds."
    )
    told = html.paragraphs(f"Over the public range of each covariate.{others}")
    keys = html.legend(("band", "the line itself: 90 %"), ("soft", "a new record: 90 % of them"))
    return told + keys + html.grid(figures)


def _new_record(post: Any) -> str:
    found = post.predict()
    levels = getattr(found, "probabilities", None)
    if levels is not None:
        names, chance = [str(k) for k in levels], np.array([float(v) for v in levels.values()])
        said = "Probability of each category: " + ", ".join(
            f"{n} {p:.1%}" for n, p in zip(names, chance, strict=True)
        )
        told = html.paragraphs("A new record falls into")
        return told + html.figure(pictures.bars(said, names, chance))
    low, high = found.interval(0.9)
    told = html.paragraphs(
        f"A new record of {post.y} lies between {html.number(low)} and {html.number(high)} with "
        "probability 90 %."
    )
    drawn = pictures.density(f"a new record of {post.y}", found.draws.ravel().astype(float), None)
    return told + html.figure(drawn, f"a new record of {post.y}")

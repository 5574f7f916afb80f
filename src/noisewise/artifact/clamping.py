"""Records outside their bounds: how many, where the owner counted them, and what that means."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from noisewise.artifact.bounds import Censored
from noisewise.artifact.release import Release
from noisewise.artifact.statistics import Clamped

CERTAIN_DEVIATIONS = 3.0
"""Noise deviations above zero from which a count of clamped records is named (chosen)."""


def clamped_counts(release: Release) -> dict[str, tuple[float, float]]:
    """Return, by column, the noisy count of records outside the bounds and its noise's deviation.

    Over all groups. Empty where the owner did not count them.
    """
    for block in release.blocks:
        if isinstance(block.statistic, Clamped):
            groups = block.values.shape[1]
            scale = np.sqrt(2.0) if block.noise.mechanism == "laplace" else 1.0
            error = scale * block.noise_scales * np.sqrt(groups)
            totals = block.scaled.sum(axis=1)
            pairs = zip(totals.tolist(), error.tolist(), strict=True)
            return dict(zip(block.statistic.columns, pairs, strict=True))
    return {}


def clamping_in_words(
    release: Release, columns: Iterable[str] | None = None, *, taken_as_normal: bool
) -> tuple[str, ...]:
    """Return a sentence for every column of which values were moved to a bound, as far as known.

    Args:
        release: the public file.
        columns: those that matter; None for all that have bounds.
        taken_as_normal: whether the model takes columns with natural bounds for normal ones, so
            that records moved to a bound bias its results.
    """
    counts = clamped_counts(release)
    size = release.population.total or sum(release.population.sizes)
    sentences = []
    for column in release.bounds if columns is None else columns:
        bounds = release.bounds.get(column)
        count, error = counts.get(column, (0.0, 1.0))
        seen = count > CERTAIN_DEVIATIONS * error
        cut = isinstance(bounds, Censored)
        if bounds is None or not (seen or (cut and taken_as_normal)):
            continue
        of = f"{column}, {bounds.lower:g} to {bounds.upper:g}"
        many = f"{100 * count / size:.2g} % of the" if size else f"{count:,.0f}"
        lie = f"About {many} records lie outside the bounds of {of}"
        if not taken_as_normal:
            sentences.append(lie)
        elif cut:
            what = f"{lie}, which" if seen else f"The bounds of {of},"
            sentences.append(f"{what} cut values off; exact infers those beyond, taken for normal")
        else:
            sentences.append(
                f"{lie}, and were moved to the nearer bound: results are of these values, not of "
                f"{column} itself. Ask for a release that declares the bounds as Censored"
            )
    return tuple(sentences)

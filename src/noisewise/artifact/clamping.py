"""Records outside their bounds, or left out: how many, where counted, and what that means."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from noisewise.artifact.bounds import Censored
from noisewise.artifact.readable_numbers import in_full
from noisewise.artifact.release import Block, Release
from noisewise.artifact.statistics import Clamped, LeftOut

CERTAIN_DEVIATIONS = 3.0
"""Noise deviations above zero from which a count of clamped records is named (chosen)."""


LEAST_MOVED = 0.01
"""Share of the records that a private search may leave beyond its bounds from which results say so
(chosen: as a plan does)."""


ROUNDING = 1e-6
"""Part of a record that is none."""


def clamped_counts(release: Release) -> dict[str, tuple[float, float]]:
    """Return, by column, the noisy count of records outside the bounds and its noise's deviation.

    Over all groups. Empty where the owner did not count them.
    """
    for block in release.blocks:
        if isinstance(block.statistic, Clamped):
            return dict(zip(block.statistic.columns, _totals(block), strict=True))
    return {}


def _totals(block: Block) -> list[tuple[float, float]]:
    """Return the sums of all groups, and the deviations of their noise."""
    scale = np.sqrt(2.0) if block.noise.mechanism == "laplace" else 1.0
    error = scale * block.noise_scales * np.sqrt(block.values.shape[1])
    return list(zip(block.scaled.sum(axis=1).tolist(), error.tolist(), strict=True))


def left_out_in_words(release: Release) -> tuple[str, ...]:
    """Return a sentence on the records that were left out because of gaps, where they were counted.

    Nothing where the noise would explain the count.
    """
    for block in release.blocks:
        if isinstance(block.statistic, LeftOut):
            ((count, error),) = _totals(block)
            if count > CERTAIN_DEVIATIONS * error:
                return (
                    f"About {count:,.0f} records (give or take {2 * error:,.0f}) have gaps and "
                    "were left out: results are of the others, who may differ from them",
                )
    return ()


def clamping_in_words(
    release: Release,
    columns: Iterable[str] | None = None,
    *,
    taken_as_normal: bool,
    knows_cuts: bool = True,
) -> tuple[str, ...]:
    """Return a sentence for every column of which values were moved to a bound, as far as known.

    Args:
        release: the public file.
        columns: those that matter; None for all that have bounds.
        taken_as_normal: whether the model takes columns with natural bounds for normal ones, so
            that records moved to a bound bias its results.
        knows_cuts: whether the method infers values beyond bounds that cut them off.
    """
    counts = clamped_counts(release)
    beyond = (
        "exact infers those beyond, taken for normal"
        if knows_cuts
        else "results are of the values after clamping. exact infers those before"
    )
    size = release.population.total or sum(release.population.sizes)
    asked, sentences = tuple(release.bounds if columns is None else columns), []
    for column in asked:
        bounds = release.bounds.get(column)
        count, error = counts.get(column, (0.0, 1.0))
        seen = count > CERTAIN_DEVIATIONS * error
        cut = isinstance(bounds, Censored)
        if bounds is None or not (seen or (cut and taken_as_normal)):
            continue
        of = f"{column}, {in_full(bounds.lower)} to {in_full(bounds.upper)}"
        share = 100 * min(count / size, 1) if size else 0
        many = f"{share:.{0 if share > 10 else 1}f} % of the" if size else f"{count:,.0f}"
        lie = f"About {many} records lie outside the bounds of {of}"
        if not taken_as_normal:
            sentences.append(lie)
        elif cut:
            what = f"{lie}, which" if seen else f"The bounds of {of},"
            sentences.append(f"{what} cut values off; {beyond}")
        else:
            sentences.append(
                f"{lie}, and were moved to the nearer bound: results are of these values, not of "
                f"{column} itself. Ask for a release with wider bounds, or, of a roughly normal "
                "column, with Censored ones"
            )
    return (*sentences, *_searches(release, asked if taken_as_normal else ()))


def _searches(release: Release, moved: Iterable[str]) -> list[str]:
    """Return a sentence for every private search that may have left out more than a few records.

    Args:
        release: the public file.
        moved: the columns where records beyond the bounds were moved, and bias results.
    """
    records, known = sum(release.population.sizes) or None, set(moved)
    sentences = []
    for selection in release.selections:
        search, column = selection.search, selection.column
        if search is None:
            continue
        low, high = selection.quantiles
        aimed = max(low, 1 - high) * search.total(records)
        beyond = math.ceil(max(search.hidden, aimed) - ROUNDING)
        may = f"up to {beyond:,} records may lie beyond either of them"
        if selection.is_unsure(records):
            sentences.append(
                f"The bounds of {column} were found privately by a search that was unsure: {may}"
            )
        elif isinstance(release.bounds.get(column), Censored):
            continue  # said above
        elif column in known and beyond > LEAST_MOVED * search.total(records):
            sentences.append(
                f"The bounds of {column} were found privately: {may} and were moved there, so that "
                f"results are of the values after that, not of {column} itself"
            )
    return sentences

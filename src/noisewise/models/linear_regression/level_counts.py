"""How many records have each level of a factor, as far as the noise lets one see."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from noisewise.artifact import Block, Level, Release
from noisewise.artifact.guarantee import noise_sd
from noisewise.artifact.statistics import CellSums

SEEN_DEVIATIONS = 3.0
"""Noise deviations above zero from which a level surely has records (chosen)."""
MAX_NAMED = 6
"""Levels that a sentence names (chosen)."""


def level_counts(block: Block, factor: str) -> tuple[np.ndarray, float] | None:
    """Return noisy counts (level, group) of a factor and their noise's deviation.

    They are added up from the table of counts whose cells add the least noise; None where no table
    of counts holds the factor.
    """
    statistic = block.statistic
    if not isinstance(statistic, CellSums) or factor not in statistic.factors:
        return None
    place = statistic.factors.index(factor)
    levels = len(statistic.levels[factor])
    tables = [
        (math.prod(statistic.shape(cells)) // levels, i)
        for i, cells in enumerate(statistic.blocks)
        if cells.product == () and place in cells.within
    ]
    if not tables:
        return None
    added, i = min(tables)
    cells = statistic.blocks[i]
    counts = block.scaled[statistic.slices[i]].reshape(*statistic.shape(cells), -1)
    others = tuple(k for k, f in enumerate(cells.within) if f != place)
    return counts.sum(axis=others), noise_sd(block.noise) * statistic.units[0] * math.sqrt(added)


def hidden_levels_in_words(release: Release, factors: Collection[str]) -> list[str]:
    """Return a sentence on the levels of which the noise hides how many records there are."""
    hidden: list[str] = []
    for block in release.blocks:
        for factor in factors:
            counted = level_counts(block, factor)
            if counted is None:
                continue
            counts, deviation = counted
            levels: tuple[Level, ...] = block.statistic.categories[factor]
            few = counts.min(axis=1) < SEEN_DEVIATIONS * deviation
            hidden += [f"{factor}={v}" for v, rare in zip(levels, few, strict=True) if rare]
    if not hidden:
        return []
    named = ", ".join(hidden[:MAX_NAMED]) + (", …" if len(hidden) > MAX_NAMED else "")
    where = "" if release.groups is None else " in some groups"
    effect = "its effect is" if len(hidden) == 1 else "their effects are"
    return [f"The noise hides how many records have {named}{where}: {effect} mostly the prior's"]

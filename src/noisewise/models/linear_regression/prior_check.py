"""Columns that surely use a small part of their bounds: the default prior is made for others.

The default prior takes a column's variance in the box to be about 0.1 and slopes to be within tens
of σ. A column that fills a twentieth of its bounds has a variance of 0.001 and slopes of twenty
times the size: where noise leaves anything open, the prior decides, and rules the truth out.
Whether a column is so narrow can be read from the release itself, wherever its noise is small
enough to tell. An indicator that is hardly ever set (below one in two hundred) counts as one.
"""

from __future__ import annotations

import numpy as np

from noisewise.models.linear_regression.problem import Problem

NARROW = 0.02
"""Variance in [-1, 1]: two standard deviations either way then take 28 % of the bounds. A uniform
column has 0.33, a yes in a hundred 0.04, a beta(1, 6) column 0.06."""
SURE = 2.0
"""Standard deviations of the noise by which the variance must be below that; one of them must be
less than half of it, or chance would tell of wide columns too."""


def narrow(problem: Problem) -> tuple[str, ...]:
    """Names of such columns, response included; of groups, if most have it so."""
    columns = (*problem.x, problem.y)
    q = len(columns)
    squares = [i * q - i * (i - 1) // 2 for i in range(q)]
    means = q * (q + 1) // 2 + np.arange(q)
    observed = problem.observation
    n = problem.n[:, None]
    mean = observed.z[:, means] / n
    variance = observed.z[:, squares] / n - mean**2
    deviation = observed.noise_scale * (np.sqrt(2) if observed.mechanism == "laplace" else 1.0)
    error = deviation / n * np.sqrt(1 + 4 * mean**2)
    small = (variance + SURE * error < NARROW) & (error < NARROW / 2)
    return tuple(c for c, share in zip(columns, small.mean(axis=0), strict=True) if share > 0.5)


def caution(problem: Problem) -> str | None:
    """In words, with what to do."""
    found = narrow(problem)
    if not found:
        return None
    units = problem.units
    place = [(*problem.x, problem.y).index(c) for c in found]
    told = ", ".join(
        f"{c!r} ({units.centre[i] - units.half[i]:g} to {units.centre[i] + units.half[i]:g})"
        for c, i in zip(found, place, strict=True)
    )
    return (
        f"by the release, values lie in a small part of their bounds: {told}. The default prior is "
        "made from the bounds and may rule the truth out; give one in the columns' own units: "
        "prior={'response': NormalInverseGamma(…), 'covariates': NormalInverseWishart(…)}"
    )

"""Columns that use little of their bounds: hidden by the noise, or too narrow for a default prior.

*Hidden.* A column whose variance is not clearly above its noise has a slope that is hardly known,
whatever the prior: to say so is the analyst's half, to choose narrower bounds the owner's.

*Narrow.* The conjugate default prior, of all methods but ``exact``, takes a column's variance in
the box to be about 0.1 and slopes to be within tens of σ. A column that fills a twentieth of its
bounds has a variance of 0.001 and slopes of twenty times the size: where noise leaves anything
open, the prior decides, and rules the truth out. Whether a column is so narrow can be read from the
release itself, wherever its noise is small enough to tell. An indicator that is hardly ever set
(below one in two hundred) counts as one.
"""

from __future__ import annotations

import numpy as np

from noisewise.artifact.readable_numbers import range_in_full
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.numerics.gram_packing import square_positions, total_positions

NARROW_VARIANCE = 0.02
"""Variance in [-1, 1] below which a column is narrow (chosen): two standard deviations
either way then take 28 % of the bounds. A uniform column has 0.33, a yes in a hundred 0.04, a
beta(1, 6) column 0.06."""
CERTAINTY = 2.0
"""Standard deviations of the noise by which the variance must be below that (chosen). One of them
must be less than half of it, or chance would name wide columns too."""


VISIBLE_DEVIATIONS = 6.0
"""Deviations of its noise by which a column's variance is above zero if it is visible (chosen)."""


def noisy_variances(problem: RegressionProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return the variances (group, column) that the released sums give, and their noise's sd."""
    q = len(problem.x) + 1
    observed = problem.observation
    n = problem.n[:, None]
    mean = observed.z[:, total_positions(q)] / n
    variance = observed.z[:, square_positions(q)] / n - mean**2
    deviation = observed.noise_scale * (np.sqrt(2) if observed.mechanism == "laplace" else 1.0)
    return variance, deviation / n * np.sqrt(1 + 4 * mean**2)


def hidden_columns(problem: RegressionProblem) -> tuple[str, ...]:
    """Return the names of columns that the noise hides; with groups, in most of them."""
    variance, error = noisy_variances(problem)
    hidden = (variance < VISIBLE_DEVIATIONS * error).mean(axis=0) > 0.5
    return tuple(c for c, h in zip((*problem.x, problem.y), hidden, strict=True) if h)


def narrow_columns(problem: RegressionProblem) -> tuple[str, ...]:
    """Return the names of narrow columns, response included; with groups, if most have it so."""
    variance, error = noisy_variances(problem)
    small = (variance + CERTAINTY * error < NARROW_VARIANCE) & (error < NARROW_VARIANCE / 2)
    return tuple(
        c
        for c, share in zip((*problem.x, problem.y), small.mean(axis=0), strict=True)
        if share > 0.5
    )


def caution(problem: RegressionProblem) -> str | None:
    """Return a warning that names the narrow columns and what to do, or None if there are none."""
    narrow = narrow_columns(problem)
    if not narrow:
        return None
    units = problem.units
    place = [(*problem.x, problem.y).index(c) for c in narrow]
    ranges = ", ".join(
        f"{c!r} ({range_in_full(units.centre[i] - units.half[i], units.centre[i] + units.half[i])})"
        for c, i in zip(narrow, place, strict=True)
    )
    return (
        f"by the release, values lie in a small part of their bounds: {ranges}. The default prior "
        "is made from the bounds and may rule the truth out; give one in the columns' own units: "
        "prior={'response': NormalInverseGamma(…), 'covariates': NormalInverseWishart(…)}"
    )

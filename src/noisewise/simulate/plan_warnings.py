"""When bounds do not fit what is believed of the data: too tight, too wide, or found privately."""

from __future__ import annotations

import numpy as np
from scipy import stats

from noisewise.artifact import Release
from noisewise.simulate.plan_result import Plan

BITES = 0.01
"""Share of records outside from which it is worth a word."""
LOST = 0.05
"""Coverage lost, without any noise, from which clamping is called a bias."""
DROWNED = 0.9
"""Share of what would say nothing at all from which a release is said to say little."""
REACH, USED = 3.0, 0.4
"""Deviations that hold nearly all values; share of the bounds they should fill."""
DEAR = 3.0
"""Times the width without privacy, from which narrower bounds are worth thinking of."""
CHANCE = 0.001
"""Probability with which a calibrated method is said to miss."""
FEW = 5000
"""Records below which private bounds are not to be relied on."""


def warnings_of(
    made: Plan, release: Release, names: tuple[str, ...], quiet: np.ndarray | None
) -> tuple[str, ...]:
    """Return warnings about a plan.

    ``quiet`` is the coverage of the sums as the owner has them, were there no noise at all; None
    where the model knows of its bounds, so that records outside cost width and not coverage.
    """
    return (
        *_tight(made, names, quiet),
        *_wide(made, release),
        *_loud(made, names),
        *_missed(made),
        *_private(made, release),
    )


def _tight(made: Plan, names: tuple[str, ...], quiet: np.ndarray | None) -> list[str]:
    found = [
        f"{share:.1%} of the records would lie outside the bounds of {column!r}."
        for column, share in made.outside.items()
        if share > BITES
    ]
    if not found or quiet is None:
        return found
    lost = [
        f"{name} {share:.0%}"
        for name, share in zip(names, quiet, strict=True)
        if share < made.settings["level"] - LOST
    ]
    if lost:
        found.append(
            "Clamping them biases the result, whatever the noise: even without noise, 95 % "
            f"intervals would hold the guess in only this share of the trials: {', '.join(lost)}. "
            "Widen the bounds."
        )
    return found


def _wide(made: Plan, release: Release) -> list[str]:
    found = []
    for column, limits in release.bounds.items():
        spread = made.guess.get(f"sd:{column}")
        if spread is not None and 2 * REACH * spread < USED * (limits.upper - limits.lower):
            middle = made.guess[f"mean:{column}"]
            found.append(
                f"Bounds of {column!r} are wide: by the guess nearly all values lie between "
                f"{middle - REACH * spread:.4g} and {middle + REACH * spread:.4g}. Noise grows "
                "with the bounds; narrower ones would be worth records."
            )
    return found


def _signal(made: Plan, name: str) -> float:
    """The width from which an interval says little: the prior's, or of a slope twice the guess."""
    slope = f"mean:{name}" in made.guess
    return min(made.before[name], 2 * abs(made.guess[name]) if slope else float("inf"))


def _loud(made: Plan, names: tuple[str, ...]) -> list[str]:
    best, found = made.methods[0], []
    # Not of the error variance: it is seldom what a plan is for.
    asked = [n for n in names if n != "sigma2"] or list(names)
    for epsilon in made.epsilons:
        widths = {n: made.row(epsilon, best, n).width for n in asked}
        drowned = [n for n, w in widths.items() if w > DROWNED * _signal(made, n)]
        dear = [n for n, w in widths.items() if w > DEAR * made.without[n] and n not in drowned]
        if drowned:
            found.append(
                f"At epsilon = {epsilon:g} the noise drowns the signal: intervals of "
                f"{', '.join(drowned)} would be too wide to tell the guess from zero, or from the "
                "prior. Narrower bounds, more records or a larger epsilon would help."
            )
        elif dear:
            most = max(widths[n] / made.without[n] for n in dear)
            found.append(
                f"At epsilon = {epsilon:g} intervals would be up to {most:.1f} times as wide as "
                "without privacy."
            )
    return found


def _missed(made: Plan) -> list[str]:
    """The best method's intervals hold the guess less often than chance allows."""
    trials, level = made.settings["trials"], made.settings["level"]
    least = float(stats.binom.ppf(CHANCE, trials, level)) / trials
    found = []
    for epsilon in made.epsilons:
        rows = [made.row(epsilon, made.methods[0], name) for name in made.without]
        missed = [f"{r.parameter} {r.coverage:.0%}" for r in rows if r.coverage < least]
        if missed:
            found.append(
                f"At epsilon = {epsilon:g} intervals by {made.methods[0]} would hold the guess too "
                f"seldom: {', '.join(missed)} of the trials. Either clamping biases them, or the "
                "prior leaves the guess little room (the default one is made from the bounds: "
                "narrower bounds, or a prior of the analyst's own, would mend that)."
            )
    return found


def _private(made: Plan, release: Release) -> list[str]:
    if not release.selections:
        return []
    columns = ", ".join(s.column for s in release.selections)
    found = [
        f"Bounds of {columns} are to be found privately: the plan takes the whole range for them, "
        "and counts what the search costs. Widths are therefore on the large side."
    ]
    if made.settings["n"] < FEW:
        found.append(
            f"With {made.settings['n']:,} records private bounds are weak: below a few thousand "
            "they are often far off. Public knowledge of the range is worth more."
        )
    return found

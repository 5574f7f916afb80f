"""What will analysts get? Simulated before any ε is spent, and without touching data.

One guessed truth, records of it clamped as the owner would, and for every ε the noise its release
would have; then the analyst's own methods, on all trials as one batch. All ε see the same records
and the same noise in other sizes, so that differences between them are not chance. Warnings tell
where bounds do not fit what is believed of the data: too tight, too wide, or found privately.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy import stats

from noisewise.artifact import ArgumentError, Release
from noisewise.diagnostics import Coverage
from noisewise.inference.api import asked, reporting
from noisewise.models.base import Progress
from noisewise.simulate.trials import choose_methods, covered, settings_of, simulated

if TYPE_CHECKING:
    from noisewise.models.graphical_model import GraphicalOptions


@dataclass(frozen=True)
class Row:
    """Mean width of intervals and how often they held the guess, over all trials."""

    epsilon: float
    method: str
    parameter: str
    width: float
    coverage: float


@dataclass(frozen=True)
class Wish:
    """A wanted width and the smallest ε that gives it; None where none can."""

    parameter: str
    width: float
    epsilon: float | None
    words: str


@dataclass(frozen=True)
class Plan:
    """``without``: mean width without privacy, by parameter: neither noise nor clamping.

    ``before``: width of the prior's own interval. ``outside``: share of records outside the bounds.

    Example:
        >>> import noisewise as nw
        >>> def settings(epsilon):
        ...     return nw.release.exponential_family(
        ...         nw.release.Blank(1000), column="visits", family="poisson", bounds=(0, 20),
        ...         epsilon=epsilon,
        ...     )
        >>> plan = nw.plan(settings, 1000, [0.5, 1.0], methods=["exact"], trials=10)
        >>> plan.epsilons, plan.row(1.0, "exact", "rate").width > 0
        ((0.5, 1.0), True)
    """

    settings: Mapping[str, Any]
    guess: Mapping[str, float]
    rows: tuple[Row, ...]
    without: Mapping[str, float]
    before: Mapping[str, float]
    outside: Mapping[str, float]
    warnings: tuple[str, ...]
    wish: Wish | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        """In the order tried."""
        return tuple(dict.fromkeys(r.method for r in self.rows))

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The grid."""
        return tuple(dict.fromkeys(r.epsilon for r in self.rows))

    def row(self, epsilon: float, method: str, parameter: str) -> Row:
        """One of them."""
        asked = (epsilon, method, parameter)
        return next(r for r in self.rows if (r.epsilon, r.method, r.parameter) == asked)

    def to_json(self) -> str:
        """For scripts."""
        return json.dumps(asdict(self), indent=1)


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


LEVEL = 0.95
"""Probability of the intervals that are planned (chosen)."""
HALVINGS = 6
"""Bisections of a factor of four (chosen): the ε for a wanted width is right to 2 percent."""
FURTHEST = 64.0
"""How far beyond the grid a wanted width is looked for."""


def plan(
    at: Callable[[float], Release],
    n: int,
    epsilons: Sequence[float],
    *,
    methods: Iterable[str] | None = None,
    guesses: Mapping[str, float] | None = None,
    prior: Any = None,
    trials: int = 50,
    seed: int = 0,
    width: float | None = None,
    parameter: str | None = None,
    progress: Progress | bool | None = None,
    **options: Unpack[GraphicalOptions],
) -> Plan:
    """Simulate what interval widths analysts will get, by ε and method, before any is spent.

    Args:
        at: a release's settings for an ε; its numbers are not looked at.
        n: number of records.
        epsilons: the grid.
        methods: of ``infer``; the best and ``naive`` unless named.
        guesses: what is believed of the data, by name; the rest follows from the bounds.
        prior: of the analysis, as for ``infer``.
        trials: simulated releases for every ε.
        seed: of the simulation.
        width: find the smallest ε whose mean interval is no wider.
        parameter: whose interval that is; the first unless named.
        progress: as for ``infer``.
        options: of the model, as for ``infer``.

    Returns:
        Widths and coverage, warnings, and the ε for a wanted width.

    Example:
        >>> import noisewise as nw
        >>> def settings(epsilon):
        ...     return nw.release.exponential_family(
        ...         nw.release.Blank(1000), column="visits", family="poisson", bounds=(0, 20),
        ...         epsilon=epsilon,
        ...     )
        >>> nw.plan(settings, 1000, [0.5, 1.0], trials=10).methods
        ('exact', 'naive')
    """
    if not epsilons or min(epsilons) <= 0:
        raise ArgumentError(f"epsilon: must be one or more numbers above zero, not {epsilons!r}")
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 10:
        raise ArgumentError(f"trials: must be a whole number of at least 10, not {trials!r}")
    grid = sorted(set(map(float, epsilons)))
    release, question = at(grid[-1]), asked(prior, **options)
    simulator, problem = simulated(release, question, n)
    usual = simulator.usual_methods(release)
    # The best, and for comparison the one that ignores the noise.
    chosen = choose_methods(release, methods, tuple(dict.fromkeys((usual[0], usual[-1]))))
    scene = simulator.scene(problem, n, guesses or {}, trials, seed)

    def judged(epsilon: float, method: str) -> Coverage:
        made = scene.trials(simulated(at(epsilon), question, n)[1], seed)
        with reporting(progress, f"epsilon {epsilon:g} ({method})") as report:
            return covered(simulator.run(made, method, seed, report), made, LEVEL)

    names = scene.names
    place = names.index(_named(parameter, names))
    rows = [
        Row(epsilon, method, name, float(found.width[i]), float(found.share[i]))
        for epsilon in grid
        for method in chosen
        for found in (judged(epsilon, method),)
        for i, name in enumerate(names)
    ]
    said = settings_of(release, problem, simulator)
    # Of one epsilon only, and there are several.
    said.pop("noise_scale")
    without = scene.width_without_privacy(seed, LEVEL).tolist()
    made = Plan(
        settings={**said, "n": n, "trials": trials, "seed": seed, "epsilon": grid, "level": LEVEL},
        guess=scene.guess,
        rows=tuple(rows),
        without=dict(zip(names, without, strict=True)),
        before=scene.prior_width(LEVEL),
        outside=scene.outside,
        warnings=(),
    )
    quiet = scene.coverage_without_noise(seed, LEVEL) if simulator.clamping_biases else None
    made = replace(made, warnings=warnings_of(made, release, names, quiet))
    if width is None:
        return made
    wish = _smallest(made, names[place], width, lambda e: judged(e, chosen[0]).width[place])
    return replace(made, wish=wish)


def _named(parameter: str | None, names: tuple[str, ...]) -> str:
    if parameter is None:
        return names[0]
    if parameter not in names:
        raise ArgumentError(f"parameter: {parameter!r} is unknown; there are {', '.join(names)}")
    return parameter


def _smallest(made: Plan, parameter: str, width: float, at: Callable[[float], float]) -> Wish:
    """Bisection of log ε between one that is too small and one that suffices."""
    if not width > 0:
        raise ArgumentError(f"width: must be above zero, not {width!r}")
    n = made.settings["n"]
    if width <= made.without[parameter]:
        return Wish(
            parameter, width, None,
            f"No epsilon gives an interval of {width:g} for {parameter}: even without privacy, "
            f"{n:,} records give {made.without[parameter]:.4g}. More records would.",
        )  # fmt: skip
    low, high = made.epsilons[0], made.epsilons[-1]
    most, least = high * FURTHEST, low / FURTHEST
    while at(high) > width:
        low, high = high, 4 * high
        if high > most:
            return Wish(
                parameter, width, None,
                f"Even epsilon = {high / 4:g} does not give an interval of {width:g} for "
                f"{parameter}.",
            )  # fmt: skip
    while low > least and at(low) <= width:
        low, high = low / 4, low
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if at(middle) > width else (low, middle)
    return Wish(
        parameter, width, high,
        f"The smallest epsilon whose intervals for {parameter} are {width:g} wide in the mean is "
        f"about {high:.3g}.",
    )  # fmt: skip

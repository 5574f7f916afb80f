"""What will analysts get? Simulated before any ε is spent, and without touching data.

One guessed truth, records of it clamped as the owner would, and for every ε the noise its release
would have; then the analyst's own methods, on all trials as one batch. All ε see the same records
and the same noise in other sizes, so that differences between them are not chance. Warnings tell
where bounds do not fit what is believed of the data: too tight, too wide, or found privately.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
from scipy import stats

from noisewise.artifact import ArgumentError, CellSums, Release
from noisewise.artifact.process_ending import last_words
from noisewise.artifact.readable_numbers import readable
from noisewise.artifact.uncentred_products import uncentred_products
from noisewise.diagnostics import Coverage, coverage
from noisewise.inference.api import asked, check_at_least, reporting
from noisewise.models.base import Progress
from noisewise.simulate.epsilon_search import (
    WidthTarget,
    check_wanted,
    decisive,
    reached_targets,
)
from noisewise.simulate.pooled_trials import releases_of
from noisewise.simulate.trials import (
    LEVEL,
    CautiousScene,
    ClampedScene,
    Guess,
    Scene,
    choose_methods,
    settings_of,
    simulated,
)

if TYPE_CHECKING:
    from noisewise.models.graphical_model import GraphicalOptions


MIN_SHARE_OUTSIDE = 0.01
"""Share of records outside the bounds from which a warning says so (chosen)."""
MAX_COVERAGE_LOST = 0.05
"""Coverage lost, without any noise, from which clamping is called a bias (chosen)."""
DROWNED_SHARE = 0.9
"""Share of a width that would say nothing at all from which a release is said to say little
(chosen)."""
REACH, FILLED_SHARE = 3.0, 0.4
"""Deviations that hold nearly all values, and the share of the bounds they should fill (chosen)."""
COSTLY_WIDTH = 3.0
"""Times the width without privacy, from which a warning says so (chosen)."""
MISSED_CHANCE = 0.001
"""Probability with which a calibrated method is said to miss (chosen)."""
MAX_UNCONVERGED = 0.05
"""Share of trials that did not converge, above which a plan says so (chosen)."""
FEWEST_TRIALS_PLANNED = 10
"""Trials of a plan, at the least (chosen)."""
FEWEST_TRIALS_FOR_COVERAGE = 50
"""Trials from which a plan says how often intervals held the guess (chosen: of 12, one miss in
twenty is none at all half of the time)."""


@dataclass(frozen=True)
class Row:
    """Mean width of intervals and how often they held the guess, over all trials.

    ``error`` is the standard error of the mean width: other trials would differ by about as much.
    """

    epsilon: float
    method: str
    parameter: str
    width: float
    coverage: float
    error: float


@dataclass(frozen=True)
class Plan:
    """What analysts will get: widths and coverage by ε and method, and warnings.

    ``without`` holds, by parameter, the mean width without privacy: neither noise nor clamping.
    ``before`` is the width of the prior's own interval, ``outside`` the share of records outside
    the bounds of each column.

    Example:
        >>> import noisewise as nw
        >>> blank, words = nw.release.Blank(1000), {"column": "owns", "family": "bernoulli"}
        >>> plan = nw.plan(
        ...     lambda epsilon: nw.release.exponential_family(blank, **words, epsilon=epsilon),
        ...     1000, [0.5, 1.0], methods=["exact"], trials=10,
        ... )
        >>> plan.epsilons, plan.row(1.0, "exact", "p").width > 0
        ((0.5, 1.0), True)
    """

    settings: Mapping[str, Any]
    guess: Mapping[str, float]
    rows: tuple[Row, ...]
    without: Mapping[str, float]
    before: Mapping[str, float]
    outside: Mapping[str, float]
    warnings: tuple[str, ...]
    targets: tuple[WidthTarget, ...] = ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Say how columns were taken to be distributed that nothing was guessed of, if any."""
        taken = self.settings.get("bell_curves", ())
        if not taken:
            return ()
        verb = (
            "is taken for a bell curve that fills its bounds"
            if len(taken) == 1
            else ("are taken for bell curves that fill their bounds")
        )
        return (
            f"{', '.join(taken)} {verb}, since nothing was guessed. To say otherwise, guess "
            "(--guess, in Python guesses=) the mean and deviation of a column, or binary, uniform "
            "or skewed, or a share for each value.",
        )

    @property
    def target(self) -> WidthTarget | None:
        """Return the wanted width that decides: one that no ε gives, or that of the largest ε."""
        return decisive(self.targets)

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods, in the order tried."""
        return tuple(dict.fromkeys(r.method for r in self.rows))

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Return the grid of ε."""
        return tuple(dict.fromkeys(r.epsilon for r in self.rows))

    @property
    def tells_coverage(self) -> bool:
        """Return whether there are trials enough for the share that held the guess to be shown."""
        return bool(self.settings["trials"] >= FEWEST_TRIALS_FOR_COVERAGE)

    @property
    def relative_errors(self) -> tuple[float, ...]:
        """Return the standard error of every mean width by the first method, as its share."""
        own = [r for r in self.rows if r.method == self.methods[0] and r.width > 0]
        return tuple(r.error / r.width for r in own)

    def row(self, epsilon: float, method: str, parameter: str) -> Row:
        """Return the row of one ε, method and parameter."""
        asked = (epsilon, method, parameter)
        return next(r for r in self.rows if (r.epsilon, r.method, r.parameter) == asked)

    def to_json(self) -> str:
        """Return the plan as JSON, for scripts."""
        return json.dumps(_as_json(asdict(self)), indent=1, allow_nan=False)


def plan(
    at: Callable[[float], Release],
    n: int,
    epsilons: Sequence[float],
    *,
    methods: Iterable[str] | None = None,
    model: str | None = None,
    guesses: Mapping[str, Guess] | None = None,
    prior: Any = None,
    trials: int | None = None,
    seed: int = 0,
    width: float | Mapping[str, float] | None = None,
    parameter: str | None = None,
    progress: Progress | bool | None = None,
    pool: bool = False,
    features: Any = None,
    parent: str | None = None,
    **options: Unpack[GraphicalOptions],
) -> Plan:
    """Simulate what interval widths analysts will get, by ε and method, before any is spent.

    Args:
        at: a release's settings for an ε; its numbers are not looked at.
        n: number of records.
        epsilons: the grid.
        methods: of ``infer``; the best and ``naive`` unless named.
        model: as for ``infer``, such as ``"logistic"``.
        guesses: what is believed of the data, by name; the rest follows from the bounds. Numbers
            are parameters; of a regression's columns, ``(mean, deviation)``, ``"binary"``,
            ``"uniform"``, ``"skewed"``, or the shares of levels or values,
            ``{"female": 0.5, "male": 0.5}``; the slope of such a column is ``"slope:age"``.
        prior: of the analysis, as for ``infer``.
        trials: simulated releases for every ε; 50 unless given, fewer where each takes long.
        seed: of the simulation.
        width: find the smallest ε whose mean interval is no wider; or widths of several
            parameters, ``{"age": 0.05}``.
        parameter: whose interval a single width is of; the first unless named.
        progress: as for ``infer``.
        pool: let groups learn from each other; every group then has n records, and widths and
            coverage are means over all groups. How much a regression's groups differ is guessed by
            ``"spread:age"``, a deviation for each coefficient.
        features: of pooled groups, as for ``infer``; they are taken to say nothing.
        parent: likewise.
        options: of the model, as for ``infer``.

    Returns:
        Widths and coverage, warnings, and the ε for wanted widths.

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
    if trials is not None:
        check_at_least("trials", trials, FEWEST_TRIALS_PLANNED)
    grid = sorted(set(map(float, epsilons)))
    release, question = at(grid[-1]), asked(prior, **options)
    simulator, problem = simulated(release, question, n, pool, features, parent, model)
    trials = simulator.planned_trials(problem) if trials is None else trials
    usual = simulator.usual_methods(release)
    # The best, and for comparison the one that ignores the noise.
    chosen = choose_methods(
        release, methods, tuple(dict.fromkeys((usual[0], usual[-1]))), pool, model
    )
    scene = simulator.scene(problem, n, guesses or {}, trials, seed)
    wanted = _wanted(width, parameter, scene.names)

    unconverged: dict[tuple[float, str], float] = {}

    known: dict[float, Mapping[str, float]] = {}

    def judged(epsilon: float, method: str) -> tuple[Coverage, np.ndarray]:
        settled = simulated(at(epsilon), question, n, pool, features, parent, model)[1]
        noisy = scene.trials(settled, seed)
        with reporting(progress, f"epsilon {epsilon:g} ({method})") as report:
            outcome = simulator.run_planned(noisy, method, seed, report)
        unconverged[epsilon, method] = outcome.unconverged
        found = coverage(outcome.draws, noisy.truth, LEVEL)
        if method == chosen[0]:
            known[epsilon] = dict(zip(scene.names, found.width.tolist(), strict=True))
        return found, _width_errors(outcome.draws, releases_of(noisy))

    settings = settings_of(release, problem, simulator)
    # The scale of the noise is that of one ε, and there are several.
    settings.pop("noise_scale")
    settings["bell_curves"] = _taken_for_bell_curves(scene.guess, guesses or {})
    settings |= {"n": n, "trials": trials, "seed": seed, "epsilon": grid, "level": LEVEL}
    without = scene.width_without_privacy(seed, LEVEL).tolist()
    with last_words(partial(_so_far, known, chosen[0], tuple(wanted))):
        rows = [row for e in grid for m in chosen for row in _rows(e, m, scene, *judged(e, m))]
    planned = Plan(
        settings=settings,
        guess=scene.guess,
        rows=tuple(rows),
        without=dict(zip(scene.names, without, strict=True)),
        before=scene.prior_width(LEVEL),
        outside=scene.outside,
        warnings=(),
    )
    clamped = None
    if simulator.clamping_biases:
        clamped = cast(ClampedScene, scene).coverage_without_noise(seed, LEVEL)
    planned = replace(planned, warnings=_warnings(planned, release, clamped))

    def widths(epsilon: float) -> Mapping[str, float]:
        if epsilon not in known:
            judged(epsilon, chosen[0])
        return known[epsilon]

    rough = trials < FEWEST_TRIALS_FOR_COVERAGE
    with last_words(partial(_so_far, known, chosen[0], tuple(wanted))):
        targets = reached_targets(wanted, n, planned.epsilons, planned.without, widths, rough=rough)
    said = scene.cautions() if isinstance(scene, CautiousScene) else ()
    warnings = *said, *planned.warnings, *_unconverged(unconverged, trials)
    return replace(planned, targets=targets, warnings=warnings)


def _taken_for_bell_curves(guess: Mapping[str, float], given: Mapping[str, Guess]) -> list[str]:
    """Return the columns of whose distribution nothing was guessed."""
    columns = [name.removeprefix("mean:") for name in guess if name.startswith("mean:")]
    laws = {name for name, value in given.items() if not isinstance(value, int | float)}
    return [c for c in columns if c not in laws and not {f"mean:{c}", f"sd:{c}"} & given.keys()]


def _rows(
    epsilon: float, method: str, scene: Scene[Any], judged: Coverage, errors: np.ndarray
) -> list[Row]:
    """Return one row per parameter."""
    columns = zip(scene.names, judged.width, judged.share, errors, strict=True)
    return [Row(epsilon, method, name, *map(float, numbers)) for name, *numbers in columns]


def _width_errors(draws: np.ndarray, releases: int) -> np.ndarray:
    """Return the standard error of each parameter's mean width.

    Args:
        draws: (trial, draw, parameter).
        releases: how many releases the trials are of; groups of one are not independent.
    """
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    widths = (high - low).reshape(releases, -1, draws.shape[-1]).mean(axis=1)
    return np.asarray(widths.std(axis=0, ddof=1) / math.sqrt(releases))


def _so_far(
    known: Mapping[float, Mapping[str, float]], method: str, wanted: tuple[str, ...]
) -> str:
    """Say in one line which mean widths are known; those of wanted parameters, where there are."""
    found = [
        f"at epsilon = {epsilon:.3g} "
        + ", ".join(f"{name} {readable(widths[name])}" for name in wanted or widths)
        for epsilon, widths in tuple(known.items())
    ]
    if not found:
        return "no epsilon had been simulated to the end"
    return f"mean widths of intervals by {method} so far: {'; '.join(found)}"


def _wanted(
    width: float | Mapping[str, float] | None, parameter: str | None, names: tuple[str, ...]
) -> Mapping[str, float]:
    """Return the wanted widths by parameter; a single one is of the first unless named."""
    if parameter is not None and parameter not in names:
        raise ArgumentError(f"parameter: {parameter!r} is unknown; there are {', '.join(names)}")
    single = {} if width is None else {parameter or names[0]: width}
    wanted = dict(width) if isinstance(width, Mapping) else cast(dict[str, float], single)
    check_wanted(wanted, names)
    return wanted


def _warnings(planned: Plan, release: Release, clamped: np.ndarray | None) -> tuple[str, ...]:
    """Return warnings about a plan.

    ``clamped`` is the coverage of the sums as the owner has them, were there no noise at all; None
    where the model knows of its bounds, so that records outside cost width and not coverage.
    """
    return (
        *_tight_bounds(planned, clamped),
        *_wide_bounds(planned, release),
        *_loud_noise(planned),
        *_bell_curves(planned, release),
        *_uncentred_products(release),
        *_low_coverage(planned),
        *_private_bounds(planned, release),
    )


def _tight_bounds(planned: Plan, clamped: np.ndarray | None) -> list[str]:
    """Warn where many records lie outside the bounds, and where clamping them biases."""
    warnings = [
        f"{share:.1%} of the records would lie outside the bounds of {column!r}."
        for column, share in planned.outside.items()
        if share > MIN_SHARE_OUTSIDE
    ]
    if not warnings or clamped is None:
        return warnings
    lost = [
        f"{name} {share:.0%}"
        for name, share in zip(planned.without, clamped, strict=True)
        if share < planned.settings["level"] - MAX_COVERAGE_LOST
    ]
    if lost:
        warnings.append(
            "Clamping them biases the result, whatever the noise: even without noise, 95 % "
            f"intervals would hold the guess in only this share of the trials: {', '.join(lost)}. "
            "Widen the bounds."
        )
    return warnings


def _wide_bounds(planned: Plan, release: Release) -> list[str]:
    """Warn of columns whose guessed values fill little of their bounds."""
    warnings = []
    for column, limits in release.bounds.items():
        spread = planned.guess.get(f"sd:{column}")
        width = limits.upper - limits.lower
        if spread is not None and 2 * REACH * spread < FILLED_SHARE * width:
            middle = planned.guess[f"mean:{column}"]
            warnings.append(
                f"Bounds of {column!r} are wide: by the guess nearly all values lie between "
                f"{readable(middle - REACH * spread)} and {readable(middle + REACH * spread)}. "
                "Noise grows with the bounds; narrower ones would be worth records."
            )
    return warnings


def _uninformative_width(planned: Plan, name: str) -> float:
    """Return the width that says little: the prior's, or for a slope twice the guess if less."""
    slope = f"mean:{name}" in planned.guess
    return min(planned.before[name], 2 * abs(planned.guess[name]) if slope else float("inf"))


def _loud_noise(planned: Plan) -> list[str]:
    """Warn where intervals of the best method say little, or cost much, at some ε."""
    best, warnings = planned.methods[0], []
    # Not of the error variance: it is seldom what a plan is for.
    names = [n for n in planned.without if n != "sigma2"] or list(planned.without)
    for epsilon in planned.epsilons:
        widths = {n: planned.row(epsilon, best, n).width for n in names}
        drowned = [
            n for n, w in widths.items() if w > DROWNED_SHARE * _uninformative_width(planned, n)
        ]
        # Without privacy there may be no answer, where some level has no record.
        ratios = [
            w / planned.without[n]
            for n, w in widths.items()
            if n not in drowned and math.isfinite(planned.without[n])
        ]
        if drowned:
            warnings.append(
                f"At epsilon = {epsilon:g} the noise drowns the signal: intervals of "
                f"{', '.join(drowned)} would be too wide to tell the guess from zero, or from the "
                "prior. Narrower bounds, more records or a larger epsilon would help."
            )
        elif max(ratios, default=0.0) > COSTLY_WIDTH:
            warnings.append(
                f"At epsilon = {epsilon:g} intervals would be up to {max(ratios):.1f} times as "
                "wide as without privacy."
            )
    return warnings


def _bell_curves(planned: Plan, release: Release) -> list[str]:
    """Ask whether costly columns between 0 and 1, which nothing was said of, are binary."""
    warnings = []
    for column, limits in release.bounds.items():
        name, spread = f"sd:{column}", planned.guess.get(f"sd:{column}")
        if (limits.lower, limits.upper) != (0, 1) or column not in planned.without:
            continue
        widths = [planned.row(e, planned.methods[0], column).width for e in planned.epsilons]
        costly = max(widths) > COSTLY_WIDTH * planned.without[column]
        if costly and spread is not None and math.isclose(spread, 1 / (2 * REACH)):
            warnings.append(
                f"{column!r} is taken for a bell curve between 0 and 1 ({name} = {spread:.3g}). If "
                "its values are 0 and 1, guess it to be binary: intervals would be far narrower."
            )
    return warnings


def _uncentred_products(release: Release) -> list[str]:
    """Warn of powers and products of columns whose bounds have zero far from their middle."""
    statistics = [b.statistic for b in release.blocks if isinstance(b.statistic, CellSums)]
    return uncentred_products([c for s in statistics for c in s.numeric], release.bounds)


def _low_coverage(planned: Plan) -> list[str]:
    """Warn where the best method's intervals hold the guess less often than chance allows."""
    trials, level = planned.settings["trials"], planned.settings["level"]
    least = float(stats.binom.ppf(MISSED_CHANCE, trials, level)) / trials
    best, warnings = planned.methods[0], []
    for epsilon in planned.epsilons:
        rows = [planned.row(epsilon, best, name) for name in planned.without]
        missed = [f"{r.parameter} {r.coverage:.0%}" for r in rows if r.coverage < least]
        if missed:
            warnings.append(
                f"At epsilon = {epsilon:g} intervals by {best} would hold the guess too "
                f"seldom: {', '.join(missed)} of the trials. Either clamping biases them, or the "
                "prior leaves the guess little room (where it is made from the bounds: "
                "narrower bounds, or a prior of the analyst's own, would mend that)."
            )
    return warnings


def _unconverged(shares: Mapping[tuple[float, str], float], trials: int) -> list[str]:
    """Say at which ε posteriors had not converged, whose widths are less sure."""
    return [
        f"At epsilon = {epsilon:g}, {round(share * trials)} of {trials} simulated posteriors by "
        f"{method} had not converged; widths there are less sure."
        for (epsilon, method), share in shares.items()
        if share > MAX_UNCONVERGED
    ]


def _private_bounds(planned: Plan, release: Release) -> list[str]:
    """Say what private bounds are counted as, and whether the budget can find them."""
    if not release.selections:
        return []
    columns, n = ", ".join(s.column for s in release.selections), planned.settings["n"]
    warnings = [
        f"Bounds of {columns} are to be found privately: the plan takes the whole range for them, "
        "and counts what the search costs. Widths are therefore far too large, unless the range is "
        "about that of the data. To see those of a search that finds the range, plan with the "
        f"range that you expect as public bounds{_less_the_search(release)}."
    ]
    for selection in release.selections:
        if selection.search is None:
            continue
        hidden = math.ceil(selection.search.hidden)
        if 2 * hidden > n:
            verdict = "which is hopeless: such a release is refused"
        elif selection.is_unsure(n):
            verdict = "and will be unsure: public knowledge of the range is worth more"
        else:
            verdict = "which is enough to find them"
        warnings.append(
            f"The search for the bounds of {selection.column!r} may miss by up to {hidden:,} of "
            f"{n:,} records at either end, {verdict}."
        )
    return warnings


def _less_the_search(release: Release) -> str:
    """Return which part of the budget is left when the search has ended."""
    if release.guarantee.rho is not None:
        return ""
    share = 1 - sum(s.cost for s in release.selections) / release.guarantee.epsilon
    return f", and {share:.0%} of each epsilon"


def _as_json(value: Any) -> Any:
    """Return a value whose numbers JSON knows: None where one is missing or not finite."""
    if isinstance(value, dict):
        return {name: _as_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

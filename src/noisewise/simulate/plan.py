"""What will analysts get? Simulated before any ε is spent, and without touching data.

One guessed truth, records of it clamped as the owner would, and for every ε the noise its release
would have; then the analyst's own methods, on all trials as one batch. All ε see the same records
and the same noise in other sizes, so that differences between them are not chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.diagnostics import Coverage, coverage
from noisewise.infer import METHODS
from noisewise.infer._bar import reporting
from noisewise.infer.expfam.assemble import prior_draws as column_prior
from noisewise.infer.expfam.observed import Interval
from noisewise.infer.linear.assemble import prior_draws as regression_prior
from noisewise.infer.linear.problem import Problem as Regression
from noisewise.simulate import expfam, guess, linear, templates
from noisewise.simulate.forecast import Plan, Row, Wish
from noisewise.simulate.trials import Report, Trials, run
from noisewise.simulate.warn import warnings_of

LEVEL = 0.95
HALVINGS = 6
FURTHEST = 64.0
"""How far beyond the grid a wanted width is looked for."""


@dataclass(frozen=True, eq=False)
class Scene:
    """The records of all trials, as sums: what the owner would have, and with nothing clamped."""

    problem: Any
    n: int
    truth: Any
    sums: np.ndarray
    free: np.ndarray
    told: Mapping[str, float]
    outside: Mapping[str, float]

    def trials(self, problem: Any, sums: np.ndarray, seed: int) -> Trials:
        """With that problem's noise on the sums."""
        rng = np.random.default_rng([seed, 1])
        if isinstance(self.truth, linear.Guess):
            return linear.from_guess(rng, problem, sums, self.truth, self.n)
        theta = np.tile(self.truth, (len(sums), 1))
        return expfam.noisy(rng, problem, sums, theta, self.n)


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
    progress: Report | bool | None = None,
) -> Plan:
    """Interval widths and coverage by ε and method.

    Args:
        at: a release's settings for an ε; its numbers are not looked at.
        n: number of records.
        epsilons: the grid.
        methods: of ``infer``; the best and ``naive`` unless named.
        guesses: what is believed of the data (``guess.py``); the rest follows from the bounds.
        prior: of the analysis, as for ``infer``.
        trials: simulated releases for every ε.
        seed: of the simulation.
        width: find the smallest ε whose mean interval is no wider.
        parameter: whose interval that is; the first unless named.
        progress: as for ``infer``.
    """
    if not epsilons or min(epsilons) <= 0:
        raise ArgumentError(f"epsilon: must be one or more numbers above zero, not {epsilons!r}")
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 10:
        raise ArgumentError(f"trials: must be a whole number of at least 10, not {trials!r}")
    grid = sorted(set(map(float, epsilons)))
    release = at(grid[-1])
    scene = _scene(_sized(release, prior, n), n, guesses or {}, trials, seed)
    known = METHODS[release.family]
    chosen = tuple(methods or (templates.usual(release)[0], "naive"))
    for method in chosen:
        if method not in known:
            raise ArgumentError(f"method: must be one of {', '.join(known)}, not {method!r}")

    def judged(epsilon: float, method: str) -> Coverage:
        problem = _sized(at(epsilon), prior, n)
        made = scene.trials(problem, scene.sums, seed)
        with reporting(progress, f"epsilon {epsilon:g} ({method})") as report:
            return coverage(run(made, method, seed, report).draws, made.truth, LEVEL)

    names = _names(scene)
    rows = [
        Row(epsilon, method, name, float(found.width[i]), float(found.share[i]))
        for epsilon in grid
        for method in chosen
        for found in (judged(epsilon, method),)
        for i, name in enumerate(names)
    ]
    calm = {kind: _noiseless(scene, release.family, kind, seed) for kind in ("free", "sums")}
    said = templates.settings(release, scene.problem)
    # Of one epsilon only, and there are several.
    said.pop("noise_scale")
    made = Plan(
        settings={**said, "n": n, "trials": trials,
                  "seed": seed, "epsilon": grid, "level": LEVEL},
        guess=scene.told,
        rows=tuple(rows),
        without=dict(zip(names, calm["free"].width.tolist(), strict=True)),
        before=_before(scene.problem, names),
        outside=scene.outside,
        warnings=(),
    )  # fmt: skip
    made = replace(made, warnings=warnings_of(made, release, names, calm["sums"].share))
    if width is None:
        return made
    place = names.index(_named(parameter, names))
    return replace(
        made, wish=_smallest(made, names[place], width, lambda e: judged(e, chosen[0]).width[place])
    )


def _sized(release: Release, prior: Any, n: int) -> Any:
    problem = templates.template(release, prior, None, None)
    return replace(problem, n=np.array([float(n)]))


def _scene(problem: Any, n: int, given: Mapping[str, float], trials: int, seed: int) -> Scene:
    rng = np.random.default_rng([seed, 0])
    if isinstance(problem, Regression):
        truth, told = guess.regression(problem, given)
        sums, free, outside = linear.sums_at(rng, problem, truth, n, trials)
        columns = dict(zip((*problem.x, problem.y), outside.tolist(), strict=True))
        return Scene(problem, n, truth, sums, free, told, columns)
    theta, told = guess.column(problem, given)
    many = np.tile(theta, (trials, 1))
    sums, share = expfam.sums_at(rng, problem, many, n)
    whole = replace(problem, interval=Interval(0.0, 0.0, "keep"))
    free, _ = expfam.sums_at(rng, whole, many, n)
    return Scene(problem, n, theta, sums, free, told, {problem.column: share})


def _names(scene: Scene) -> tuple[str, ...]:
    problem = scene.problem
    if isinstance(problem, Regression):
        return (*problem.x, "intercept", "sigma2")
    return tuple(problem.family.names)


def _noiseless(scene: Scene, family: str, kind: str, seed: int) -> Coverage:
    """The conjugate posterior of sums without noise: unclamped (``free``) or as the owner has."""
    regression = isinstance(scene.problem, Regression)
    tiny: dict[str, Any] = {"noise_scale": 1e-12, "noisy_n": False} if regression else {
        "scale": 1e-12, "counted": None}  # fmt: skip
    made = scene.trials(replace(scene.problem, **tiny), getattr(scene, kind), seed)
    return coverage(run(made, "naive", seed).draws, made.truth, LEVEL)


def _before(problem: Any, names: tuple[str, ...]) -> dict[str, float]:
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    if isinstance(problem, Regression):
        drawn = regression_prior(problem.response, names, 20_000)
    else:
        drawn = column_prior(problem.family, problem.prior, 20_000)
    return {name: float(np.diff(np.quantile(drawn[name], tails))[0]) for name in names}


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

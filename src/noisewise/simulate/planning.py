"""What will analysts get? Simulated before any ε is spent, and without touching data.

One guessed truth, records of it clamped as the owner would, and for every ε the noise its release
would have; then the analyst's own methods, on all trials as one batch. All ε see the same records
and the same noise in other sizes, so that differences between them are not chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.diagnostics import Coverage
from noisewise.inference.api import asked
from noisewise.inference.progress import reporting
from noisewise.models.base import Progress
from noisewise.simulate.plan_result import Plan, Row, Wish
from noisewise.simulate.plan_warnings import warnings_of
from noisewise.simulate.settings import choose_methods, settings_of, simulated
from noisewise.simulate.trials import covered

if TYPE_CHECKING:
    from noisewise.models.graphical_model import GraphicalOptions

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

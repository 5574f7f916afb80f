"""Is a method trustworthy here? Simulation-based calibration with a release's own settings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.diagnostics import coverage, ks, ranks, wider
from noisewise.inference.api import asked
from noisewise.inference.progress import reporting
from noisewise.models.base import Progress
from noisewise.simulate.check_result import LEVEL, Check, MethodCheck
from noisewise.simulate.settings import choose_methods, settings_of, simulated
from noisewise.simulate.trials import Outcome, Trials

if TYPE_CHECKING:
    from noisewise.models.graphical_model import GraphicalOptions

FEWEST_TRIALS = 50
"""With fewer, coverage cannot be told from chance (chosen)."""


def check(
    release: Release | str | os.PathLike[str],
    methods: Iterable[str] | None = None,
    *,
    prior: Any = None,
    x: str | Iterable[str] | None = None,
    y: str | None = None,
    trials: int = 200,
    seed: int = 0,
    progress: Progress | bool | None = None,
    **options: Unpack[GraphicalOptions],
) -> Check:
    """Simulate releases like this one, with truths from the prior, and see who finds them.

    Args:
        release: a release, or the path of its file; its n, ε, bounds and noise are taken, and its
            numbers are not looked at.
        methods: which to try; the usual ones of the family unless named.
        prior: of the analysis, as for ``infer``.
        x: covariates, if others than the owner named.
        y: response, likewise.
        trials: simulated releases for every method.
        seed: of the simulation.
        progress: as for ``infer``.
        options: of the model, as for ``infer``.

    Returns:
        Verdicts on every method, and which to use.

    Example:
        >>> import noisewise as nw
        >>> release = nw.release.exponential_family(
        ...     nw.release.Blank(1000), column="visits", family="poisson", bounds=(0, 20),
        ...     epsilon=1.0,
        ... )
        >>> nw.check(release, ["exact"], trials=50).recommended
        'exact'
    """
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < FEWEST_TRIALS:
        raise ArgumentError(
            f"trials: must be a whole number of at least {FEWEST_TRIALS}, not {trials!r}"
        )
    release = release if isinstance(release, Release) else Release.load(release)
    simulator, problem = simulated(release, asked(prior, x=x, y=y, **options))
    chosen = choose_methods(release, methods, simulator.usual_methods(release))
    made = simulator.from_prior(np.random.default_rng([seed, trials]), problem, trials)
    outcomes: dict[str, Outcome] = {}
    for method in dict.fromkeys((*simulator.yardstick(chosen), *chosen)):
        with reporting(progress, f"{trials} trials ({method})") as report:
            outcomes[method] = simulator.run(made, method, seed, report)
    reference = outcomes.get(simulator.reference_method or "")
    checked = [_judged(method, made, outcomes[method], reference) for method in chosen]
    settings = {**settings_of(release, problem, simulator), "trials": trials, "seed": seed}
    return Check(settings, tuple(checked))


def _judged(
    method: str, made: Trials[Any], outcome: Outcome, reference: Outcome | None
) -> MethodCheck:
    # A trial without an answer is one that did not converge; it has no rank.
    finite = np.isfinite(outcome.draws).all(axis=(1, 2))
    if not finite.any():
        raise ArgumentError(f"method: {method!r} found no finite answer in any trial")
    draws, truth = outcome.draws[finite], made.truth[finite]
    u = ranks(draws, truth)
    covered = coverage(draws, truth, LEVEL)
    apart = None
    if reference is not None and reference is not outcome:
        apart = wider(draws, reference.draws[finite], LEVEL)
    return MethodCheck(
        method, made.names,
        tuple(ks(column).p_value for column in u.T),
        tuple(float(s) for s in covered.share),
        tuple(float(w) for w in covered.width),
        float(outcome.unconverged),
        tuple(tuple(round(float(v), 5) for v in column) for column in u.T),
        None if apart is None else tuple(apart.mean.tolist()),
        None if apart is None else tuple(apart.error.tolist()),
    )  # fmt: skip

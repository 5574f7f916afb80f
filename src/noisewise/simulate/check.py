"""Is a method trustworthy here? Simulation-based calibration with a release's own settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.diagnostics import coverage, ks, ranks
from noisewise.infer._bar import reporting
from noisewise.simulate import templates
from noisewise.simulate.findings import LEVEL, Check, MethodCheck
from noisewise.simulate.trials import Report, run


def check(
    release: Release,
    methods: Iterable[str] | None = None,
    *,
    prior: Any = None,
    x: str | Iterable[str] | None = None,
    y: str | None = None,
    trials: int = 200,
    seed: int = 0,
    progress: Report | bool | None = None,
) -> Check:
    """Draw truths from the prior, simulate releases like this one, and see who finds them.

    Args:
        release: whose n, ε, bounds and noise are taken; its numbers are not looked at.
        methods: which to try; the usual ones of the family unless named.
        prior: of the analysis, as for ``infer``.
        x: covariates, if others than the owner named.
        y: response, likewise.
        trials: simulated releases for every method.
        seed: of the simulation.
        progress: as for ``infer``.
    """
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 50:
        raise ArgumentError(f"trials: must be a whole number of at least 50, not {trials!r}")
    template = templates.template(release, prior, x, y)
    chosen = templates.chosen(release, methods, templates.usual(release))
    made = templates.from_prior(np.random.default_rng([seed, trials]), template, trials)
    found = []
    for method in chosen:
        with reporting(progress, f"{trials} trials ({method})") as report:
            outcome = run(made, method, seed, report)
        found.append(_judged(method, made.names, outcome.draws, made.truth, outcome.unconverged))
    settings = {**templates.settings(release, template), "trials": trials, "seed": seed}
    return Check(settings, tuple(found))


def _judged(
    method: str, names: tuple[str, ...], draws: np.ndarray, truth: np.ndarray, unconverged: float
) -> MethodCheck:
    # A trial without an answer is one that did not converge; it has no rank.
    finite = np.isfinite(draws).all(axis=(1, 2))
    if not finite.any():
        raise ArgumentError(f"method: {method!r} found no finite answer in any trial")
    draws, truth = draws[finite], truth[finite]
    u = ranks(draws, truth)
    covered = coverage(draws, truth, LEVEL)
    return MethodCheck(
        method, names,
        tuple(ks(column).p_value for column in u.T),
        tuple(float(s) for s in covered.share),
        tuple(float(w) for w in covered.width),
        float(unconverged),
        tuple(tuple(round(float(v), 5) for v in column) for column in u.T),
    )  # fmt: skip

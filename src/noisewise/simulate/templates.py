"""A release's settings as a problem that simulators fill with trials, family by family."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.infer.expfam import best
from noisewise.infer.expfam import problem as of_family
from noisewise.infer.linear.problem import Problem as Regression
from noisewise.infer.linear.problem import problem as of_regression
from noisewise.simulate import expfam, linear
from noisewise.simulate.trials import Trials

REFUSED = {
    "graphical-model": "graphical models are checked in docs/evidence-graphical.md, with code of "
    "its own: a fit is seconds, and a check needs hundreds",
    "posterior-probability": "a partition release is its own answer; there is no method to choose",
    "posterior-quantile": "a partition release is its own answer; there is no method to choose",
}


def template(release: Release, prior: Any, x: str | Iterable[str] | None, y: str | None) -> Any:
    """The problem of this release; of several groups, one of median size."""
    if release.family in REFUSED:
        raise ArgumentError(f"release: {REFUSED[release.family]}")
    if release.family == "linear-regression":
        found: Any = of_regression(release, prior, x, y)
    else:
        if x is not None or y is not None:
            raise ArgumentError("x, y: go with linear regression; this release has one column")
        found = of_family(release, prior)
    return _one(found)


def _one(problem: Any) -> Any:
    middle = float(np.median(problem.n))
    return replace(problem, n=np.array([middle]))


def from_prior(rng: np.random.Generator, problem: Any, trials: int) -> Trials:
    """Whatever the family."""
    if isinstance(problem, Regression):
        return linear.from_prior(rng, problem, trials)
    return expfam.from_prior(rng, problem, trials)


def usual(release: Release) -> tuple[str, ...]:
    """Methods worth trying, best first."""
    if release.family == "linear-regression":
        return ("exact", "gibbs-update", "naive")
    first = best(release)
    return (first, "naive") if first == "gibbs" else ("exact", "gibbs", "naive")


def settings(release: Release, problem: Any) -> dict[str, Any]:
    """What was simulated, for people and files."""
    regression = isinstance(problem, Regression)
    return {
        "family": release.family,
        "what": f"{problem.y} on {', '.join(problem.x)}" if regression else problem.column,
        "n": round(float(problem.n[0])),
        "epsilon": release.guarantee.epsilon,
        "mechanism": problem.mechanism,
        "noise_scale": problem.noise_scale if regression else problem.scale,
        "bounds": {c: [b.lower, b.upper] for c, b in release.bounds.items()},
        "prior": (
            f"response {problem.response}; covariates {problem.covariates}"
            if regression
            else str(problem.prior)
        ),
    }

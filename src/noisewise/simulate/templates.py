"""A release's settings as a problem that simulators fill with trials, family by family."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.inference import METHODS
from noisewise.models.exponential_family import simulate as expfam
from noisewise.models.exponential_family.analyst import best
from noisewise.models.exponential_family.analyst import problem as of_family
from noisewise.models.exponential_family.problem import FamilyProblem as Column
from noisewise.models.linear_regression import simulate as linear
from noisewise.models.linear_regression.problem import Problem as Regression
from noisewise.models.linear_regression.problem import problem as of_regression
from noisewise.simulate.trials import Trials

PARTITION = "a partition release is its own answer; there is no method to choose"


def template(
    release: Release,
    prior: Any,
    x: str | Iterable[str] | None,
    y: str | None,
    n: int | None = None,
) -> Any:
    """The problem of this release with n records; unless told, as many as its median group."""
    if release.family.startswith("posterior-"):
        raise ArgumentError(f"release: {PARTITION}")
    if release.family == "linear-regression":
        found: Any = of_regression(release, prior, x, y)
        return replace(found, n=np.array([_size(found.n, n)]))
    if x is not None or y is not None:
        raise ArgumentError("x, y: go with linear regression; this release has none")
    if release.family == "exponential-family":
        found = of_family(release, prior)
        return replace(found, n=np.array([_size(found.n, n)]))
    return _tables(release, prior, n)


def _size(sizes: np.ndarray, n: int | None) -> float:
    return float(np.median(sizes)) if n is None else float(n)


def _tables(release: Release, prior: Any, n: int | None) -> Any:
    from noisewise.models.graphical_model.problem import problems

    if prior is not None:
        raise ArgumentError("prior: does not go with a graphical model")
    found = problems(release)
    return replace(found[0], n=_size(np.array([p.n for p in found]), n))


def from_prior(rng: np.random.Generator, problem: Any, trials: int) -> Trials:
    """Whatever the family."""
    if isinstance(problem, Regression):
        return linear.from_prior(rng, problem, trials)
    if isinstance(problem, Column):
        return expfam.from_prior(rng, problem, trials)
    from noisewise.models.graphical_model import simulate as graphical

    return graphical.from_prior(rng, problem, trials)


def usual(release: Release) -> tuple[str, ...]:
    """Methods worth trying, best first."""
    if release.family == "linear-regression":
        return ("exact", "gibbs-update", "naive")
    if release.family == "graphical-model":
        return ("bayes",)
    first = best(release)
    return (first, "naive") if first == "gibbs" else ("exact", "gibbs", "naive")


def yardstick(release: Release, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The exact method, where running it beside those wanted costs little; or nothing."""
    quick = release.family == "linear-regression" and any(m != "exact" for m in wanted)
    return ("exact",) if quick else ()


def planned(release: Release) -> tuple[str, ...]:
    """Of these the best, and for comparison the one that ignores the noise."""
    known = usual(release)
    return tuple(dict.fromkeys((known[0], known[-1])))


def chosen(
    release: Release, methods: Iterable[str] | None, default: tuple[str, ...]
) -> tuple[str, ...]:
    """The methods asked for, if they exist and give intervals."""
    known = ("bayes",) if release.family == "graphical-model" else tuple(METHODS[release.family])
    wanted = default if methods is None else tuple(methods)
    for method in wanted:
        if method not in known:
            raise ArgumentError(f"method: must be one of {', '.join(known)}, not {method!r}")
    if not wanted:
        raise ArgumentError("method: name at least one, or leave it out")
    return wanted


def settings(release: Release, problem: Any) -> dict[str, Any]:
    """What was simulated, for people and files."""
    said: dict[str, Any] = {
        "family": release.family,
        "what": _what(problem),
        "n": round(float(np.ravel(problem.n)[0])),
        "epsilon": release.guarantee.epsilon,
        "mechanism": problem.mechanism,
        "noise_scale": (problem.noise_scale if isinstance(problem, Regression) else problem.scale),
    }
    if release.bounds:
        said["bounds"] = {c: [b.lower, b.upper] for c, b in release.bounds.items()}
    if isinstance(problem, Regression):
        said["prior"] = f"response {problem.response}; covariates {problem.covariates}"
    elif isinstance(problem, Column):
        said["prior"] = str(problem.prior)
    return said


def _what(problem: Any) -> str:
    if isinstance(problem, Regression):
        return f"{problem.y} on {', '.join(problem.x)}"
    if isinstance(problem, Column):
        return str(problem.column)
    return f"tables of {', '.join(problem.model.variables)}"

"""What is believed of the data before any are seen: by the planner's word, or by a plain default.

Defaults follow from the public bounds alone. Regression: every column fills its bounds with three
standard deviations either way, and the covariates together explain half of the response's variance.
One column: the middle of the default prior, which is made from the bounds.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.models.exponential_family.posterior_draws import prior_draws
from noisewise.models.exponential_family.problem import FamilyProblem as Column
from noisewise.models.linear_regression.problem import Problem as Regression
from noisewise.models.linear_regression.simulate import Guess

FILLED = 3.0
EXPLAINED = 0.5


def regression(problem: Regression, given: Mapping[str, float]) -> tuple[Guess, dict[str, float]]:
    """From words such as ``pir``, ``intercept``, ``sigma``, ``mean:pir`` and ``sd:pir``."""
    x, units = problem.x, problem.units
    half, centre = units.half, units.centre
    known = {
        **{f"mean:{c}": float(centre[i]) for i, c in enumerate(x)},
        **{f"sd:{c}": float(half[i]) / FILLED for i, c in enumerate(x)},
    }
    allowed = (*x, "intercept", "sigma", *known)
    _only(given, allowed)
    known.update({k: v for k, v in given.items() if k in known})
    spread = np.array([known[f"sd:{c}"] for c in x])
    mean = np.array([known[f"mean:{c}"] for c in x])
    deviation = float(half[-1]) / FILLED
    slope = deviation * np.sqrt(EXPLAINED / len(x)) / spread
    known.update({c: float(given.get(c, slope[i])) for i, c in enumerate(x)})
    slopes = np.array([known[c] for c in x])
    known["intercept"] = float(given.get("intercept", centre[-1] - slopes @ mean))
    known["sigma"] = float(given.get("sigma", deviation * np.sqrt(1 - EXPLAINED)))
    for name in ("sigma", *(f"sd:{c}" for c in x)):
        if not known[name] > 0:
            raise ArgumentError(f"guess: {name} must be above zero, not {known[name]!r}")
    theta = np.append(slopes, known["intercept"])
    return Guess(theta, known["sigma"], mean, np.diag(spread**2)), known


def column(problem: Column, given: Mapping[str, float]) -> tuple[np.ndarray, dict[str, float]]:
    """The family's own parameters, by name; all of them, or none."""
    names = problem.family.names
    _only(given, names)
    if given and set(given) != set(names):
        absent = next(n for n in names if n not in given)
        raise ArgumentError(f"guess: {absent} is missing; give all of {', '.join(names)}, or none")
    if given:
        theta = np.array([float(given[n]) for n in names])
    else:
        drawn = prior_draws(problem.family, problem.prior, 4001)
        theta = np.array([float(np.median(drawn[n])) for n in names])
        if len(getattr(problem.family, "levels", ())):
            theta = theta / theta.sum()
    _possible(problem, theta, names)
    return theta, dict(zip(names, theta.tolist(), strict=True))


def _possible(problem: Column, theta: np.ndarray, names: tuple[str, ...]) -> None:
    levels = bool(getattr(problem.family, "levels", ()))
    domains = problem.family.domains * (len(names) if levels else 1)
    ends = {"unit": (0.0, 1.0), "positive": (0.0, np.inf), "real": (-np.inf, np.inf)}
    words = {"unit": "between 0 and 1", "positive": "above zero", "real": "a number"}
    for name, value, domain in zip(names, theta, domains, strict=True):
        low, high = ends[domain]
        if not low < value < high:
            raise ArgumentError(f"guess: {name} must be {words[domain]}, not {float(value)!r}")
    if levels and abs(theta.sum() - 1) > 1e-6:
        raise ArgumentError(f"guess: the probabilities must add up to 1, not {theta.sum():g}")


def _only(given: Mapping[str, float], allowed: tuple[str, ...]) -> None:
    for name in given:
        if name not in allowed:
            raise ArgumentError(f"guess: {name!r} is unknown; known are {', '.join(allowed)}")

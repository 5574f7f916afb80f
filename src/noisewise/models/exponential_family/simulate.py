"""Simulated one-column releases with a release's own settings: n, interval, noise and prior.

A plan's guess is the middle of the default prior, which is made from the bounds, unless given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.models.base import Progress
from noisewise.models.exponential_family import pooled_simulate
from noisewise.models.exponential_family.analyst import ANALYST
from noisewise.models.exponential_family.families import Categorical
from noisewise.models.exponential_family.family import draw_parameters
from noisewise.models.exponential_family.pooled_population import PooledProblem
from noisewise.models.exponential_family.posterior import prior_draws
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.simulated_sums import noisy, sums_at
from noisewise.models.exponential_family.truncation import Interval
from noisewise.simulate.pooled_trials import PLANNED_TRIALS, PooledTrials
from noisewise.simulate.trials import (
    PRIOR_DRAWS,
    QUIET,
    BatchSimulator,
    Outcome,
    Scene,
    Trials,
    check_guesses,
    interval_widths,
    judged_without_noise,
)

AnyProblem = FamilyProblem | PooledProblem
"""Groups one by one, or pooled."""
GUESS_DRAWS = 4001
"""Draws whose median is the guess where none is given (chosen; odd, so that it is one of them)."""


def guessed(
    problem: FamilyProblem, given: Mapping[str, float]
) -> tuple[np.ndarray, dict[str, float]]:
    """Return the family's own parameters; all are given by name, or none."""
    names = problem.family.names
    check_guesses(given, names)
    if given and set(given) != set(names):
        absent = next(n for n in names if n not in given)
        raise ArgumentError(f"guess: {absent} is missing; give all of {', '.join(names)}, or none")
    if given:
        theta = np.array([float(given[n]) for n in names])
    else:
        drawn = prior_draws(problem.family, problem.prior, GUESS_DRAWS)
        theta = np.array([float(np.median(drawn[n])) for n in names])
        if isinstance(problem.family, Categorical):
            theta = theta / theta.sum()
    _check_domains(problem, theta, names)
    return theta, dict(zip(names, theta.tolist(), strict=True))


def _check_domains(problem: FamilyProblem, theta: np.ndarray, names: tuple[str, ...]) -> None:
    """Raise an ArgumentError where a guess is outside its parameter's domain."""
    levels = isinstance(problem.family, Categorical)
    domains = problem.family.domains * (len(names) if levels else 1)
    ends = {"unit": (0.0, 1.0), "positive": (0.0, np.inf), "real": (-np.inf, np.inf)}
    words = {"unit": "between 0 and 1", "positive": "above zero", "real": "a number"}
    for name, value, domain in zip(names, theta, domains, strict=True):
        low, high = ends[domain]
        if not low < value < high:
            raise ArgumentError(f"guess: {name} must be {words[domain]}, not {float(value)!r}")
    if levels and abs(theta.sum() - 1) > 1e-6:
        raise ArgumentError(f"guess: the probabilities must add up to 1, not {theta.sum():g}")


@dataclass(frozen=True, eq=False)
class FamilyScene:
    """Sums of one column inside its interval (``sums``), and of all its records (``free``)."""

    problem: FamilyProblem
    n: int
    theta: np.ndarray
    sums: np.ndarray
    free: np.ndarray
    guess: Mapping[str, float]
    outside: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the family's own parameters."""
        return tuple(self.problem.family.names)

    def trials(self, problem: FamilyProblem, seed: int) -> Trials[FamilyProblem]:
        """Return trials with that problem's noise on the sums."""
        rng = np.random.default_rng([seed, 1])
        many = np.tile(self.theta, (len(self.sums), 1))
        return noisy(rng, problem, self.sums, many, self.n)

    def width_without_privacy(self, seed: int, level: float) -> np.ndarray:
        """Return mean widths of the conjugate posterior of all records."""
        quiet = replace(self.problem, scale=QUIET, counted=None)
        trials = replace(self, sums=self.free).trials(quiet, seed)
        return judged_without_noise(ANALYST, trials, seed, level).width

    def prior_width(self, level: float) -> dict[str, float]:
        """Return the widths of the prior's own intervals."""
        return interval_widths(
            prior_draws(self.problem.family, self.problem.prior, PRIOR_DRAWS), level
        )


class FamilySimulator(BatchSimulator[Any]):
    """Simulated one-column releases for ``check`` and ``plan``."""

    analyst = ANALYST
    reference_method = "exact"

    def usual_methods(self, release: Release) -> tuple[str, ...]:
        """Return the methods worth trying, best first."""
        best = ANALYST.default_method(release)
        return (best, "naive") if best == "gibbs" else ("exact", "gibbs", "naive")

    def template(self, problem: AnyProblem, n: int | None) -> AnyProblem:
        """Return the problem with one group of n records; pooled groups stay together."""
        if isinstance(problem, PooledProblem):
            return pooled_simulate.with_sizes(problem, n)
        pooled: FamilyProblem = super().template(problem, n)
        return pooled

    def planned_trials(self, problem: AnyProblem) -> int:
        """Return fewer trials where groups are pooled."""
        pooled = isinstance(problem, PooledProblem)
        return PLANNED_TRIALS if pooled else super().planned_trials(problem)

    def run(
        self, trials: Trials[Any], method: str, seed: int, progress: Progress | None = None
    ) -> Outcome:
        """Infer all trials as the groups of one batch; of pooled groups one after the other."""
        if isinstance(trials, PooledTrials):
            return pooled_simulate.run(trials, seed, progress)
        return super().run(trials, method, seed, progress)

    def from_prior(self, rng: np.random.Generator, problem: AnyProblem, trials: int) -> Trials[Any]:
        """Draw parameters from the prior, records from the family, and the release's noise."""
        if isinstance(problem, PooledProblem):
            return pooled_simulate.from_prior(rng, problem, trials)
        key = jax.random.key(int(rng.integers(2**31)))
        theta = np.asarray(draw_parameters(problem.family, key, problem.conjugate.repeated(trials)))
        n = round(float(problem.n[0]))
        return noisy(rng, problem, sums_at(rng, problem, theta, n)[0], theta, n)

    def scene(
        self, problem: AnyProblem, n: int, guesses: Mapping[str, float], trials: int, seed: int
    ) -> Scene[Any]:
        """Make records at one guessed truth, for every trial of a plan."""
        if isinstance(problem, PooledProblem):
            return pooled_simulate.scene(problem, n, guesses, trials, seed)
        rng = np.random.default_rng([seed, 0])
        theta, guess = guessed(problem, guesses)
        many = np.tile(theta, (trials, 1))
        sums, share = sums_at(rng, problem, many, n)
        uncut = replace(problem, interval=Interval(0.0, 0.0, "keep"))
        free, _ = sums_at(rng, uncut, many, n)
        return FamilyScene(problem, n, theta, sums, free, guess, {problem.column: share})

    def settings(self, problem: AnyProblem) -> dict[str, object]:
        """Return what is simulated, for people and files."""
        what, prior = "", ""
        if isinstance(problem, PooledProblem):
            what, prior = f", {len(problem.groups.n)} groups pooled", str(problem.prior)
            problem = replace(problem.groups, n=np.array([problem.groups.n.sum()]))
        return {
            "what": problem.column + what,
            "n": round(float(problem.n[0])),
            "mechanism": problem.mechanism,
            "noise_scale": problem.scale,
            "prior": prior or str(problem.prior),
        }


SIMULATOR = FamilySimulator()
"""The simulator of the model."""

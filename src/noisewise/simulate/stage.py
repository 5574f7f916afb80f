"""The records of a plan, family by family, as sums: what the owner would have before any noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from noisewise.diagnostics import Coverage, coverage
from noisewise.models.exponential_family import simulate as expfam
from noisewise.models.exponential_family.posterior_draws import prior_draws as column_prior
from noisewise.models.exponential_family.problem import FamilyProblem as Column
from noisewise.models.exponential_family.truncation import Interval
from noisewise.models.linear_regression import simulate as linear
from noisewise.models.linear_regression.assemble import prior_draws as regression_prior
from noisewise.models.linear_regression.problem import Problem as Regression
from noisewise.simulate import guess
from noisewise.simulate.trials import Trials, run

PRIOR_DRAWS = 20_000


class Stage(Protocol):
    """``told``: the guess in words; ``outside``: the share of records outside the bounds."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parameters."""

    @property
    def told(self) -> Mapping[str, float]:
        """The guess, name by name."""

    @property
    def outside(self) -> Mapping[str, float]:
        """By column."""

    def trials(self, problem: Any, seed: int) -> Trials:
        """With that problem's noise on the sums."""

    def without(self, seed: int, level: float) -> np.ndarray:
        """Mean widths without privacy: neither noise nor clamping."""

    def clamped(self, seed: int, level: float) -> np.ndarray:
        """Coverage without noise, of the sums as the owner has them."""

    def before(self, level: float) -> dict[str, float]:
        """Widths of the prior's own intervals."""


@dataclass(frozen=True, eq=False)
class RegressionStage:
    """Sums of clamped records, and of the same records unclamped."""

    problem: Regression
    n: int
    truth: linear.Guess
    sums: np.ndarray
    free: np.ndarray
    told: Mapping[str, float]
    outside: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """Slopes, intercept, error variance."""
        return (*self.problem.x, "intercept", "sigma2")

    def trials(self, problem: Regression, seed: int) -> Trials:
        """With that problem's noise on the sums."""
        return self._with(problem, self.sums, seed)

    def _with(self, problem: Regression, sums: np.ndarray, seed: int) -> Trials:
        rng = np.random.default_rng([seed, 1])
        return linear.from_guess(rng, problem, sums, self.truth, self.n)

    def _calm(self, sums: np.ndarray, seed: int, level: float) -> Coverage:
        quiet = replace(self.problem, noise_scale=1e-12, noisy_n=False)
        return _conjugate(self._with(quiet, sums, seed), seed, level)

    def without(self, seed: int, level: float) -> np.ndarray:
        """The conjugate posterior of unclamped records."""
        return self._calm(self.free, seed, level).width

    def clamped(self, seed: int, level: float) -> np.ndarray:
        """The conjugate posterior of clamped ones: does it still hold the guess?"""
        return self._calm(self.sums, seed, level).share

    def before(self, level: float) -> dict[str, float]:
        """Of the response's prior."""
        return _widths(regression_prior(self.problem.response, self.names, PRIOR_DRAWS), level)


@dataclass(frozen=True, eq=False)
class ColumnStage:
    """Sums of one column inside its interval, and of all its records."""

    problem: Column
    n: int
    theta: np.ndarray
    sums: np.ndarray
    free: np.ndarray
    told: Mapping[str, float]
    outside: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """The family's own."""
        return tuple(self.problem.family.names)

    def trials(self, problem: Column, seed: int) -> Trials:
        """With that problem's noise on the sums."""
        rng = np.random.default_rng([seed, 1])
        many = np.tile(self.theta, (len(self.sums), 1))
        return expfam.noisy(rng, problem, self.sums, many, self.n)

    def without(self, seed: int, level: float) -> np.ndarray:
        """The conjugate posterior of all records."""
        quiet = replace(self.problem, scale=1e-12, counted=None)
        made = replace(self, sums=self.free).trials(quiet, seed)
        return _conjugate(made, seed, level).width

    def clamped(self, seed: int, level: float) -> np.ndarray:
        """The model knows of the interval: nothing is lost but width."""
        return np.full(len(self.names), level)

    def before(self, level: float) -> dict[str, float]:
        """Of the prior."""
        return _widths(column_prior(self.problem.family, self.problem.prior, PRIOR_DRAWS), level)


def stage(problem: Any, n: int, given: Mapping[str, float], trials: int, seed: int) -> Stage:
    """Records at the guess, for every trial."""
    rng = np.random.default_rng([seed, 0])
    if isinstance(problem, Regression):
        truth, told = guess.regression(problem, given)
        sums, free, outside = linear.sums_at(rng, problem, truth, n, trials)
        columns = dict(zip((*problem.x, problem.y), outside.tolist(), strict=True))
        return RegressionStage(problem, n, truth, sums, free, told, columns)
    if isinstance(problem, Column):
        theta, told = guess.column(problem, given)
        many = np.tile(theta, (trials, 1))
        sums, share = expfam.sums_at(rng, problem, many, n)
        whole = replace(problem, interval=Interval(0.0, 0.0, "keep"))
        free, _ = expfam.sums_at(rng, whole, many, n)
        return ColumnStage(problem, n, theta, sums, free, told, {problem.column: share})
    from noisewise.models.graphical_model.simulate import stage as of_tables

    return of_tables(problem, given, trials, seed)


def _conjugate(made: Trials, seed: int, level: float) -> Coverage:
    return coverage(run(made, "naive", seed).draws, made.truth, level)


def _widths(drawn: Mapping[str, np.ndarray], level: float) -> dict[str, float]:
    tails = [(1 - level) / 2, (1 + level) / 2]
    return {name: float(np.diff(np.quantile(v, tails))[0]) for name, v in drawn.items()}

"""Simulated regressions with factors, for ``check`` and ``plan``.

A plan makes records at one guessed truth, every column by its own law (``column_laws.py``), clamps
and sums them as the owner would, and adds the noise of a release. Every trial is then inferred as
an analyst would; since each takes seconds there are fewer trials than for other models, and widths
differ little from one to the next. Widths without privacy are those of least squares.

Unless guesses say otherwise, main effects share half of the response's variance evenly (effects of
a factor's levels are evenly spaced), and products and interactions have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from noisewise.artifact import ArgumentError, Bounds
from noisewise.diagnostics import Coverage
from noisewise.formula import DesignColumn
from noisewise.models.linear_regression.column_laws import (
    ColumnLaw,
    factor_law,
    numeric_law,
    separated,
)
from noisewise.models.linear_regression.design_matrix import design_matrix
from noisewise.models.linear_regression.factor_problem import FactorProblem, noisy_sizes
from noisewise.models.linear_regression.factor_records import boxed_columns, sums_within_cells
from noisewise.simulate.trials import CELLS, Trials, check_guesses, noise

EXPLAINED = 0.5
"""Share of the response's variance that the main effects are taken to explain (chosen)."""
SAMPLE = 20_000
"""Records behind the mean of the design, from which the intercept follows (chosen)."""
TRIALS, TRIALS_OF_MANY = 12, 3
"""Trials of a plan, and those with many columns, each of which takes minutes (chosen)."""
MANY_COLUMNS = 20
"""Columns of a design that are many (chosen)."""


@dataclass(frozen=True, eq=False)
class FactorGuess:
    """One truth: laws of the table's columns, coefficients of the design, error deviation."""

    laws: Mapping[str, ColumnLaw]
    theta: np.ndarray
    sigma: float

    def columns(self, rng: np.random.Generator, shape: tuple[int, int]) -> dict[str, np.ndarray]:
        """Return records (trial, record) of all columns but the response."""
        return {name: law.quantile(rng.standard_normal(shape)) for name, law in self.laws.items()}


def planned_trials(problem: FactorProblem) -> int:
    """Return the trials of a plan, unless their number is given."""
    return TRIALS if len(problem.design) <= MANY_COLUMNS else TRIALS_OF_MANY


def table_bounds(problem: FactorProblem) -> dict[str, Bounds]:
    """Return the bounds of the table's numeric columns."""
    numeric = problem.statistic.numeric
    bounds = {c[0]: b for c, b in zip(numeric, problem.bounds, strict=True) if len(c) == 1}
    for column in (c for product in numeric for c in product if c not in bounds):
        raise ArgumentError(
            f"formula: {column} stands in products only, so a plan does not know how it is "
            f"distributed; add {column} as a term of its own"
        )
    return bounds


def guessed(
    problem: FactorProblem, given: Mapping[str, Any]
) -> tuple[FactorGuess, dict[str, float]]:
    """Return the truth from guesses of columns, coefficients, ``intercept`` and ``sigma``."""
    bounds = table_bounds(problem)
    about, numbers = separated(given, (*bounds, *problem.levels))
    covariates = [c for c in bounds if c != problem.y]
    moments = [f"{m}:{c}" for c in covariates for m in ("mean", "sd")]
    check_guesses(numbers, (*problem.x, "intercept", "sigma", *moments))
    laws = {
        c: numeric_law(c, bounds[c], about.get(c), numbers.get(f"mean:{c}"), numbers.get(f"sd:{c}"))
        for c in covariates
    }
    known = {f"{m}:{c}": float(getattr(laws[c], m)) for c in covariates for m in ("mean", "sd")}
    for factor, levels in problem.levels.items():
        laws[factor] = factor_law(factor, levels, about.get(factor))
        shares = zip(levels, laws[factor].shares, strict=True)
        known |= {f"{factor}={level}": share for level, share in shares}
    response = numeric_law(problem.y, bounds[problem.y], about.get(problem.y), None, None)
    default = _default_effects(problem, laws, response.sd)
    known |= {c: float(numbers.get(c, default[c])) for c in problem.x}
    slopes = np.array([known[c] for c in problem.x])
    records = FactorGuess(laws, slopes, 0.0).columns(np.random.default_rng(0), (1, SAMPLE))
    mean = _design(problem.design, records)[0, :, :-1].mean(axis=0)
    known["intercept"] = float(numbers.get("intercept", response.mean - mean @ slopes))
    known["sigma"] = float(numbers.get("sigma", response.sd * np.sqrt(1 - EXPLAINED)))
    if not known["sigma"] > 0:
        raise ArgumentError(f"guess: sigma must be above zero, not {known['sigma']!r}")
    return FactorGuess(laws, np.append(slopes, known["intercept"]), known["sigma"]), known


def _default_effects(
    problem: FactorProblem, laws: Mapping[str, ColumnLaw], deviation: float
) -> dict[str, float]:
    """Return coefficients of which main effects share the variance that is explained."""
    main = {
        c.term for c in problem.design[:-1] if len(c.numeric) + len({f for f, _ in c.levels}) == 1
    }
    each = deviation * np.sqrt(EXPLAINED / max(1, len(main)))
    effects: dict[str, float] = {}
    for column in problem.design[:-1]:
        effects[column.name] = 0.0
        if column.term not in main:
            continue
        if column.numeric:
            effects[column.name] = float(each / laws[column.numeric[0]].sd)
        else:
            ((factor, level),) = column.levels
            coded = {dict(c.levels)[factor] for c in problem.design if c.term == column.term}
            reference = min(set(range(len(problem.levels[factor]))) - coded)
            spread = laws[factor].sd or 1.0
            effects[column.name] = float(each * (level - reference) / spread)
    return effects


def _design(design: tuple[DesignColumn, ...], columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the design (trial, record, column)."""
    trials, size = next(iter(columns.values())).shape
    flat = {name: column.ravel() for name, column in columns.items()}
    return design_matrix(design, flat, trials * size).reshape(trials, size, len(design))


@dataclass(frozen=True, eq=False)
class FactorScene:
    """Sums of clamped records, and least squares of the records as they are and as clamped.

    ``plain`` and ``clamped`` are Gram matrices (trial, column, column), the response last.
    """

    problem: FactorProblem
    n: int
    truth: FactorGuess
    sums: np.ndarray
    plain: np.ndarray
    clamped: np.ndarray
    guess: Mapping[str, float]
    outside: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the design, the intercept, the error variance."""
        return (*self.problem.x, "intercept", "sigma2")

    def trials(self, problem: FactorProblem, seed: int) -> Trials[FactorProblem]:
        """Return trials with that problem's noise on the sums."""
        truth = np.append(self.truth.theta, self.truth.sigma**2)
        rng = np.random.default_rng([seed, 1])
        return noisy_trials(rng, problem, self.sums, np.tile(truth, (len(self.sums), 1)), self.n)

    def _least_squares(self, gram: np.ndarray, level: float) -> Coverage:
        """Return widths and coverage of the intervals of least squares."""
        inverse = np.linalg.inv(gram[:, :-1, :-1])
        cross = gram[:, :-1, -1]
        theta = np.einsum("tij,tj->ti", inverse, cross)
        free = self.n - theta.shape[1]
        variance = (gram[:, -1, -1] - np.einsum("ti,ti->t", theta, cross)) / free
        error = np.sqrt(variance[:, None] * np.diagonal(inverse, axis1=1, axis2=2))
        reach = float(stats.t.ppf((1 + level) / 2, free))
        estimate = np.column_stack([theta, variance])
        half = reach * np.column_stack([error, variance * np.sqrt(2 / free)])
        truth = np.append(self.truth.theta, self.truth.sigma**2)
        held = np.abs(estimate - truth) <= half
        return Coverage(level, held.mean(axis=0), 2 * half.mean(axis=0), len(held))

    def width_without_privacy(self, seed: int, level: float) -> np.ndarray:
        """Return mean widths of least squares of the records as they are."""
        return np.asarray(self._least_squares(self.plain, level).width)

    def coverage_without_noise(self, seed: int, level: float) -> np.ndarray:
        """Return how often intervals of least squares of clamped records hold the guess."""
        return np.asarray(self._least_squares(self.clamped, level).share)

    def prior_width(self, level: float) -> dict[str, float]:
        """Return what bounds alone say: the prior is learnt, and has no width of its own."""
        bounds = dict(zip(self.problem.statistic.numeric, self.problem.bounds, strict=True))
        reach = 2 * bounds[(self.problem.y,)].half_width
        width = {
            c.name: 2 * reach / (2 * bounds[c.numeric].half_width if c.numeric else 1.0)
            for c in self.problem.design
        }
        return {**width, "sigma2": reach**2 / 4}


def noisy_trials(
    rng: np.random.Generator,
    problem: FactorProblem,
    sums: np.ndarray,
    truth: np.ndarray,
    n: int,
) -> Trials[FactorProblem]:
    """Return trials whose exact sums (trial, component) are given, with this problem's noise."""
    z = sums + noise(rng, problem.noise_scale, problem.mechanism, sums.shape, whole=False)
    least = len(problem.design) + 2
    sizes = np.full(len(z), float(n))
    if problem.noisy_n:
        sizes = np.maximum(noisy_sizes(z, problem.statistic), least)
    many = replace(problem, z=z, n=sizes, keys=tuple(range(len(z))))
    return Trials(many, truth, (*problem.x, "intercept", "sigma2"))


def scene(
    problem: FactorProblem, n: int, given: Mapping[str, Any], trials: int, seed: int
) -> FactorScene:
    """Make records at one guessed truth, for every trial of a plan."""
    truth, guess = guessed(problem, given)
    statistic, bounds = problem.statistic, table_bounds(problem)
    rng = np.random.default_rng([seed, 0])
    columns = len(problem.design) + 1
    sums = np.zeros((trials, problem.z.shape[1]))
    plain, clamped = np.zeros((2, trials, columns, columns))
    outside = dict.fromkeys(bounds, 0.0)
    step = max(1, CELLS // (trials * columns))
    for begin in range(0, n, step):
        shape = trials, min(step, n - begin)
        made = truth.columns(rng, shape)
        design = _design(problem.design, made)
        made[problem.y] = design @ truth.theta + truth.sigma * rng.standard_normal(shape)
        kept = {c: np.clip(made[c], b.lower, b.upper) for c, b in bounds.items()}
        for c in bounds:
            outside[c] += float((made[c] != kept[c]).sum()) / (n * trials)
        inside = made | kept
        sums += sums_within_cells(statistic, boxed_columns(statistic, problem.bounds, inside), made)
        for total, table in ((plain, made), (clamped, inside)):
            own = design if table is made else _design(problem.design, table)
            both = np.concatenate([own, table[problem.y][..., None]], axis=-1)
            total += np.swapaxes(both, 1, 2) @ both
    return FactorScene(problem, n, truth, sums, plain, clamped, guess, outside)

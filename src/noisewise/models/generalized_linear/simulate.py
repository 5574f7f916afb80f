"""Simulated releases of generalized linear models, for ``check`` and ``plan``.

``from_prior`` makes records: covariates whose mean, covariance and shape come from the model, the
response given them. Trials whose *noisy* sums could not come from records in the box are drawn
anew, which keeps calibration exact; moments that no records in the box have are drawn anew as well,
though the analysis knows of no such limit but for the means. A plan makes records at one guessed
truth and clamps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError, Bounds
from noisewise.models.generalized_linear.analyst import ANALYST
from noisewise.models.generalized_linear.covariate_moments import CovariateMoments
from noisewise.models.generalized_linear.covariate_nodes import box_nodes
from noisewise.models.generalized_linear.posterior import prior_draws
from noisewise.models.generalized_linear.problem import GeneralizedProblem
from noisewise.models.generalized_linear.problem_with_factors import FactorsProblem
from noisewise.models.generalized_linear.response_laws import RESPONSE_LAWS
from noisewise.models.linear_regression import scale_free
from noisewise.models.linear_regression.column_laws import ColumnLaw, numeric_law, separated
from noisewise.numerics.distributions import draw_inverse_wishart_factors
from noisewise.numerics.gram_packing import pack
from noisewise.simulate.trials import (
    PRIOR_DRAWS,
    QUIET,
    BatchSimulator,
    Trials,
    check_guesses,
    interval_widths,
    judged_without_noise,
    noise,
)

MOST_PROPOSALS = 20_000
"""Draws from the prior for one trial before giving up (chosen)."""
REACH = 4
"""Noise scales by which a noisy sum may lie outside what records in the box add up to."""
SLOPE = 0.5
"""Guessed slope of all covariates together, per standard deviation, unless given (chosen)."""


def from_prior(
    rng: np.random.Generator, problem: GeneralizedProblem, trials: int
) -> Trials[GeneralizedProblem]:
    """Parameters from the prior, records from the model, noise of the release's scale."""
    n, d = round(float(problem.n[0])), len(problem.x)
    sums: list[np.ndarray] = []
    response: list[np.ndarray] = []
    truth: list[np.ndarray] = []
    proposals = 0
    while len(truth) < trials:
        proposals += 1
        if proposals > MOST_PROPOSALS:
            raise ArgumentError(
                f"prior: of {MOST_PROPOSALS:,} draws from it only {len(truth)} fit the bounds, "
                f"fewer than the {trials} trials wanted; ask for fewer trials"
            )
        moments = _drawn_moments(rng, d, n)
        if (moments[1].diagonal() + moments[0] ** 2 > 1).any():
            continue  # No records in the box have such moments, and the rest costs time.
        x, white_slopes = _records(rng, problem, *moments, n)
        slopes = problem.slope_sd * white_slopes / np.maximum(x.std(axis=0), 1e-150)
        level = problem.level + problem.level_sd * rng.standard_normal()
        law = RESPONSE_LAWS[problem.link]
        y = law.records(rng, law.mean(level + (x - x.mean(axis=0)) @ slopes))
        both = _noisy(rng, problem, *_sums(problem, x, y), n)
        if (np.abs(both[0][: d * (d + 3) // 2]) > n + REACH * problem.noise_scale).any() or (
            np.abs(both[1]) > n + REACH * problem.noise_scale
        ).any():
            continue
        sums.append(both[0])
        response.append(both[1])
        truth.append(_in_user_units(problem, slopes, level - slopes @ x.mean(axis=0)))
    return _trials(problem, np.array(sums), np.array(response), np.array(truth), n)


def _drawn_moments(rng: np.random.Generator, d: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a mean, uniform in the box, and a covariance from the prior of the covariates."""
    a, _, _ = scale_free.draw_scales(rng, (), d)
    unit = draw_inverse_wishart_factors(rng, np.eye(d), np.asarray(float(d)))
    factor = a[:, None] * np.asarray(unit).reshape(d, d)
    return rng.uniform(-1, 1, d), factor @ factor.T


def _records(
    rng: np.random.Generator, problem: GeneralizedProblem, mean: np.ndarray,
    covariance: np.ndarray, n: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return n covariates of these moments, their mean exactly this one, and white slopes."""
    d = len(mean)
    if problem.law == "normal":
        z = rng.standard_normal((n, d))
    else:
        nodes = box_nodes(mean, covariance, problem.indicators)
        z = nodes.z[rng.choice(len(nodes.weight), n, p=nodes.weight / nodes.weight.sum())]
    factor = np.linalg.cholesky(covariance + 1e-14 * np.diag(covariance.diagonal()))
    return mean + (z - z.mean(axis=0)) @ factor.T, rng.standard_normal(d)


def _sums(
    problem: GeneralizedProblem, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of covariates in the box and of the response in its own units."""
    in_box = (y - problem.units.centre[-1]) / problem.units.half[-1]
    response = np.concatenate([[in_box.sum()], in_box @ x])
    return pack(x.T @ x, x.sum(axis=0)), response


def _noisy(
    rng: np.random.Generator, problem: GeneralizedProblem, sums: np.ndarray,
    response: np.ndarray, n: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    if problem.noisy_n:
        sums = np.append(sums, n)
    scale, mechanism = problem.noise_scale, problem.mechanism
    return (
        np.asarray(sums + noise(rng, scale, mechanism, sums.shape, whole=False)),
        np.asarray(response + noise(rng, scale, mechanism, response.shape, whole=False)),
    )


def _in_user_units(problem: GeneralizedProblem, slopes: np.ndarray, intercept: float) -> np.ndarray:
    """Return slopes in the user's order and units, and the intercept, from those in the box."""
    d = len(slopes)
    user = np.empty(d)
    user[problem.order] = slopes
    user /= problem.units.half[:d]
    return np.append(user, intercept - user @ problem.units.centre[:d])


def _trials(
    problem: GeneralizedProblem, sums: np.ndarray, response: np.ndarray, truth: np.ndarray, n: int
) -> Trials[GeneralizedProblem]:
    sizes = np.full(len(sums), float(n))
    if problem.noisy_n:
        sizes = np.maximum(sums[:, -1], len(problem.x) + 2)
    many = replace(
        problem, covariates=sums, response=response, n=sizes, keys=tuple(range(len(sums)))
    )
    return Trials(many, truth, (*problem.x, "intercept"))


@dataclass(frozen=True, eq=False)
class GeneralizedScene:
    """Sums of clamped records, and of the same unclamped, at one guessed truth."""

    problem: GeneralizedProblem
    n: int
    truth: np.ndarray
    sums: tuple[np.ndarray, np.ndarray]
    free: tuple[np.ndarray, np.ndarray]
    guess: Mapping[str, float]
    outside: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """Slopes and intercept."""
        return (*self.problem.x, "intercept")

    def trials(self, problem: GeneralizedProblem, seed: int) -> Trials[GeneralizedProblem]:
        """Return trials with that problem's noise on the sums."""
        return self._with(problem, self.sums, seed)

    def _with(
        self, problem: GeneralizedProblem, sums: tuple[np.ndarray, np.ndarray], seed: int
    ) -> Trials[GeneralizedProblem]:
        rng = np.random.default_rng([seed, 1])
        both = [_noisy(rng, problem, s, r, self.n) for s, r in zip(*sums, strict=True)]
        truth = np.tile(self.truth, (len(both), 1))
        return _trials(
            problem, np.array([b[0] for b in both]), np.array([b[1] for b in both]), truth, self.n
        )

    def width_without_privacy(self, seed: int, level: float) -> np.ndarray:
        """Return mean widths of estimates from the sums of unclamped records."""
        quiet = replace(self.problem, noise_scale=QUIET, noisy_n=False)
        return judged_without_noise(ANALYST, self._with(quiet, self.free, seed), seed, level).width

    def prior_width(self, level: float) -> dict[str, float]:
        """Return the widths of the prior, at the guessed covariates' moments."""
        d = len(self.problem.x)
        n, inverse = float(self.n), np.argsort(self.problem.order)
        packed = self.free[0].mean(axis=0) / n
        mean = packed[-d:]
        covariance = np.zeros((d, d))
        covariance[np.triu_indices(d)] = packed[: d * (d + 1) // 2]
        covariance = covariance + np.triu(covariance, 1).T - np.outer(mean, mean)
        moments = CovariateMoments(
            mean[inverse][None], covariance[np.ix_(inverse, inverse)][None],
            self.problem.units.centre[:-1], self.problem.units.half[:-1],
            self.problem.indicators[inverse], self.problem.law,
        )  # fmt: skip
        return interval_widths(prior_draws(self.problem, moments, PRIOR_DRAWS), level)


def scene(
    problem: GeneralizedProblem, n: int, given: Mapping[str, Any], trials: int, seed: int
) -> GeneralizedScene:
    """Make records at one guessed truth: slopes, the mean response, and laws of the columns."""
    rng = np.random.default_rng([seed, 0])
    laws, truth, known = _guessed(rng, problem, given)
    d, units = len(problem.x), problem.units
    outside = np.zeros(d + 1)
    clamped: list[tuple[np.ndarray, np.ndarray]] = []
    free: list[tuple[np.ndarray, np.ndarray]] = []
    law = RESPONSE_LAWS[problem.link]
    for _ in range(trials):
        x = np.stack([c.quantile(rng.standard_normal(n)) for c in laws], axis=-1)
        y = law.records(rng, law.mean(x @ truth[:-1] + truth[-1]))
        u = (np.column_stack([x, y]) - units.centre) / units.half
        outside += (np.abs(u) > 1 + 1e-12).mean(axis=0) / trials
        for into, w in ((free, u), (clamped, np.clip(u, -1, 1))):
            white = w[:, problem.order]
            response = np.concatenate([[w[:, -1].sum()], w[:, -1] @ white])
            into.append((pack(white.T @ white, white.sum(axis=0)), response))
    both, alone = (
        (np.array([made[0] for made in kind]), np.array([made[1] for made in kind]))
        for kind in (clamped, free)
    )
    columns = dict(zip((*problem.x, problem.y), outside.tolist(), strict=True))
    return GeneralizedScene(problem, n, truth, both, alone, known, columns)


def _guessed(
    rng: np.random.Generator, problem: GeneralizedProblem, given: Mapping[str, Any]
) -> tuple[tuple[ColumnLaw, ...], np.ndarray, dict[str, float]]:
    """Return laws of the covariates, the coefficients, and what was guessed, name by name."""
    x, y = problem.x, problem.y
    about, numbers = separated(given, x)
    moments = (*(f"mean:{c}" for c in x), *(f"sd:{c}" for c in x))
    check_guesses(numbers, (*x, "intercept", f"mean:{y}", *moments))
    boxes = [
        Bounds(float(m - h), float(m + h))
        for m, h in zip(problem.units.centre, problem.units.half, strict=True)
    ]
    laws = tuple(
        numeric_law(c, box, about.get(c), numbers.get(f"mean:{c}"), numbers.get(f"sd:{c}"))
        for c, box in zip(x, boxes, strict=False)
    )
    mean, spread = (np.array([getattr(law, m) for law in laws]) for m in ("mean", "sd"))
    slopes = np.array([
        float(numbers.get(c, SLOPE / np.sqrt(len(x)) / spread[i])) for i, c in enumerate(x)
    ])  # fmt: skip
    usual = 1.0 + 0.1 * problem.largest_count if problem.counts else 0.5
    wanted = float(numbers.get(f"mean:{y}", usual))
    if not 0 < wanted < problem.largest_count:
        raise ArgumentError(f"guess: mean:{y} must be within its bounds, not {wanted!r}")
    if "intercept" in numbers:
        intercept = float(numbers["intercept"])
    else:
        intercept = _intercept(rng, problem, laws, slopes, wanted)
    known = dict(zip((*x, "intercept"), [*slopes.tolist(), intercept], strict=True))
    known |= dict(zip(moments, [*mean.tolist(), *spread.tolist()], strict=True))
    return laws, np.append(slopes, intercept), known


def _intercept(
    rng: np.random.Generator, problem: GeneralizedProblem, laws: tuple[ColumnLaw, ...],
    slopes: np.ndarray, wanted: float,
) -> float:  # fmt: skip
    """Return the intercept at which the mean response is the wanted one, by bisection."""
    x = np.stack([law.quantile(rng.standard_normal(20_000)) for law in laws], axis=-1)
    off, mean = x @ slopes, RESPONSE_LAWS[problem.link].mean
    low, high = -30.0 - off.max(), 30.0 - off.min()
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if mean(middle + off).mean() < wanted else (low, middle)
    return float(0.5 * (low + high))


class GeneralizedSimulator(BatchSimulator[GeneralizedProblem]):
    """Simulated generalized linear models."""

    analyst = ANALYST

    def template(self, problem: GeneralizedProblem, n: int | None) -> GeneralizedProblem:
        """Return the problem with one group of n records; those with factors are refused."""
        if isinstance(problem, FactorsProblem):
            raise ArgumentError(
                f"model: releases for a {problem.link} regression with factors are not simulated; "
                "check the linear regression of the same release instead"
            )
        return super().template(problem, n)

    def from_prior(
        self, rng: np.random.Generator, problem: GeneralizedProblem, trials: int
    ) -> Trials[GeneralizedProblem]:
        """Draw truths from the prior, and a simulated release of each."""
        return from_prior(rng, problem, trials)

    def scene(
        self, problem: GeneralizedProblem, n: int, guesses: Mapping[str, Any], trials: int,
        seed: int,
    ) -> GeneralizedScene:  # fmt: skip
        """Make records at one guessed truth, for every trial of a plan."""
        return scene(problem, n, guesses, trials, seed)

    def settings(self, problem: GeneralizedProblem) -> dict[str, object]:
        """Return what is simulated, for people and files."""
        return {
            "what": f"{problem.link} regression of {problem.y} on {', '.join(problem.x)}",
            "n": round(float(problem.n[0])),
            "mechanism": problem.mechanism,
            "noise_scale": problem.noise_scale,
            "prior": problem.prior_in_words,
        }


SIMULATOR = GeneralizedSimulator()
"""The simulator of both models."""

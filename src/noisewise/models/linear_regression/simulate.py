"""Simulated regressions with a release's own settings: n, bounds, noise and prior.

``from_prior`` draws parameters from the prior of the analysis and data from its model, as
simulation-based calibration asks. The default priors are vague, and most of what they allow does
not fit the public bounds; so trials whose *noisy* sums could not come from records in the box are
drawn anew. That keeps calibration exact: a posterior given z is right for every z, hence also for
the z that are kept. Where bounds cut values off, sums are drawn as those of normal records, as the
sampler takes them, and the truth is the law behind them (``censoring.py``).

A plan makes records at one guessed truth and clamps them, as the owner would. Guesses follow from
the public bounds unless given: every column fills its bounds with three standard deviations either
way, and the covariates together explain half of the response's variance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.diagnostics import Coverage
from noisewise.models.linear_regression import scale_free
from noisewise.models.linear_regression.analyst import ANALYST
from noisewise.models.linear_regression.initial_values import prior_parameters, statistics_of
from noisewise.models.linear_regression.posterior_draws import (
    draws_before,
    parameters_before_clamping,
    prior_in_words,
)
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.simulate.trials import (
    CELLS,
    PRIOR_DRAWS,
    QUIET,
    BatchSimulator,
    Trials,
    check_guesses,
    covered,
    infer_together,
    interval_widths,
    noise,
)

PROPOSALS = 20_000
"""Draws from the prior in one batch (chosen)."""
MAX_BATCHES = 100
"""Batches of proposals before giving up: two million in all (chosen)."""
REACH = 4
"""Noise scales by which a noisy sum may lie outside what records in the box add up to."""
FILLED = 3.0
"""Standard deviations either way with which a column is taken to fill its bounds (chosen)."""
EXPLAINED = 0.5
"""Share of the response's variance that the covariates are taken to explain (chosen)."""


@dataclass(frozen=True, eq=False)
class Guess:
    """One truth: coefficients (intercept last), error deviation, and the covariates' normal law."""

    theta: np.ndarray
    sigma: float
    mean: np.ndarray
    covariance: np.ndarray


def from_prior(
    rng: np.random.Generator, problem: RegressionProblem, trials: int
) -> Trials[RegressionProblem]:
    """Parameters from the prior, sums from the model, noise of the release's scale."""
    n, q = round(float(problem.n[0])), len(problem.x) + 1
    kept_z: list[np.ndarray] = []
    kept_truth: list[np.ndarray] = []
    found = 0
    for _ in range(MAX_BATCHES):
        sizes = np.full(PROPOSALS, float(n))
        if problem.scale_free:
            drawn, means = scale_free.draw_parameters(rng, (PROPOSALS,), q - 1, n)
            made = statistics_of(rng, drawn, sizes, min(q, n - 1))._replace(mean=means)
        else:
            drawn = prior_parameters(rng, problem.box_prior, (PROPOSALS,))
            made = statistics_of(rng, drawn, sizes, min(q, n - 1))
        z = _noisy(rng, problem, _sums(made.mean, made.factor, n), n)
        fits = _fits(z, n, problem, q)
        kept_z.append(z[fits])
        kept_truth.append(parameters_before_clamping(drawn, problem.cuts)[fits])
        found += int(fits.sum())
        if found >= trials:
            break
    else:
        raise ArgumentError(
            f"prior: of {MAX_BATCHES * PROPOSALS:,} draws from it only {found} fit the bounds, "
            f"fewer than the {trials} trials wanted; give a prior that knows more, or ask for "
            "fewer trials"
        )
    z, truth = np.concatenate(kept_z)[:trials], np.concatenate(kept_truth)[:trials]
    return _trials(problem, z, problem.units.to_user(truth), n)


def _sums(mean: np.ndarray, factor: np.ndarray, n: int) -> np.ndarray:
    """Products row by row of the upper triangle, then the sums: the order of a problem's z."""
    rows, columns = np.triu_indices(mean.shape[-1])
    second = factor @ np.swapaxes(factor, -1, -2) + mean[..., :, None] * mean[..., None, :]
    return n * np.concatenate([second[..., rows, columns], mean], axis=-1)


def _noisy(
    rng: np.random.Generator, problem: RegressionProblem, sums: np.ndarray, n: int
) -> np.ndarray:
    if problem.noisy_n:
        sums = np.column_stack([sums, np.full(len(sums), float(n))])
    added = noise(rng, problem.noise_scale, problem.mechanism, sums.shape, whole=False)
    return np.asarray(sums + added)


def _fits(z: np.ndarray, n: int, problem: RegressionProblem, q: int) -> np.ndarray:
    slack = REACH * problem.noise_scale
    return np.asarray((np.abs(z[:, : q * (q + 3) // 2]) <= n + slack).all(axis=1))


def _trials(
    problem: RegressionProblem, z: np.ndarray, truth: np.ndarray, n: int
) -> Trials[RegressionProblem]:
    q = len(problem.x) + 1
    sizes = np.maximum(z[:, -1], q + 2) if problem.noisy_n else np.full(len(z), float(n))
    many = replace(problem, z=z, n=sizes, keys=tuple(range(len(z))), moments=None, exponents=())
    return Trials(many, truth, (*problem.x, "intercept", "sigma2"))


def sums_at(
    rng: np.random.Generator, problem: RegressionProblem, guess: Guess, n: int, trials: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums (trial, component) of clamped records and of the same unclamped; shares clamped."""
    units, q = problem.units, len(problem.x) + 1
    rows, columns = np.triu_indices(q)
    root = np.linalg.cholesky(guess.covariance)
    sums, free = np.zeros((2, trials, q * (q + 3) // 2))
    outside = np.zeros(q)
    step = max(1, CELLS // (trials * q))
    for begin in range(0, n, step):
        size = min(step, n - begin)
        x = guess.mean + rng.standard_normal((trials, size, q - 1)) @ root.T
        y = x @ guess.theta[:-1] + guess.theta[-1]
        y = y + guess.sigma * rng.standard_normal((trials, size))
        u = (np.concatenate([x, y[..., None]], axis=-1) - units.centre) / units.half
        outside += (np.abs(u) > 1).sum(axis=(0, 1))
        for total, w in ((free, u), (sums, np.clip(u, -1, 1))):
            gram = np.swapaxes(w, 1, 2) @ w
            total += np.concatenate([gram[:, rows, columns], w.sum(axis=1)], axis=1)
    return sums, free, outside / (n * trials)


def from_guess(
    rng: np.random.Generator, problem: RegressionProblem, sums: np.ndarray, guess: Guess, n: int
) -> Trials[RegressionProblem]:
    """Trials whose exact sums are given, with this problem's noise on them."""
    truth = np.append(guess.theta, guess.sigma**2)
    z = _noisy(rng, problem, sums, n)
    return _trials(problem, z, np.tile(truth, (len(z), 1)), n)


def guessed(
    problem: RegressionProblem, given: Mapping[str, float]
) -> tuple[Guess, dict[str, float]]:
    """Return the truth from words such as ``pir``, ``intercept``, ``sigma`` and ``mean:pir``."""
    x, units = problem.x, problem.units
    half, centre = units.half, units.centre
    known = {
        **{f"mean:{c}": float(centre[i]) for i, c in enumerate(x)},
        **{f"sd:{c}": float(half[i]) / FILLED for i, c in enumerate(x)},
    }
    allowed = (*x, "intercept", "sigma", *known)
    check_guesses(given, allowed)
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


@dataclass(frozen=True, eq=False)
class RegressionScene:
    """Sums of clamped records (``sums``), and of the same records unclamped (``free``)."""

    problem: RegressionProblem
    n: int
    truth: Guess
    sums: np.ndarray
    free: np.ndarray
    guess: Mapping[str, float]
    outside: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """Slopes, intercept, error variance."""
        return (*self.problem.x, "intercept", "sigma2")

    def trials(self, problem: RegressionProblem, seed: int) -> Trials[RegressionProblem]:
        """Return trials with that problem's noise on the sums."""
        return self._with(problem, self.sums, seed)

    def _with(
        self, problem: RegressionProblem, sums: np.ndarray, seed: int
    ) -> Trials[RegressionProblem]:
        rng = np.random.default_rng([seed, 1])
        return from_guess(rng, problem, sums, self.truth, self.n)

    def _without_noise(self, sums: np.ndarray, seed: int, level: float) -> Coverage:
        """Judge the conjugate posterior of exact sums."""
        cuts = None if sums is self.free else self.problem.cuts
        quiet = replace(self.problem, noise_scale=QUIET, noisy_n=False, cuts=cuts)
        made = self._with(quiet, sums, seed)
        return covered(infer_together(ANALYST, made, "naive", seed, None), made, level)

    def width_without_privacy(self, seed: int, level: float) -> np.ndarray:
        """Return mean widths of the conjugate posterior of unclamped records."""
        return self._without_noise(self.free, seed, level).width

    def coverage_without_noise(self, seed: int, level: float) -> np.ndarray:
        """Return how often the conjugate posterior of clamped records holds the guess."""
        return self._without_noise(self.sums, seed, level).share

    def prior_width(self, level: float) -> dict[str, float]:
        """Return the widths of the response's prior."""
        return interval_widths(draws_before(self.problem, PRIOR_DRAWS), level)


class RegressionSimulator(BatchSimulator[RegressionProblem]):
    """Simulated regressions for ``check`` and ``plan``."""

    analyst = ANALYST
    reference_method = "exact"

    clamping_biases = True

    def usual_methods(self, release: Release) -> tuple[str, ...]:
        """Return the methods worth trying, best first."""
        return ("exact", "gibbs-update", "naive")

    def yardstick(self, methods: tuple[str, ...]) -> tuple[str, ...]:
        """Return ``exact`` beside other methods: it is quick."""
        return ("exact",) if any(m != "exact" for m in methods) else ()

    def posed(self, problem: RegressionProblem, method: str) -> RegressionProblem:
        """Return the problem with the conjugate default prior for all methods but ``exact``."""
        if not problem.scale_free or method == "exact":
            return problem
        return replace(problem, scale_free=False)

    def from_prior(
        self, rng: np.random.Generator, problem: RegressionProblem, trials: int
    ) -> Trials[RegressionProblem]:
        """Draw truths from the prior, and a simulated release of each."""
        return from_prior(rng, problem, trials)

    def scene(
        self,
        problem: RegressionProblem,
        n: int,
        guesses: Mapping[str, float],
        trials: int,
        seed: int,
    ) -> RegressionScene:
        """Make records at one guessed truth, for every trial of a plan."""
        truth, guess = guessed(problem, guesses)
        rng = np.random.default_rng([seed, 0])
        sums, free, outside = sums_at(rng, problem, truth, n, trials)
        columns = dict(zip((*problem.x, problem.y), outside.tolist(), strict=True))
        return RegressionScene(problem, n, truth, sums, free, guess, columns)

    def settings(self, problem: RegressionProblem) -> dict[str, object]:
        """Return what is simulated, for people and files."""
        return {
            "what": f"{problem.y} on {', '.join(problem.x)}",
            "n": round(float(problem.n[0])),
            "mechanism": problem.mechanism,
            "noise_scale": problem.noise_scale,
            "prior": prior_in_words(problem)
            + (" (other methods than exact: made from the bounds)" if problem.scale_free else ""),
        }


SIMULATOR = RegressionSimulator()
"""The simulator of the model."""

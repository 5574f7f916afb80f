"""Simulated regressions with a release's own settings: n, bounds, noise and prior.

``from_prior`` draws parameters from the prior of the analysis and data from its model, as
simulation-based calibration asks. The default priors are vague, and most of what they allow does
not fit the public bounds; so trials whose *noisy* sums could not come from records in the box are
drawn anew. That keeps calibration exact: a posterior given z is right for every z, hence also for
the z that are kept. Where bounds cut values off, records of the law behind the drawn moments
(``censoring.py``) are made one by one and clamped; of cut columns a tenth of the records or more
must lie inside, by the noisy sums.

A plan makes records at one guessed truth and clamps them, as the owner would. Guesses follow from
the public bounds unless given (``column_laws.py``): the covariates together explain half of the
response's variance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, CellSums, Release
from noisewise.diagnostics import Coverage
from noisewise.models.base import Progress
from noisewise.models.linear_regression import (
    censoring,
    factor_coefficients,
    factor_simulate,
    pooled_simulate,
    scale_free,
)
from noisewise.models.linear_regression.analyst import ANALYST, FACTOR_METHODS
from noisewise.models.linear_regression.censoring import Cuts
from noisewise.models.linear_regression.column_laws import ColumnLaw, numeric_law, separated
from noisewise.models.linear_regression.factor_problem import FactorProblem
from noisewise.models.linear_regression.initial_values import prior_parameters, statistics_of
from noisewise.models.linear_regression.pooled_posterior import PooledQuestion
from noisewise.models.linear_regression.posterior_draws import draws_before, prior_in_words
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.numerics.gram_packing import square_positions, total_positions
from noisewise.simulate.pooled_trials import PLANNED_TRIALS, PooledTrials
from noisewise.simulate.trials import (
    CELLS,
    PRIOR_DRAWS,
    QUIET,
    BatchSimulator,
    Outcome,
    Scene,
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
LEAST_DISTANCE, LARGEST_VARIANCE = 0.06, 0.93
"""Moments of a column, cut at one end or at both, of which a tenth lies inside."""
EXPLAINED = 0.5
"""Share of the response's variance that the covariates are taken to explain (chosen)."""
SPREAD_SHARE = 0.2
"""Deviation between pooled groups, as a share of slope and error deviation (chosen)."""

AnyProblem = RegressionProblem | FactorProblem | PooledQuestion
"""What can be simulated."""


@dataclass(frozen=True, eq=False)
class Guess:
    """One truth: coefficients (intercept last), error deviation, and the law of each covariate."""

    theta: np.ndarray
    sigma: float
    laws: tuple[ColumnLaw, ...]


def from_prior(
    rng: np.random.Generator, problem: RegressionProblem, trials: int
) -> Trials[RegressionProblem]:
    """Parameters from the prior, sums from the model, noise of the release's scale."""
    n, q = round(float(problem.n[0])), len(problem.x) + 1
    kept_z: list[np.ndarray] = []
    kept_truth: list[np.ndarray] = []
    found = 0
    for _ in range(MAX_BATCHES):
        sums, parameters = _drawn_sums(rng, problem, n)
        z = _noisy(rng, problem, sums, n)
        fits = _fits(z, n, problem, q)
        kept_z.append(z[fits])
        kept_truth.append(parameters[fits])
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


def _drawn_sums(
    rng: np.random.Generator, problem: RegressionProblem, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw sums of n records with parameters from the prior, and the parameters, in the box."""
    q = len(problem.x) + 1
    number = PROPOSALS if problem.cuts is None else min(PROPOSALS, max(1, CELLS // (n * q)))
    means = scatter = None
    if problem.scale_free:
        drawn, means, scatter = scale_free.draw_parameters(rng, (number,), q - 1, n)
    else:
        drawn = prior_parameters(rng, problem.box_prior, (number,))
    box = np.column_stack([drawn.theta, drawn.variance])
    if problem.cuts is not None:
        covariance = drawn.x_factor @ np.swapaxes(drawn.x_factor, -1, -2)
        law = censoring.unclamped_parameters(box, drawn.x_mean, covariance, problem.cuts)
        return _clamped_sums(rng, *law, problem.cuts, n), law[0]
    made = statistics_of(rng, drawn, np.full(number, float(n)), min(q, n - 1), scatter)
    return _sums(made.mean if means is None else means, made.factor, n), box


def _clamped_sums(
    rng: np.random.Generator,
    parameters: np.ndarray,
    mean: np.ndarray,
    covariance: np.ndarray,
    cuts: Cuts,
    n: int,
) -> np.ndarray:
    """Make n records of every law, clamp them where bounds cut, and return their sums."""
    size = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    values, vectors = np.linalg.eigh(covariance / size[:, :, None] / size[:, None, :])
    root = size[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    x = mean[:, None] + rng.standard_normal((len(mean), n, mean.shape[1])) @ np.swapaxes(root, 1, 2)
    y = np.einsum("tni,ti->tn", x, parameters[:, :-2]) + parameters[:, -2, None]
    y = y + np.sqrt(parameters[:, -1, None]) * rng.standard_normal(y.shape)
    records = np.concatenate([x, y[..., None]], axis=-1)
    low, high = np.where(cuts.lower, -1.0, -np.inf), np.where(cuts.upper, 1.0, np.inf)
    records = np.clip(records, low, high)
    rows, columns = np.triu_indices(records.shape[-1])
    gram = np.swapaxes(records, 1, 2) @ records
    return np.concatenate([gram[:, rows, columns], records.sum(axis=1)], axis=1)


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
    fits = np.asarray((np.abs(z[:, : q * (q + 3) // 2]) <= n + slack).all(axis=1))
    if problem.cuts is None:
        return fits
    mean = z[:, total_positions(q)] / n
    variance = z[:, square_positions(q)] / n - mean**2
    lower, upper = problem.cuts
    one = np.where(upper, 1 - mean, 1 + mean) ** 2 > LEAST_DISTANCE * variance
    inside = np.where(lower & upper, variance < LARGEST_VARIANCE * (1 - mean**2), one)
    return np.asarray(fits & (inside | ~(lower | upper)).all(axis=1))


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
    sums, free = np.zeros((2, trials, q * (q + 3) // 2))
    outside = np.zeros(q)
    step = max(1, CELLS // (trials * q))
    for begin in range(0, n, step):
        size = min(step, n - begin)
        scores = rng.standard_normal((trials, size, q - 1))
        x = np.stack([law.quantile(scores[..., i]) for i, law in enumerate(guess.laws)], axis=-1)
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


def guessed(problem: RegressionProblem, given: Mapping[str, Any]) -> tuple[Guess, dict[str, float]]:
    """Return the truth from words such as ``pir``, ``intercept``, ``sigma`` and ``mean:pir``."""
    x, units = problem.x, problem.units
    half, centre = units.half, units.centre
    about, numbers = separated(given, (*x, problem.y))
    moments = (*(f"mean:{c}" for c in x), *(f"sd:{c}" for c in x))
    check_guesses(numbers, (*x, "intercept", "sigma", *moments))
    boxes = [Bounds(float(m - h), float(m + h)) for m, h in zip(centre, half, strict=True)]
    laws = tuple(
        numeric_law(c, box, about.get(c), numbers.get(f"mean:{c}"), numbers.get(f"sd:{c}"))
        for c, box in zip(x, boxes, strict=False)
    )
    response = numeric_law(problem.y, boxes[-1], about.get(problem.y), None, None)
    mean, spread = (np.array([getattr(law, m) for law in laws]) for m in ("mean", "sd"))
    slope = response.sd * np.sqrt(EXPLAINED / len(x)) / spread
    known = dict(zip(moments, [*mean.tolist(), *spread.tolist()], strict=True))
    known |= {c: float(numbers.get(c, slope[i])) for i, c in enumerate(x)}
    slopes = np.array([known[c] for c in x])
    known["intercept"] = float(numbers.get("intercept", response.mean - slopes @ mean))
    known["sigma"] = float(numbers.get("sigma", response.sd * np.sqrt(1 - EXPLAINED)))
    if not known["sigma"] > 0:
        raise ArgumentError(f"guess: sigma must be above zero, not {known['sigma']!r}")
    return Guess(np.append(slopes, known["intercept"]), known["sigma"], laws), known


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


def pooled_scene(
    question: PooledQuestion, n: int, given: Mapping[str, Any], trials: int, seed: int
) -> PooledScene:
    """Make records of pooled groups around one guessed truth, for every trial of a plan.

    The deviations between groups are guessed by ``spread:`` and a coefficient's name; they are a
    fifth of the slope, and a fifth of the response's deviation for the intercept, unless given.
    """
    problem = question.regression
    names = (*problem.x, "intercept")
    spreads = {k: v for k, v in given.items() if str(k).startswith("spread:")}
    check_guesses(spreads, tuple(f"spread:{name}" for name in names))
    middle, known = guessed(problem, {k: v for k, v in given.items() if k not in spreads})
    usual = dict(
        zip(names, SPREAD_SHARE * np.append(np.abs(middle.theta[:-1]), middle.sigma), strict=True)
    )
    deviation = {name: float(spreads.get(f"spread:{name}", usual[name])) for name in names}
    rng, groups = np.random.default_rng([seed, 0]), len(problem.n)
    sd = np.array(list(deviation.values()))
    # Groups differ in their level where x is in the middle, whatever the slope there.
    centre = np.array([law.mean for law in middle.laws])
    alone = []
    for _ in range(groups * trials):
        apart = sd * rng.standard_normal(len(sd))
        apart[-1] -= apart[:-1] @ centre
        truth = replace(middle, theta=middle.theta + apart)
        alone.append((truth, *sums_at(rng, problem, truth, n, 1)))
    outside = np.mean([a[3] for a in alone], axis=0)
    known |= {f"spread:{name}": value for name, value in deviation.items()}
    return PooledScene(
        question, n, np.array([np.append(a[0].theta, a[0].sigma**2) for a in alone]),
        np.concatenate([a[1] for a in alone]), np.concatenate([a[2] for a in alone]), known,
        dict(zip((*problem.x, problem.y), outside.tolist(), strict=True)),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PooledScene:
    """Sums of clamped records of all groups of all trials, one after the other, and unclamped."""

    question: PooledQuestion
    n: int
    truth: np.ndarray
    sums: np.ndarray
    free: np.ndarray
    guess: Mapping[str, float]
    outside: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """Slopes, intercept, error variance."""
        return (*self.question.regression.x, "intercept", "sigma2")

    def trials(self, problem: PooledQuestion, seed: int) -> PooledTrials[PooledQuestion]:
        """Return trials with that problem's noise on the sums."""
        rng, regression = np.random.default_rng([seed, 1]), problem.regression
        z = _noisy(rng, regression, self.sums, self.n)
        groups = len(regression.n)
        releases = tuple(problem.with_sums(z[i : i + groups]) for i in range(0, len(z), groups))
        return PooledTrials(releases[0], self.truth, self.names, releases, self.names)

    def _without_noise(self, sums: np.ndarray, seed: int, level: float) -> Coverage:
        """Judge the conjugate posterior of exact sums, every group by itself."""
        quiet = replace(self.question.regression, noise_scale=QUIET, noisy_n=False)
        alone = replace(_trials(quiet, sums, self.truth, self.n), truth=self.truth)
        return covered(infer_together(ANALYST, alone, "naive", seed, None), alone, level)

    def width_without_privacy(self, seed: int, level: float) -> np.ndarray:
        """Return mean widths of the conjugate posterior of unclamped records, group by group."""
        return self._without_noise(self.free, seed, level).width

    def coverage_without_noise(self, seed: int, level: float) -> np.ndarray:
        """Return how often the conjugate posterior of clamped records holds the truth."""
        return self._without_noise(self.sums, seed, level).share

    def prior_width(self, level: float) -> dict[str, float]:
        """Return the widths of a group's prior."""
        return interval_widths(self.question.prior_draws(PRIOR_DRAWS), level)


class RegressionSimulator(BatchSimulator[AnyProblem]):
    """Simulated regressions for ``check`` and ``plan``; those with factors in a file of theirs."""

    analyst = ANALYST
    reference_method = "exact"

    clamping_biases = True

    def usual_methods(self, release: Release) -> tuple[str, ...]:
        """Return the methods worth trying, best first."""
        if any(block.statistic.kind == CellSums.kind for block in release.blocks):
            return tuple(FACTOR_METHODS)
        return ("exact", "gibbs-update", "naive")

    def yardstick(self, methods: tuple[str, ...]) -> tuple[str, ...]:
        """Return ``exact`` beside other methods: it is quick."""
        return ("exact",) if any(m != "exact" for m in methods) else ()

    def posed(self, problem: AnyProblem, method: str) -> AnyProblem:
        """Return the problem with the conjugate default prior for all methods but ``exact``."""
        if isinstance(problem, RegressionProblem) and problem.scale_free and method != "exact":
            return replace(problem, scale_free=False)
        return problem

    def template(self, problem: AnyProblem, n: int | None) -> AnyProblem:
        """Return the problem with one group of n records; pooled groups stay together."""
        if not isinstance(problem, PooledQuestion):
            return super().template(problem, n)
        return problem if n is None else problem.with_sizes(float(n))

    def run(
        self, trials: Trials[Any], method: str, seed: int, progress: Progress | None = None
    ) -> Outcome:
        """Infer all trials as the groups of one batch; of pooled groups one after the other."""
        if isinstance(trials, PooledTrials):
            return pooled_simulate.run(trials, seed, progress)
        return super().run(trials, method, seed, progress)

    def run_planned(
        self, trials: Trials[Any], method: str, seed: int, progress: Progress | None = None
    ) -> Outcome:
        """Infer every trial of a plan; those with factors by shorter chains."""
        if isinstance(trials.problem, FactorProblem) and method == "exact":
            return factor_simulate.run_planned(trials, seed, progress)
        return self.run(trials, method, seed, progress)

    def from_prior(self, rng: np.random.Generator, problem: AnyProblem, trials: int) -> Trials[Any]:
        """Draw truths from the prior, and a simulated release of each."""
        if isinstance(problem, FactorProblem):
            return factor_simulate.from_prior(rng, problem, trials)
        if isinstance(problem, PooledQuestion):
            return pooled_simulate.from_prior(rng, problem, trials)
        return from_prior(rng, problem, trials)

    def planned_trials(self, problem: AnyProblem) -> int:
        """Return fewer trials where there are factors, or groups are pooled."""
        if isinstance(problem, FactorProblem):
            return factor_simulate.planned_trials(problem)
        if isinstance(problem, PooledQuestion):
            return PLANNED_TRIALS
        return super().planned_trials(problem)

    def scene(
        self,
        problem: AnyProblem,
        n: int,
        guesses: Mapping[str, Any],
        trials: int,
        seed: int,
    ) -> Scene[Any]:
        """Make records at one guessed truth, for every trial of a plan."""
        if isinstance(problem, FactorProblem):
            return factor_simulate.scene(problem, n, guesses, trials, seed)
        if isinstance(problem, PooledQuestion):
            return pooled_scene(problem, n, guesses, trials, seed)
        truth, guess = guessed(problem, guesses)
        rng = np.random.default_rng([seed, 0])
        sums, free, outside = sums_at(rng, problem, truth, n, trials)
        columns = dict(zip((*problem.x, problem.y), outside.tolist(), strict=True))
        return RegressionScene(problem, n, truth, sums, free, guess, columns)

    def settings(self, problem: AnyProblem) -> dict[str, object]:
        """Return what is simulated, for people and files."""
        if isinstance(problem, FactorProblem):
            what, prior = problem.formula.text, factor_coefficients.WORDS
        elif isinstance(problem, PooledQuestion):
            own = problem.regression
            what = f"{own.y} on {', '.join(own.x)}, {len(own.n)} groups pooled"
            prior, problem = problem.words, replace(own, n=np.array([own.n.sum()]))
        else:
            what, prior = f"{problem.y} on {', '.join(problem.x)}", prior_in_words(problem)
            prior += " (other methods than exact: made from the bounds)" * problem.scale_free
        return {
            "what": what,
            "n": round(float(problem.n[0])),
            "mechanism": problem.mechanism,
            "noise_scale": problem.noise_scale,
            "prior": prior,
        }


SIMULATOR = RegressionSimulator()
"""The simulator of the model."""

"""Simulated regressions with a release's own settings: n, bounds, noise and prior.

``from_prior`` draws parameters from the prior of the analysis and data from its model, as
simulation-based calibration asks. The default priors are vague, and most of what they allow does
not fit the public bounds; so trials whose *noisy* sums could not come from records in the box are
drawn anew. That keeps calibration exact: a posterior given z is right for every z, hence also for
the z that are kept.

``from_guess`` makes records at one guessed truth and clamps them, as the owner would.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.models.linear_regression.initial_values import prior_parameters, statistics_of
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.simulate.noise import noise
from noisewise.simulate.trials import Trials

PROPOSALS = 20_000
MOST = 100
"""Batches of proposals before giving up: two million in all."""
REACH = 4
"""Noise scales by which a noisy sum may lie outside what records in the box add up to."""
CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class Guess:
    """One truth: coefficients (intercept last), error deviation, and the covariates' normal law."""

    theta: np.ndarray
    sigma: float
    mean: np.ndarray
    covariance: np.ndarray


def from_prior(rng: np.random.Generator, problem: RegressionProblem, trials: int) -> Trials:
    """Parameters from the prior, sums from the model, noise of the release's scale."""
    n, q = round(float(problem.n[0])), len(problem.x) + 1
    kept_z: list[np.ndarray] = []
    kept_truth: list[np.ndarray] = []
    found = 0
    for _ in range(MOST):
        drawn = prior_parameters(rng, problem.box_prior, (PROPOSALS,))
        sizes = np.full(PROPOSALS, float(n))
        made = statistics_of(rng, drawn, sizes, min(q, n - 1))
        z = _noisy(rng, problem, _sums(made.mean, made.factor, n), n)
        fits = _fits(z, n, problem, q)
        kept_z.append(z[fits])
        kept_truth.append(np.column_stack([drawn.theta, drawn.variance])[fits])
        found += int(fits.sum())
        if found >= trials:
            break
    else:
        raise ArgumentError(
            f"prior: of {MOST * PROPOSALS:,} draws from it only {found} fit the bounds, fewer than "
            f"the {trials} trials wanted; give a prior that knows more, or ask for fewer trials"
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


def _trials(problem: RegressionProblem, z: np.ndarray, truth: np.ndarray, n: int) -> Trials:
    q = len(problem.x) + 1
    sizes = np.maximum(z[:, -1], q + 2) if problem.noisy_n else np.full(len(z), float(n))
    many = replace(problem, z=z, n=sizes, keys=tuple(range(len(z))), moments=None, exponents=())
    return Trials("linear-regression", many, truth, (*problem.x, "intercept", "sigma2"))


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
) -> Trials:
    """Trials whose exact sums are given, with this problem's noise on them."""
    truth = np.append(guess.theta, guess.sigma**2)
    z = _noisy(rng, problem, sums, n)
    return _trials(problem, z, np.tile(truth, (len(z), 1)), n)

"""Simulated releases of shares and rates that are pooled: a population, its groups, their sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.models.base import Progress
from noisewise.models.exponential_family import pooled
from noisewise.models.exponential_family.analyst import ANALYST
from noisewise.models.exponential_family.pooled_density import group_law
from noisewise.models.exponential_family.pooled_population import (
    PooledProblem,
    draw_groups,
    hyperprior,
    mean_and_sd,
    named_parameters,
    prior_draws,
)
from noisewise.models.exponential_family.simulated_sums import noisy, sums_at
from noisewise.models.exponential_family.truncation import Interval
from noisewise.simulate import pooled_trials
from noisewise.simulate.pooled_trials import PooledTrials
from noisewise.simulate.trials import (
    CHAINS,
    DRAWS,
    PRIOR_DRAWS,
    QUIET,
    Outcome,
    check_guesses,
    interval_widths,
    judged_without_noise,
)

SPREAD_SHARE = 0.2
"""Deviation between groups where none is guessed, in units of the largest that shares can have, or
of the mean rate (chosen)."""


def with_sizes(problem: PooledProblem, n: int | None) -> PooledProblem:
    """Return the problem with n records in every group; as it is where n is not given."""
    if n is None:
        return problem
    sizes = np.full(len(problem.groups.n), float(n))
    return replace(problem, groups=replace(problem.groups, n=sizes))


def _release(
    rng: np.random.Generator, problem: PooledProblem, theta: np.ndarray, sums: np.ndarray
) -> PooledProblem:
    """Return the problem of a simulated release: noise on the sums, and on secret sizes."""
    sizes = np.rint(problem.groups.n).astype(int)
    drawn = noisy(rng, problem.groups, sums, theta[:, None], sizes).problem
    return replace(problem, groups=replace(drawn, keys=problem.groups.keys))


def from_prior(
    rng: np.random.Generator, problem: PooledProblem, trials: int
) -> PooledTrials[PooledProblem]:
    """Draw populations from the hyperprior, and a release of all groups from each."""
    prior, name = hyperprior(problem), problem.groups.family.names[0]
    size_unit = float(problem.public.log_size.std())
    releases, truths, judged = [], [], []
    for psi in prior.draw(rng, trials):
        theta = draw_groups(
            rng, problem.domain, group_law(problem.domain, jnp.asarray(psi), problem.public)
        )
        sums, _ = sums_at(rng, problem.groups, theta[:, None], np.rint(problem.groups.n))
        releases.append(_release(rng, problem, theta, sums))
        shared = named_parameters(problem.domain, name, problem.features, psi, size_unit)
        judged.append(int(rng.integers(len(theta))))
        truths.append([theta[judged[-1]], *(float(v) for v in shared.values())])
    names = (name, *shared)
    return PooledTrials(
        releases[0], np.array(truths), names, tuple(releases), (name,), tuple(judged)
    )


@dataclass(frozen=True, eq=False)
class PooledFamilyScene:
    """Sums of all groups of all trials, one after the other, clamped and unclamped."""

    problem: PooledProblem
    n: int
    theta: np.ndarray
    sums: np.ndarray
    free: np.ndarray
    guess: Mapping[str, float]
    outside: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of the groups' parameter."""
        return tuple(self.problem.groups.family.names)

    def trials(self, problem: PooledProblem, seed: int) -> PooledTrials[PooledProblem]:
        """Return trials with that problem's noise on the sums."""
        rng, groups = np.random.default_rng([seed, 1]), len(problem.groups.n)
        problem = with_sizes(problem, self.n)
        releases = tuple(
            _release(rng, problem, self.theta[i : i + groups], self.sums[i : i + groups])
            for i in range(0, len(self.theta), groups)
        )
        return PooledTrials(releases[0], self.theta[:, None], self.names, releases, self.names)

    def width_without_privacy(self, seed: int, level: float) -> np.ndarray:
        """Return the mean width of the conjugate posterior of unclamped records, by group."""
        own = self.problem.groups
        free = replace(own, interval=Interval(0.0, 0.0, "keep"), scale=QUIET, counted=None)
        rng = np.random.default_rng([seed, 1])
        alone = noisy(rng, free, self.free, self.theta[:, None], self.n)
        return judged_without_noise(ANALYST, alone, seed, level).width

    def prior_width(self, level: float) -> dict[str, float]:
        """Return the width of a group's prior."""
        prior = hyperprior(self.problem)
        drawn = prior_draws(self.problem.domain, self.names[0], prior, PRIOR_DRAWS)
        return interval_widths(drawn, level)


def scene(
    problem: PooledProblem, n: int, given: Mapping[str, float], trials: int, seed: int
) -> PooledFamilyScene:
    """Make records of pooled groups around a guessed mean, for every trial of a plan.

    The mean is guessed by the parameter's name, the deviation between groups by ``spread:`` and its
    name; a fifth of the largest that shares can have, or of the mean rate, unless given.
    """
    family, unit = problem.groups.family, problem.domain == "unit"
    name = family.names[0]
    check_guesses(given, (name, f"spread:{name}"))
    centre = float(hyperprior(problem).mean[0])
    middle = mean_and_sd(problem.domain, np.array(centre), np.array(0.0))[0]
    mean = float(given.get(name, middle))
    if not 0 < mean < (1 if unit else np.inf):
        raise ArgumentError(
            f"guess: {name} must be {'between 0 and 1' if unit else 'above zero'}, not {mean!r}"
        )
    largest = np.sqrt(mean * (1 - mean)) if unit else np.inf
    usual = SPREAD_SHARE * (largest if unit else mean)
    deviation = float(given.get(f"spread:{name}", usual))
    if not 0 < deviation < largest:
        raise ArgumentError(
            f"guess: spread:{name} must be above zero"
            + (f" and below {largest:.3g}, the most that such shares can differ" * unit)
            + f", not {deviation!r}"
        )
    rng = np.random.default_rng([seed, 0])
    relative = deviation / (largest if unit else mean)
    link = np.log(mean / (1 - mean)) if unit else np.log(mean)
    many = replace(problem, prior=replace(problem.prior, by_size=False))
    psi = np.array([link, *np.zeros(problem.features.values.shape[1] + 1), np.log(relative)])
    law = group_law(problem.domain, jnp.asarray(psi), many.public)
    theta = np.concatenate([draw_groups(rng, problem.domain, law) for _ in range(trials)])
    sums, share = sums_at(rng, problem.groups, theta[:, None], n)
    uncut = replace(problem.groups, interval=Interval(0.0, 0.0, "keep"))
    free, _ = sums_at(rng, uncut, theta[:, None], n)
    guess = {name: mean, f"spread:{name}": deviation}
    return PooledFamilyScene(
        problem, n, theta, sums, free, guess, {problem.groups.column: float(share)}
    )


def run(
    trials: PooledTrials[PooledProblem], seed: int, progress: Progress | None = None
) -> Outcome:
    """Infer every release."""
    return pooled_trials.run(
        trials, lambda p, own: pooled.run(p, own, CHAINS, DRAWS), seed, progress
    )

"""Simulated one-column releases with a release's own settings: n, interval, noise and prior.

A plan's guess is the middle of the default prior, which is made from the bounds, unless given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.models.exponential_family.analyst import ANALYST
from noisewise.models.exponential_family.families import Categorical
from noisewise.models.exponential_family.family import Family, draw_parameters
from noisewise.models.exponential_family.posterior import prior_draws
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval, joint_moments
from noisewise.simulate.trials import (
    CELLS,
    PRIOR_DRAWS,
    QUIET,
    BatchSimulator,
    Trials,
    check_guesses,
    interval_widths,
    judged_without_noise,
    noise,
)

MIN_RECORDS_NORMAL = 20_000
"""Records above which a sum is drawn from its normal law: the error of that is far below 1 %."""
GUESS_DRAWS = 4001
"""Draws whose median is the guess where none is given (chosen; odd, so that it is one of them)."""


def sums_at(
    rng: np.random.Generator, problem: FamilyProblem, theta: np.ndarray, n: int
) -> tuple[np.ndarray, float]:
    """Return what the owner would sum (trial, component), and the share of records outside."""
    family, cut = problem.family, problem.interval
    outside = _outside(rng, family, cut, theta)
    if n > MIN_RECORDS_NORMAL:
        return _normal_sums(rng, family, cut, theta, n), outside
    total = np.zeros((len(theta), family.dimension))
    step = max(1, CELLS // (len(theta) * family.dimension))
    for begin in range(0, n, step):
        shape = (len(theta), min(step, n - begin), theta.shape[-1])
        x = family.records(rng, np.broadcast_to(theta[:, None], shape)).astype(float)
        total += np.asarray(_contributions(family, cut, jnp.asarray(x)))
    return total, outside


@partial(jax.jit, static_argnums=0)
def _contributions(family: Family, cut: Interval, x: jax.Array) -> jax.Array:
    """Return the sum over the second axis of what each record adds."""
    kept = x if cut.outside == "keep" else jnp.clip(x, cut.lower, cut.upper)
    t = jax.vmap(jax.vmap(family.statistic))(kept)
    if cut.outside == "drop":
        t = t * ((x >= cut.lower) & (x <= cut.upper))[..., None]
    return t.sum(axis=1)


def _outside(rng: np.random.Generator, family: Family, cut: Interval, theta: np.ndarray) -> float:
    """Return the share of records outside the interval, from 200 of each trial."""
    if cut.outside == "keep":
        return 0.0
    x = family.records(rng, np.broadcast_to(theta[:, None], (len(theta), 200, theta.shape[-1])))
    return float(((x < float(cut.lower)) | (x > float(cut.upper))).mean())


def _normal_sums(
    rng: np.random.Generator, family: Family, cut: Interval, theta: np.ndarray, n: int
) -> np.ndarray:
    """Draw sums (trial, component) from their normal law."""
    moments = jax.jit(jax.vmap(lambda th: joint_moments(family, cut, family.natural(th))))
    law = moments(jnp.asarray(theta))
    d = family.dimension
    mean, covariance = np.asarray(law.mean)[:, :d], np.asarray(law.covariance)[:, :d, :d]
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))[:, None]
    white = np.einsum("tij,tj->ti", root, rng.standard_normal(mean.shape))
    drawn = n * mean + np.sqrt(n) * white
    return np.asarray(np.rint(drawn) if family.whole else drawn)


def noisy(
    rng: np.random.Generator, problem: FamilyProblem, sums: np.ndarray, theta: np.ndarray, n: int
) -> Trials[FamilyProblem]:
    """Return trials whose exact sums are given, with this problem's noise on them."""
    whole = problem.family.whole
    z = sums + noise(rng, problem.scale, problem.mechanism, sums.shape, whole=whole)
    counted, sizes = None, np.full(len(z), float(n))
    if problem.counted is not None:
        if problem.count_scale:
            own = noise(rng, problem.count_scale, problem.mechanism, (len(z),), whole=whole)
            counted = n + own
        else:
            # Categories: the counts themselves add up to the noisy n.
            counted = z.sum(axis=1)
        sizes = np.maximum(np.rint(counted), 1.0)
    keys = tuple(range(len(z)))
    many = replace(problem, z=z, n=sizes, counted=counted, keys=keys)
    return Trials(many, theta, problem.family.names)


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


class FamilySimulator(BatchSimulator[FamilyProblem]):
    """Simulated one-column releases for ``check`` and ``plan``."""

    analyst = ANALYST
    reference_method = "exact"

    def usual_methods(self, release: Release) -> tuple[str, ...]:
        """Return the methods worth trying, best first."""
        best = ANALYST.default_method(release)
        return (best, "naive") if best == "gibbs" else ("exact", "gibbs", "naive")

    def from_prior(
        self, rng: np.random.Generator, problem: FamilyProblem, trials: int
    ) -> Trials[FamilyProblem]:
        """Draw parameters from the prior, records from the family, and the release's noise."""
        key = jax.random.key(int(rng.integers(2**31)))
        theta = np.asarray(draw_parameters(problem.family, key, problem.conjugate.repeated(trials)))
        n = round(float(problem.n[0]))
        return noisy(rng, problem, sums_at(rng, problem, theta, n)[0], theta, n)

    def scene(
        self, problem: FamilyProblem, n: int, guesses: Mapping[str, float], trials: int, seed: int
    ) -> FamilyScene:
        """Make records at one guessed truth, for every trial of a plan."""
        rng = np.random.default_rng([seed, 0])
        theta, guess = guessed(problem, guesses)
        many = np.tile(theta, (trials, 1))
        sums, share = sums_at(rng, problem, many, n)
        uncut = replace(problem, interval=Interval(0.0, 0.0, "keep"))
        free, _ = sums_at(rng, uncut, many, n)
        return FamilyScene(problem, n, theta, sums, free, guess, {problem.column: share})

    def settings(self, problem: FamilyProblem) -> dict[str, object]:
        """Return what is simulated, for people and files."""
        return {
            "what": problem.column,
            "n": round(float(problem.n[0])),
            "mechanism": problem.mechanism,
            "noise_scale": problem.scale,
            "prior": str(problem.prior),
        }


SIMULATOR = FamilySimulator()
"""The simulator of the model."""

"""What ``check`` and ``plan`` share, for all models: settings, trials, outcomes, simulated noise.

Noise here is for simulations only: no one's data are behind the sums it is added to. Privacy noise
itself comes from OpenDP, in the owner's half, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from noisewise import models
from noisewise.artifact import ArgumentError, Release
from noisewise.artifact.clamping import clamping_in_words
from noisewise.diagnostics import Coverage, coverage
from noisewise.inference.api import pooled_features, usable_groups
from noisewise.inference.results import Posterior
from noisewise.models.base import Analyst, Progress, Question, Simulator, refuse_reserved

CHAINS, DRAWS = 4, 1000
"""Chains, and draws in each, of every trial: what ``infer`` has by default."""
LEVEL = 0.95
"""Probability of the intervals that are checked and planned (chosen)."""
PRIOR_DRAWS = 20_000
"""Draws behind the width of the prior's intervals (chosen)."""
CELLS = 4_000_000
"""Numbers held at once while records are made: 32 MiB (chosen)."""
QUIET = 1e-12
"""Noise scale, in a problem's own units, that is as good as none."""

Guess = float | str | tuple[float, float] | Mapping[Any, float]
"""What may be believed: a parameter, or how a column is distributed (word, moments, shares)."""

P = TypeVar("P")
Q = TypeVar("Q", contravariant=True)


@dataclass(frozen=True, eq=False)
class Trials(Generic[P]):
    """A problem whose groups are simulated releases, and the truth of each.

    ``truth`` (trial, parameter) is in the user's units, in the order of ``names``.
    """

    problem: P
    truth: np.ndarray
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Draws (trial, draw, parameter), and the share of trials that did not converge."""

    draws: np.ndarray
    unconverged: float


class Scene(Protocol[Q]):
    """The records of a plan as sums: what the owner would have before any noise."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parameters."""

    @property
    def guess(self) -> Mapping[str, float]:
        """Return the guessed truth, name by name."""

    @property
    def outside(self) -> Mapping[str, float]:
        """Return the share of records outside the bounds, by column."""

    def trials(self, problem: Q, seed: int) -> Trials[Any]:
        """Return trials with that problem's noise on the sums."""

    def width_without_privacy(self, seed: int, level: float) -> np.ndarray:
        """Return mean widths with neither noise nor clamping."""

    def prior_width(self, level: float) -> dict[str, float]:
        """Return the widths of the prior's own intervals."""


class ClampedScene(Protocol):
    """What the scene of a simulator with ``clamping_biases`` can say as well."""

    def coverage_without_noise(self, seed: int, level: float) -> np.ndarray:
        """Return the coverage of the sums as the owner has them, clamped records included."""


@runtime_checkable
class CautiousScene(Protocol):
    """A scene that knows of simulated tables what the analyst should hear."""

    def cautions(self) -> tuple[str, ...]:
        """Return sentences."""


class BatchSimulator(Simulator[P]):
    """A simulator whose trials are the groups of one problem, inferred together.

    The problem is a dataclass whose field ``n`` holds the sizes of its groups.
    """

    analyst: ClassVar[Analyst[Any]]
    """The model's analyst, whose methods are tried."""

    def template(self, problem: P, n: int | None) -> P:
        """Return the problem with one group of n records."""
        size = median_size(getattr(problem, "n"), n)  # noqa: B009
        return replace(problem, n=np.array([size]))  # type: ignore[type-var]

    def usual_methods(self, release: Release) -> tuple[str, ...]:
        """Return the methods worth trying, best first: all, unless overridden."""
        return tuple(self.analyst.methods)

    def run(
        self, trials: Trials[P], method: str, seed: int, progress: Progress | None = None
    ) -> Outcome:
        """Infer all trials as the groups of one batch."""
        return infer_together(self.analyst, trials, method, seed, progress)


def infer_together(
    analyst: Analyst[P], trials: Trials[P], method: str, seed: int, progress: Progress | None
) -> Outcome:
    """Infer all trials as the groups of one batch."""
    post = analyst.methods[method](trials.problem, seed, CHAINS, DRAWS, progress)
    if not isinstance(post, Posterior):
        raise ArgumentError(f"method: {method!r} gives no draws, so nothing can be checked")
    flat = [post.draws[name].reshape(len(trials.truth), -1) for name in trials.names]
    return Outcome(np.stack(flat, axis=-1), len(post.unconverged) / len(trials.truth))


def covered(outcome: Outcome, trials: Trials[P], level: float) -> Coverage:
    """Return how often the intervals of an outcome hold the truth, and how wide they are."""
    return coverage(outcome.draws, trials.truth, level)


def judged_without_noise(
    analyst: Analyst[P], trials: Trials[P], seed: int, level: float
) -> Coverage:
    """Return coverage and widths of ``naive``, the conjugate posterior of sums without noise."""
    return covered(infer_together(analyst, trials, "naive", seed, None), trials, level)


def interval_widths(draws: Mapping[str, np.ndarray], level: float) -> dict[str, float]:
    """Return the width of the central interval of each parameter's draws."""
    tails = [(1 - level) / 2, (1 + level) / 2]
    return {name: float(np.diff(np.quantile(v, tails))[0]) for name, v in draws.items()}


def median_size(sizes: np.ndarray, n: int | None) -> float:
    """Return n, or the median group's size where n is not given."""
    return float(np.median(sizes)) if n is None else float(n)


def check_guesses(given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Raise an ArgumentError at a guess about something unknown, or that is not a number."""
    for name, value in given.items():
        if name not in known:
            raise ArgumentError(f"guess: {name!r} is unknown; known are {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise ArgumentError(f"guess: {name} must be a number, not {value!r}")


def simulated(
    release: Release,
    question: Question,
    n: int | None = None,
    pool: bool = False,
    features: Any = None,
    parent: str | None = None,
    asked_as: str | None = None,
) -> tuple[Simulator[Any], Any]:
    """Return the model's simulator, and the problem of this release with n records.

    Pooled groups are simulated together: one trial is a release of all of them.
    """
    model, stands_for = models.find_asked(release.family, asked_as)
    refuse_reserved(model, question.words)
    simulator = model.simulator()
    analyst = model.analyst()
    question = replace(
        question, pool=pooled_features(model, release, pool, features, parent),
        words={**question.words, **stands_for},
    )  # fmt: skip
    usable, _ = usable_groups([release], 0 if pool else analyst.least_records)
    problem = analyst.problem(usable, question)
    return simulator, simulator.template(problem, n)


def choose_methods(
    release: Release,
    methods: Iterable[str] | None,
    default: tuple[str, ...],
    pool: bool = False,
    asked_as: str | None = None,
) -> tuple[str, ...]:
    """Return the methods asked for, if they exist and give intervals (and pool, where asked to)."""
    model, _ = models.find_asked(release.family, asked_as)
    known = model.simulator().interval_methods or tuple(model.analyst().methods)
    if pool:
        known = default = model.analyst().pooling
    wanted = default if methods is None else tuple(methods)
    for method in wanted:
        if method not in known:
            raise ArgumentError(f"method: must be one of {', '.join(known)}, not {method!r}")
    if not wanted:
        raise ArgumentError("method: name at least one, or leave it out")
    return wanted


def settings_of(release: Release, problem: Any, simulator: Simulator[Any]) -> dict[str, Any]:
    """Return what was simulated, for people and files."""
    said = {
        "family": release.family,
        **simulator.settings(problem),
        "epsilon": release.guarantee.epsilon,
    }
    if release.bounds:
        said["bounds"] = {c: [b.lower, b.upper] for c, b in release.bounds.items()}
    cautions = clamping_in_words(release, taken_as_normal=simulator.clamping_biases)
    if cautions:
        said["cautions"] = list(cautions)
    return said


def noise(
    rng: np.random.Generator, scale: float, mechanism: str, shape: tuple[int, ...], *, whole: bool
) -> np.ndarray:
    """Draw Laplace or normal noise; on whole numbers discrete Laplace, or the normal rounded."""
    if mechanism == "laplace":
        return discrete_laplace(rng, scale, shape) if whole else rng.laplace(0, scale, shape)
    drawn = rng.normal(0, scale, shape)
    return np.rint(drawn) if whole else drawn


def discrete_laplace(rng: np.random.Generator, scale: float, shape: tuple[int, ...]) -> np.ndarray:
    """Draw whole k with P(k) ∝ exp(-|k|/scale): the difference of two geometric variates."""
    p = -np.expm1(-1 / scale)
    return (rng.geometric(p, shape) - rng.geometric(p, shape)).astype(float)

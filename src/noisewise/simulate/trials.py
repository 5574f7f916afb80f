"""What the simulators of all models share: trials, outcomes, and the records of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.diagnostics import Coverage, coverage
from noisewise.inference.posterior import Posterior
from noisewise.models.base import Analyst, Progress, Simulator

CHAINS, DRAWS = 4, 1000
"""Of every trial, as ``infer`` has by default."""

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
        """The parameters."""

    @property
    def guess(self) -> Mapping[str, float]:
        """The guessed truth, name by name."""

    @property
    def outside(self) -> Mapping[str, float]:
        """The share of records outside the bounds, by column."""

    def trials(self, problem: Q, seed: int) -> Trials[Any]:
        """Return trials with that problem's noise on the sums."""

    def width_without_privacy(self, seed: int, level: float) -> np.ndarray:
        """Return mean widths with neither noise nor clamping."""

    def coverage_without_noise(self, seed: int, level: float) -> np.ndarray:
        """Return the coverage of the sums as the owner has them, clamped records included."""

    def prior_width(self, level: float) -> dict[str, float]:
        """Return the widths of the prior's own intervals."""


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


def interval_widths(draws: Mapping[str, np.ndarray], level: float) -> dict[str, float]:
    """Return the width of the central interval of each parameter's draws."""
    tails = [(1 - level) / 2, (1 + level) / 2]
    return {name: float(np.diff(np.quantile(v, tails))[0]) for name, v in draws.items()}


def median_size(sizes: np.ndarray, n: int | None) -> float:
    """Return n, or the median group's size where n is not given."""
    return float(np.median(sizes)) if n is None else float(n)


def check_guesses(given: Mapping[str, float], known: tuple[str, ...]) -> None:
    """Raise an ArgumentError at a guess about something unknown."""
    for name in given:
        if name not in known:
            raise ArgumentError(f"guess: {name!r} is unknown; known are {', '.join(known)}")

"""Trials that are whole releases of groups that learn from each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from noisewise.models.base import Progress
from noisewise.simulate.trials import Outcome, Trials

if TYPE_CHECKING:
    from noisewise.inference.results import Posterior

Q = TypeVar("Q")

PLANNED_TRIALS = 10
"""Simulated releases of a plan for every ε: each takes as long as an inference (chosen)."""
MAX_PROPOSALS = 100_000
"""Populations that are drawn before a trial is given up (chosen)."""


@dataclass(frozen=True, eq=False)
class PooledTrials(Trials[Q], Generic[Q]):
    """Simulated releases, each with all its groups.

    ``truth`` (row, parameter) is of all groups, release after release; or, where ``names`` has
    parameters of the population, of one group and of the population of every release. ``own``:
    which names are parameters of a group; ``judged``: the place of that one group, by release.
    """

    releases: tuple[Q, ...] = ()
    own: tuple[str, ...] = ()
    judged: tuple[int, ...] = ()


def releases_of(trials: Trials[Q]) -> int:
    """Return how many releases the trials are of."""
    return len(trials.releases) if isinstance(trials, PooledTrials) else len(trials.truth)


def run(
    trials: PooledTrials[Q],
    infer: Callable[[Q, int], Posterior],
    seed: int,
    progress: Progress | None = None,
) -> Outcome:
    """Infer every release.

    Args:
        trials: what was simulated.
        infer: returns the posterior of a release, given a seed.
        seed: of the first release; every further one has the next.
        progress: called with releases done and in all.
    """
    draws: list[np.ndarray] = []
    unconverged = 0.0
    of_groups = set(trials.names) == set(trials.own)
    for number, release in enumerate(trials.releases):
        post = infer(release, seed + number)
        if of_groups:
            flat = [post.draws[n].reshape(len(post.draws[n]), -1) for n in trials.names]
            draws += list(np.stack(flat, axis=-1))
        else:
            shared = {} if post.population is None else post.population.draws
            one = trials.judged[number]
            drawn = [post.draws[n][one] if n in trials.own else shared[n] for n in trials.names]
            draws.append(np.stack([values.ravel() for values in drawn], axis=-1))
        unconverged += not post.converged
        if progress is not None:
            progress(number + 1, len(trials.releases))
    return Outcome(np.stack(draws), unconverged / len(trials.releases))

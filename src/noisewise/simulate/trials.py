"""What simulators share: a problem whose groups are trials, and the truth of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisewise.inference import METHODS, Posterior

Report = Callable[[int, int], None]

CHAINS, DRAWS = 4, 1000
GRAPHICAL_CHAINS, GRAPHICAL_DRAWS = 2, 500
"""Seconds a trial: as few as tell whether a marginal has converged."""


@dataclass(frozen=True, eq=False)
class Trials:
    """``truth`` (trial, parameter) in the user's units, in the order of ``names``.

    ``problem`` has the trials as its groups; of graphical models it is a list of problems.
    """

    family: str
    problem: Any
    truth: np.ndarray
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Draws (trial, draw, parameter), and the share of trials that did not converge."""

    draws: np.ndarray
    unconverged: float


def run(trials: Trials, method: str, seed: int, progress: Report | None = None) -> Outcome:
    """All trials as one batch, by one of the library's methods; graphical models one by one."""
    if trials.family == "graphical-model":
        return graphical_outcome(trials, seed, progress)
    post: Posterior = METHODS[trials.family][method](trials.problem, seed, CHAINS, DRAWS, progress)
    flat = [post.draws[name].reshape(len(trials.truth), -1) for name in trials.names]
    return Outcome(np.stack(flat, axis=-1), len(post.unconverged) / len(trials.truth))


def graphical_outcome(trials: Trials, seed: int, progress: Report | None) -> Outcome:
    """By ``bayes``, the one method of graphical models that gives intervals."""
    from noisewise.models.graphical_model import nuts
    from noisewise.models.graphical_model.simulate import shares

    drawn, stuck = [], 0
    for number, problem in enumerate(trials.problem):
        post = nuts.run(problem, seed + number, GRAPHICAL_CHAINS, GRAPHICAL_DRAWS)
        stuck += not post.converged
        drawn.append(shares(problem, post.marginal_draws)[1].reshape(-1, len(trials.names)))
        if progress is not None:
            progress(number + 1, len(trials.problem))
    return Outcome(np.stack(drawn), stuck / len(drawn))

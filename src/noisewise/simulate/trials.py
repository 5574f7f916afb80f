"""What simulators share: a problem whose groups are trials, and the truth of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisewise.infer import METHODS, Posterior

Report = Callable[[int, int], None]

CHAINS, DRAWS = 4, 1000


@dataclass(frozen=True, eq=False)
class Trials:
    """``truth`` (trial, parameter) in the user's units, in the order of ``names``."""

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
    """All trials as one batch, by one of the library's methods."""
    post: Posterior = METHODS[trials.family][method](trials.problem, seed, CHAINS, DRAWS, progress)
    flat = [post.draws[name].reshape(len(trials.truth), -1) for name in trials.names]
    return Outcome(np.stack(flat, axis=-1), len(post.unconverged) / len(trials.truth))

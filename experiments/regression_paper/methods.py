"""Every method of the regression papers on one batch of simulated releases."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.regression_paper.simulate import EXACT, Sensitivity, as_printed, simulate, tight
from noisewise.inference import methods
from noisewise.models.linear_regression.problem import subset
from noisewise.numerics.convergence import diagnose_groups

NAMES = (
    "non-private",
    "naive",
    "gibbs-noisy",
    "gibbs-prior",
    "gibbs-update",
    "mcmc-individual",
    "exact",
)
"""In the papers' order; ``exact`` is ours. Non-private is no release: it sees the exact sums."""
NOISE_AWARE = NAMES[2:]
PAPERS_OWN = NAMES[2:6]
GIBBS = NAMES[2:5]

SENSITIVITIES = {"as printed": as_printed, "ours": tight}


@dataclass(frozen=True)
class Batch:
    """Which simulated releases: their data depend on neither method nor sensitivity."""

    trials: int
    n: int
    epsilon: float
    d: int
    seed: int
    sensitivity: str = "as printed"

    @property
    def widths(self) -> Sensitivity:
        """In numbers."""
        return SENSITIVITIES[self.sensitivity](self.d)


@dataclass(frozen=True, eq=False)
class Answer:
    """Draws (trial, draw, parameter), the truth (trial, parameter), ESS (trial, parameter)."""

    draws: np.ndarray
    truth: np.ndarray
    ess: np.ndarray
    seconds: float


def answer(method: str, batch: Batch, chains: int, draws: int, burn_in: int = 0) -> Answer:
    """All trials of the batch at once (but ``mcmc-individual``: one after the other).

    ``burn_in`` draws come before those that are kept, on top of the method's own; a draw of a Gibbs
    sampler is ten sweeps.
    """
    private = method != "non-private"
    problem, truth = simulate(
        batch.trials, batch.n, batch.epsilon, batch.d, batch.seed,
        monomials=method == "gibbs-noisy",
        sensitivity=batch.widths if private else EXACT,
    )  # fmt: skip
    # The conjugate posterior of the exact sums is what naive computes, had they been released.
    run: Any = methods("linear-regression")[method if private else "naive"]
    if method == "mcmc-individual":
        # It compiles for every n; the clock should not see that.
        run(subset(problem, np.array([0])), batch.seed, chains, draws, None)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        post = run(problem, batch.seed, chains, burn_in + draws, None)
    seconds = time.perf_counter() - start
    kept = [v[..., burn_in:] for v in post.draws.values()]
    ess = [diagnose_groups(v)[1] for v in kept] if burn_in else list(post.ess.values())
    flat = [v.reshape(len(v), -1) for v in kept]
    return Answer(np.stack(flat, axis=-1), truth, np.stack(ess, axis=-1), seconds)

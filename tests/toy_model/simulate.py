"""The simulator: releases like a given one, for ``check`` and ``plan``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from noisewise.simulate.trials import (
    BatchSimulator,
    Trials,
    check_guesses,
    noise,
)
from tests.toy_model.analyst import ANALYST, TwoMeansProblem


def trials_at(
    rng: np.random.Generator, problem: TwoMeansProblem, sums: np.ndarray, box: np.ndarray
) -> Trials[TwoMeansProblem]:
    """Return trials whose exact sums (trial, column) are given, with this problem's noise."""
    z = sums + noise(rng, problem.noise_scale, problem.mechanism, sums.shape, whole=False)
    n = np.full(len(z), problem.n[0])
    many = replace(problem, z=z, n=n, keys=tuple(range(len(z))))
    return Trials(many, problem.centre + problem.half * box, problem.columns)


def sums_at(rng: np.random.Generator, problem: TwoMeansProblem, box: np.ndarray) -> np.ndarray:
    """Return sums of n normal records about the means ``box`` (trial, column)."""
    n = problem.n[0]
    return n * box + np.sqrt(n) * problem.spread * rng.standard_normal(box.shape)


@dataclass(frozen=True, eq=False)
class TwoMeansScene:
    """Sums of a plan's records, at one guessed pair of means."""

    problem: TwoMeansProblem
    box: np.ndarray
    sums: np.ndarray
    guess: Mapping[str, float]
    outside: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parameters."""
        return self.problem.columns

    def trials(self, problem: TwoMeansProblem, seed: int) -> Trials[TwoMeansProblem]:
        """Return trials with that problem's noise on the sums."""
        return trials_at(np.random.default_rng([seed, 1]), problem, self.sums, self.box)

    def width_without_privacy(self, seed: int, level: float) -> np.ndarray:
        """Return the widths of normal intervals of the means."""
        deviation = self.problem.half * self.problem.spread / np.sqrt(self.problem.n[0])
        return np.asarray(2 * norm.ppf((1 + level) / 2) * deviation)

    def prior_width(self, level: float) -> dict[str, float]:
        """Return the widths of the uniform prior's intervals."""
        return dict(zip(self.names, (2 * level * self.problem.half).tolist(), strict=True))


class TwoMeansSimulator(BatchSimulator[TwoMeansProblem]):
    """Simulated sums of two columns."""

    analyst = ANALYST
    reference_method = "exact"

    def from_prior(
        self, rng: np.random.Generator, problem: TwoMeansProblem, trials: int
    ) -> Trials[TwoMeansProblem]:
        """Draw means from the prior, and a simulated release of each."""
        box = rng.uniform(-1, 1, (trials, 2))
        return trials_at(rng, problem, sums_at(rng, problem, box), box)

    def scene(
        self, problem: TwoMeansProblem, n: int, guesses: Mapping[str, float], trials: int, seed: int
    ) -> TwoMeansScene:
        """Make sums at the guessed means; the middle of the bounds unless given."""
        check_guesses(guesses, problem.columns)
        middle = dict(zip(problem.columns, problem.centre.tolist(), strict=True))
        guess = {**middle, **guesses}
        user = np.array([guess[c] for c in problem.columns])
        box = np.tile((user - problem.centre) / problem.half, (trials, 1))
        sums = sums_at(np.random.default_rng([seed, 0]), problem, box)
        return TwoMeansScene(problem, box, sums, guess, {})

    def settings(self, problem: TwoMeansProblem) -> dict[str, object]:
        """Return what is simulated, for people and files."""
        return {
            "what": f"means of {' and '.join(problem.columns)}",
            "n": round(float(problem.n[0])),
            "mechanism": problem.mechanism,
            "noise_scale": problem.noise_scale,
        }


SIMULATOR = TwoMeansSimulator()

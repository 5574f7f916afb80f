"""The posterior predictive distribution: parameter uncertainty and scatter of records together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from noisewise.artifact import ArgumentError


@dataclass(frozen=True, eq=False)
class Prediction:
    """Draws of a new y (and of its mean), shaped like the posterior's draws."""

    draws: np.ndarray
    expected: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """The point prediction, one per group where grouped."""
        return np.asarray(self.expected.mean(axis=(-2, -1)))

    def interval(self, level: float = 0.9) -> np.ndarray:
        """Central interval of a new record's y: (lower, upper), leading with the group."""
        return self._central(self.draws, level)

    def mean_interval(self, level: float = 0.9) -> np.ndarray:
        """Central interval of the regression line itself."""
        return self._central(self.expected, level)

    @staticmethod
    def _central(values: np.ndarray, level: float) -> np.ndarray:
        if not 0 < level < 1:
            raise ArgumentError(f"level: must be between 0 and 1, not {level!r}")
        tails = [(1 - level) / 2, (1 + level) / 2]
        return np.moveaxis(np.quantile(values, tails, axis=(-2, -1)), 0, -1)


def predict(draws: Mapping[str, np.ndarray], at: Mapping[str, float], seed: int) -> Prediction:
    """y = θᵀ(x, 1) + N(0, σ²), draw by draw."""
    line = np.array(draws["intercept"])
    for column, value in at.items():
        line = line + draws[column] * value
    noise = np.random.default_rng(seed).standard_normal(line.shape)
    return Prediction(line + noise * np.sqrt(draws["sigma2"]), line)

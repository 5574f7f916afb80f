"""The posterior predictive distribution: parameter uncertainty and scatter of records together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from noisewise.artifact import ArgumentError


@dataclass(frozen=True, eq=False)
class Prediction:
    """Draws of a new y (and of its mean), shaped like the posterior's draws.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> owns = pd.DataFrame({"owns": [0, 1, 1, 1] * 50})
        >>> release = nw.release.exponential_family(
        ...     owns, column="owns", family="bernoulli", epsilon=1.0
        ... )
        >>> prediction = nw.infer(release).predict(seed=1)
        >>> prediction.draws.shape, prediction.interval(0.9).shape
        ((4, 1000), (2,))
        >>> 0 < float(prediction.mean) < 1
        True
    """

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


@dataclass(frozen=True, eq=False)
class CategoryPrediction(Prediction):
    """A new record's category: ``draws`` holds levels, ``expected`` their probabilities (last)."""

    levels: tuple[str | int, ...] = ()

    @property
    def probabilities(self) -> dict[str | int, np.ndarray]:
        """Of every level, one number per group where grouped."""
        mean = self.expected.mean(axis=(-3, -2))
        return {level: np.asarray(mean[..., i]) for i, level in enumerate(self.levels)}

    @property
    def mean(self) -> np.ndarray:
        """Categories have none."""
        raise ArgumentError("mean: categories have none; see probabilities")

    def interval(self, level: float = 0.9) -> np.ndarray:
        """Categories have none."""
        raise ArgumentError("interval: categories have none; see probabilities")

    def mean_interval(self, level: float = 0.9) -> np.ndarray:
        """Categories have none."""
        raise ArgumentError("mean_interval: categories have none; see probabilities")

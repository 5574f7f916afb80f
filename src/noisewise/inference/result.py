"""What every result of ``infer`` can be asked, whatever the model, and its predictions.

A prediction is the posterior predictive distribution of a new record: parameter uncertainty and
scatter of records together.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from noisewise.artifact import ArgumentError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from arviz import InferenceData


class Result(ABC):
    """A posterior, or a fitted model, with a plain word on whether to trust it.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> release = nw.release.exponential_family(
        ...     pd.DataFrame({"owns": [0, 1, 1, 1] * 50}), column="owns", family="bernoulli",
        ...     epsilon=1.0,
        ... )
        >>> result = nw.infer(release)
        >>> result.method, list(result.summary().index)
        ('exact', ['p'])
    """

    model_name: ClassVar[str]
    """The model, as release files and the command line call it."""
    method: str
    """How it was inferred."""
    draws: Mapping[Any, np.ndarray]
    """Draws by name: arrays (chain, draw), or (group, chain, draw) where grouped."""
    predicts_clamped: ClassVar[bool] = False
    """Whether ``predict`` takes ``clamped=True``: new records moved to the bounds."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Return what the result is of, such as ``spend on age, income``."""

    @property
    @abstractmethod
    def converged(self) -> bool:
        """Return whether the computation can be trusted."""

    @property
    @abstractmethod
    def status(self) -> str:
        """Say whether the computation can be trusted, and what to do if not."""

    @abstractmethod
    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """Return means and central intervals, one row per parameter (and group)."""

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a file that ``nw.load`` reads back; it appears whole or not at all."""

    @property
    def covariates(self) -> tuple[str, ...]:
        """Return the columns to which a prediction needs values."""
        return ()

    @property
    def convergence(self) -> str:
        """Say whether the computation converged; ``status`` without the cautions."""
        return self.status

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return what to know before the numbers, a sentence each, without its full stop."""
        return ()

    def predict(self, new_x: Mapping[str, float] | None = None, *, seed: int = 0) -> Prediction:
        """Return the distribution of a new record, where the model has one."""
        raise ArgumentError(f"predict: a {self.model_name} result predicts no single record")

    def sample(self, n: int, *, seed: int = 0) -> pd.DataFrame:
        """Return n synthetic records, where the model makes some."""
        raise ArgumentError(f"sample: a {self.model_name} result makes no synthetic records")

    def marginal(self, columns: str | Iterable[str]) -> xr.DataArray:
        """Return the joint probabilities of some columns' levels, where the model has them."""
        raise ArgumentError(f"marginal: a {self.model_name} result has no table of levels")

    @property
    def has_intervals(self) -> bool:
        """Return whether ``interval`` gives intervals of the probabilities in ``marginal``."""
        return False

    def interval(self, columns: str | Iterable[str], level: float = 0.95) -> xr.DataArray:
        """Return central intervals of ``marginal``, along a dimension of ``lower`` and ``upper``.

        A name is added to the dimensions of ``marginal``, that of the bound.
        """
        raise ArgumentError(f"interval: a {self.model_name} result has none for a table of levels")

    def to_arviz(self) -> InferenceData:
        """Return the draws as ArviZ's own type (dims chain, draw, group)."""
        from noisewise.inference.arviz import inference_data

        return inference_data(self.draws, None)


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
        """Return the point prediction, one per group where grouped."""
        return np.asarray(self.expected.mean(axis=(-2, -1)))

    def interval(self, level: float = 0.9) -> np.ndarray:
        """Return the central interval (lower, upper) of a new y, leading with the group."""
        return self._central(self.draws, level)

    def mean_interval(self, level: float = 0.9) -> np.ndarray:
        """Return the central interval of the regression line itself."""
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
        """Return the probability of every level, one number per group where grouped."""
        mean = self.expected.mean(axis=(-3, -2))
        return {level: np.asarray(mean[..., i]) for i, level in enumerate(self.levels)}

    @property
    def mean(self) -> np.ndarray:
        """Raise an ArgumentError: categories have probabilities only."""
        raise ArgumentError("mean: categories have none; see probabilities")

    def interval(self, level: float = 0.9) -> np.ndarray:
        """Raise an ArgumentError: categories have probabilities only."""
        raise ArgumentError("interval: categories have none; see probabilities")

    def mean_interval(self, level: float = 0.9) -> np.ndarray:
        """Raise an ArgumentError: categories have probabilities only."""
        raise ArgumentError("mean_interval: categories have none; see probabilities")

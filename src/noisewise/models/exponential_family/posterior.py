"""The posterior of one column's exponential family: its parameters, and a new record."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.inference.posterior import Posterior
from noisewise.inference.prediction import CategoryPrediction, Prediction
from noisewise.models.exponential_family.discrete_families import Categorical
from noisewise.models.exponential_family.family import Family


@dataclass(frozen=True, eq=False, repr=False)
class FamilyPosterior(Posterior):
    """Draws of the parameters of ``family``, which column ``y`` follows."""

    model_name = "exponential-family"
    y: str
    family: Family

    @property
    def x(self) -> tuple[str, ...]:
        """No covariates: the empty tuple."""
        return ()

    @property
    def title(self) -> str:
        """The column and its family."""
        return f"{self.y} ({self.family.name})"

    def attributes(self) -> dict[str, object]:
        """Return the column and the family with its known parameters, for a file."""
        known = dataclasses.asdict(self.family)
        return {"x": [], "y": self.y, "family": {"name": self.family.name, "known": known}}

    def predict(self, new_x: Mapping[str, float] | None = None, *, seed: int = 0) -> Prediction:
        """Return the distribution of one new record: a draw for every draw of the parameters.

        Args:
            new_x: must be left out, since there are no covariates.
            seed: of the new record's scatter.
        """
        if new_x:
            raise ArgumentError("new_x: there are no covariates; leave it out")
        theta = np.stack(list(self.draws.values()), axis=-1)
        records = self.family.records(np.random.default_rng(seed), theta)
        if isinstance(self.family, Categorical):
            levels = self.family.levels
            return CategoryPrediction(np.array(levels)[records], theta, levels)
        return Prediction(records, self.family.mean(theta))

    def __repr__(self) -> str:
        how = f"{self.family.name} by {self.method}, prior {self.prior}"
        return f"<Posterior of {self.y}, {how}: {self.status}>"

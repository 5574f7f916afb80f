"""The posterior of a linear regression: coefficients, error variance, predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, Censored
from noisewise.artifact.clamping import clamping_in_words
from noisewise.artifact.user_warnings import warn_user
from noisewise.inference.results import Posterior, Prediction
from noisewise.models.linear_regression.censoring import KNOWING_CUTS, clamped_margin


@dataclass(frozen=True, eq=False, repr=False)
class RegressionPosterior(Posterior):
    """Draws of the slopes (named as ``x``), of ``intercept`` and of ``sigma2``."""

    model_name = "linear-regression"
    predicts_clamped = True
    x: tuple[str, ...]
    y: str

    @property
    def title(self) -> str:
        """The response and its covariates."""
        return f"{self.y} on {', '.join(self.x)}"

    @property
    def covariates(self) -> tuple[str, ...]:
        """The columns to which a prediction needs values."""
        return self.x

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return which columns were clamped and which the noise hides."""
        columns = (*self.x, self.y)
        clamped = (
            clamping_in_words(
                release, columns, taken_as_normal=True, knows_cuts=self.method in KNOWING_CUTS
            )
            for release in self.releases
        )
        return (*dict.fromkeys(words for sentences in clamped for words in sentences),
                *self._hidden())  # fmt: skip

    def _hidden(self) -> list[str]:
        """Return which columns the noise hides, and what would help."""
        hidden = [c for c in self.details.get("hidden") or () if c in self.x]
        words = []
        if hidden:
            verb, slope = ("varies", "its slope") if len(hidden) == 1 else ("vary", "their slopes")
            words.append(
                f"The noise hides how much {', '.join(hidden)} {verb}, so {slope} and the "
                "intercept may be hardly known"
            )
        if self.y in (self.details.get("hidden") or ()):
            words.append(f"The noise hides how much {self.y} varies, so sigma2 is hardly known")
        if words:
            words.append(
                "Narrower bounds, more records or a larger epsilon would help the next release"
            )
        return words

    def attributes(self) -> dict[str, object]:
        """Return the columns, for a file."""
        return {"x": list(self.x), "y": self.y}

    def predict(
        self,
        new_x: Mapping[str, float] | None = None,
        *,
        seed: int = 0,
        clamped: bool = False,
    ) -> Prediction:
        """Return the posterior predictive of y at given covariates, in the user's units.

        y = θᵀ(x, 1) + N(0, σ²), draw by draw. A UserWarning tells of covariates outside the
        release's public bounds, where no record was seen.

        Args:
            new_x: a value for each covariate.
            seed: of the new record's scatter.
            clamped: move new records to the bounds of y, as the owner moves those beyond them.
        """
        at = self._checked(new_x)
        for warning in self._beyond_bounds(at):
            warn_user(warning)
        line = np.array(self.draws["intercept"])
        for column, value in at.items():
            line = line + self.draws[column] * value
        scatter = np.random.default_rng(seed).standard_normal(line.shape)
        records = line + scatter * np.sqrt(self.draws["sigma2"])
        if not clamped:
            return Prediction(records, line)
        if not self.releases:
            raise ArgumentError("clamped: this posterior has no release that says the bounds")
        bounds = self.releases[0].bounds[self.y]
        return Prediction(
            np.clip(records, bounds.lower, bounds.upper),
            _expected_within(line, np.sqrt(self.draws["sigma2"]), bounds),
        )

    def _checked(self, new_x: Mapping[str, float] | None) -> dict[str, float]:
        if not isinstance(new_x, Mapping) or set(new_x) != set(self.x):
            raise ArgumentError(
                f"new_x: must give a value to each of {', '.join(self.x)}, and to nothing else"
            )
        at = {}
        for column in self.x:
            value = new_x[column]
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise ArgumentError(f"new_x[{column!r}]: must be one number, not {value!r}")
            if not np.isfinite(value):
                raise ArgumentError(f"new_x[{column!r}]: must be a finite number, not {value!r}")
            at[column] = float(value)
        return at

    def _beyond_bounds(self, at: Mapping[str, float]) -> list[str]:
        """Return a sentence for each covariate beyond its bounds (a file by hand has none)."""
        bounds = self.releases[0].bounds if self.releases else {}
        return [
            f"{column} = {value:g} lies outside its public bounds, {bounds[column].lower:g} to "
            f"{bounds[column].upper:g}: {_seen_there(bounds[column])}, and the prediction extends "
            "a straight line"
            for column, value in at.items()
            if column in bounds and not bounds[column].lower <= value <= bounds[column].upper
        ]


def _seen_there(bounds: Bounds) -> str:
    return "records there were cut off" if isinstance(bounds, Censored) else "no record was seen"


def _expected_within(mean: np.ndarray, deviation: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Return the mean of normal records that are moved to their bounds."""
    half = bounds.half_width
    boxed = clamped_margin((mean - bounds.centre) / half, deviation / half, True, True)
    return bounds.centre + half * boxed.mean

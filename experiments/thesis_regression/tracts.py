"""Tracts of the case study (thesis 5.4.1): generated to the published form, or a user's own file.

Published: 3,108 tracts of 20 to 446 people with a long tail; parents' and children's income ranks
(pir, kir) in [0, 1]; 363 tracts (12 %) whose median kir is below 0.1 or above 0.9 are left out; a
prior said to match the general trend, NIG([.1, .5], diag(.001, .001), 1000, .5); and one for the
covariate, NIW(.5, 1, 1, 50). What they imply, and the generator does: tracts' levels are spread so
widely that 12 % of them have such medians; slopes scatter around 0.1 as levels do around 0.5 (the
prior gives both one spread); people lie close to their tract's line, σ² ≈ 0.0005; and pir varies by
about 0.02 to 0.03 both between tracts and within them.
The real file was simulated too, by Opportunity Insights; it is not ours to ship.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from noisewise.datasets import tract_sizes

COLUMNS = ("tract", "pir", "kir")
SLOPE, LEVEL, SPREAD = 0.1, 0.5, 0.255
"""P(|N(0.5, 0.255²) - 0.5| > 0.4) = 0.117 = 363/3108."""
VARIANCE, SHAPE = 0.0005, 20.0
AT = 0.25


@dataclass(frozen=True, eq=False)
class Tracts:
    """People (tract, pir, kir; tracts 0, 1, …), and each tract's true line where it is known."""

    tract: np.ndarray
    pir: np.ndarray
    kir: np.ndarray
    names: np.ndarray
    truth: np.ndarray | None = None

    @property
    def sizes(self) -> np.ndarray:
        """People per tract."""
        return np.bincount(self.tract, minlength=len(self.names))

    def people(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """pir and kir of one tract."""
        here = self.tract == number
        return self.pir[here], self.kir[here]


def generated(tracts: int, seed: int) -> Tracts:
    """All tracts before the filter; truth holds slope, intercept, σ²."""
    rng = np.random.default_rng([seed, tracts])
    sizes = tract_sizes(rng, tracts)
    tract = np.repeat(np.arange(tracts), sizes)
    # Neighbourhoods differ in wealth (variance 0.028); within one, pir has a variance of 0.027.
    wealth, spread = rng.beta(4, 4, tracts), rng.uniform(4, 12, tracts)
    pir = rng.beta((wealth * spread)[tract], ((1 - wealth) * spread)[tract])
    slope = rng.normal(SLOPE, SPREAD, tracts)
    intercept = rng.normal(LEVEL, SPREAD, tracts) - slope * wealth
    variance = VARIANCE * (SHAPE - 1) / rng.standard_gamma(SHAPE, tracts)
    line = intercept[tract] + slope[tract] * pir
    kir = line + np.sqrt(variance)[tract] * rng.standard_normal(len(tract))
    truth = np.column_stack([slope, intercept, variance])
    return Tracts(tract, pir, np.clip(kir, 0, 1), np.arange(tracts), truth)


def loaded(path: str | Path) -> Tracts:
    """A user's CSV or Parquet file with columns tract, pir, kir: one row per person."""
    path = Path(path)
    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    missing = [c for c in COLUMNS if c not in table]
    if missing:
        raise ValueError(f"{path.name}: has no column {missing[0]!r}; wanted: {', '.join(COLUMNS)}")
    ranks = table[["pir", "kir"]].to_numpy(float)
    if not ((ranks >= 0) & (ranks <= 1)).all():
        raise ValueError(f"{path.name}: pir and kir must all lie from 0 to 1")
    names, tract = np.unique(table["tract"].to_numpy(), return_inverse=True)
    return Tracts(tract, ranks[:, 0], ranks[:, 1], names)


def filtered(every: Tracts, low: float = 0.1, high: float = 0.9) -> Tracts:
    """Without tracts whose median kir is below ``low`` or above ``high`` (looks at the data)."""
    medians = pd.Series(every.kir).groupby(every.tract).median().to_numpy()
    kept = (medians >= low) & (medians <= high)
    renumbered = np.cumsum(kept) - 1
    people = kept[every.tract]
    return Tracts(
        renumbered[every.tract[people]], every.pir[people], every.kir[people], every.names[kept],
        None if every.truth is None else every.truth[kept],
    )  # fmt: skip

"""The synthetic study behind Fig. 3 (thesis 5.4-5.8): every method in every cell (n, ε).

All methods see the same simulated data sets. The text prints ε = 0.1 (against n) and n = 10
(against ε) only; the other values of ε are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from experiments.regression_paper.methods import GIBBS, Answer, Batch, answer
from experiments.reproduce.store import TrialStore
from noisewise import diagnostics

KINDS = ("slope", "intercept", "variance")


@dataclass(frozen=True)
class Study:
    """Its name in settings.json; how figures of it are called and titled."""

    name: str
    paper: str
    suffix: str = ""
    told: str = ""


ONE = Study("regression-study", "regression paper")
FIVE = Study("regression-study-d5", "beyond the regression paper", "-d5", ", five covariates")


def cells(settings: Mapping[str, Any]) -> Iterator[tuple[str, Batch]]:
    """(method, batch), cell by cell."""
    grid = [(n, settings["epsilon"]) for n in settings["sizes"]]
    grid += [(settings["n"], e) for e in settings["epsilons"] if e != settings["epsilon"]]
    for sensitivity, methods in settings["methods"].items():
        for n, epsilon in grid:
            for method in methods:
                trials = settings["trials"]
                if method == "mcmc-individual":
                    # One release after the other, at a cost that grows with n: fewer trials.
                    trials = settings["individual_trials"].get(f"{n}, {epsilon:g}", 0)
                elif method in GIBBS and "gibbs" in settings:
                    trials = settings["gibbs"].get("trials", trials)
                if trials:
                    batch = Batch(trials, n, epsilon, settings["d"], settings["seed"], sensitivity)
                    yield method, batch


def table(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """One row per cell, method, sensitivity and parameter, with the ranks ``u`` of the truth."""
    rows: list[dict[str, Any]] = []
    for method, batch in cells(settings):
        key = {
            "d": batch.d, "n": batch.n, "epsilon": batch.epsilon, "method": method,
            "sensitivity": batch.sensitivity, "trials": batch.trials,
        }  # fmt: skip
        rows += trials.cell(key, lambda m=method, b=batch: judged(m, b, settings))
    return pd.DataFrame(rows)


def judged(method: str, batch: Batch, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Calibration, coverage, closeness to the non-private posterior, effective draws, seconds."""
    chains, draws = settings["chains"], settings["draws"]
    if method == "mcmc-individual":
        found = answer(method, batch, chains, settings["individual_draws"])
    elif method in GIBBS and "gibbs" in settings:
        own = settings["gibbs"]
        found = answer(method, batch, own["chains"], own["draws"], own["burn_in"][str(batch.n)])
    else:
        found = answer(method, batch, chains, draws)
    exact = answer("non-private", batch, chains, draws)
    apart = utility(found, exact, settings["mmd_draws"])
    u = diagnostics.ranks(found.draws, found.truth)
    expected = float(stats.kstwo.mean(batch.trials))
    covered = diagnostics.coverage(found.draws, found.truth, 0.95)
    rows = []
    for place in range(u.shape[1]):
        distance = diagnostics.ks(u[:, place])
        rows.append({
            "parameter": name(place, batch.d), "kind": kind(place, batch.d),
            "ks": distance.statistic, "beyond": distance.statistic - expected,
            "p_value": distance.p_value,
            "coverage": covered.share[place], "width": covered.width[place], "mmd": apart,
            "ess": np.median(found.ess[:, place]), "seconds": found.seconds / batch.trials,
            "u": np.round(u[:, place], 5).tolist(),
        })  # fmt: skip
    return rows


def utility(found: Answer, exact: Answer, draws: int) -> float:
    """Mean MMD² to the non-private posterior of (θ, σ²), draws spread over all chains."""
    some = np.linspace(0, found.draws.shape[1] - 1, draws).round().astype(int)
    # Other draws of the non-private posterior, where it is compared with itself.
    rest = np.linspace(1, exact.draws.shape[1] - 2, draws).round().astype(int)
    return float(diagnostics.mmd2(found.draws[:, some], exact.draws[:, rest]).mean())


def name(place: int, d: int) -> str:
    """Slopes first, then intercept and variance."""
    return f"slope {place + 1}" if place < d and d > 1 else kind(place, d)


def kind(place: int, d: int) -> str:
    """Slopes are exchangeable and shown together."""
    return KINDS[max(0, place - d + 1)]


def pick(table: pd.DataFrame, **words: Any) -> pd.DataFrame:
    """Rows where columns have these values."""
    for column, value in words.items():
        table = table[table[column] == value]
    return table

"""Section 3.2 in the text: with enough records the naive posterior becomes right. How many?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from experiments.regression_paper import pictures
from experiments.regression_paper.figures.both import AGAINST_N
from experiments.regression_paper.study import pick, table
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore

TITLE = "The naive posterior as records grow, ε = 10"
ALONG: Any = ((*AGAINST_N, {}),)


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """As in the study, with more records and a larger ε."""
    return table(settings, trials).drop(columns="u")


def measure(rows: pd.DataFrame) -> dict[str, float]:
    """What exceeds chance, at the papers' largest n and at ours."""
    naive = pick(rows, method="naive").groupby("n")["beyond"].mean()
    return {
        "KS beyond chance at n = 1000: naive": float(naive[1000]),
        "KS beyond chance at the largest n: naive": float(naive.iloc[-1]),
        "KS at the largest n over the largest KS: naive": float(naive.iloc[-1] / naive.max()),
    }


FIGURE = Figure(
    "regression-asymptotic", "regression paper", TITLE, run,
    lambda rows: pictures.calibration(rows, TITLE, ALONG), measure,
)  # fmt: skip

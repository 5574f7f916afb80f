"""Fig. 3c (thesis 5.5): the truth's quantiles against uniform ones, at n = 10 and ε = 0.1."""

from __future__ import annotations

import pandas as pd

from experiments.regression_paper import pictures
from experiments.regression_paper.figures.both import both
from experiments.regression_paper.measures import measures
from experiments.regression_paper.study import pick, table
from experiments.reproduce.figure import Settings
from experiments.reproduce.store import TrialStore


def run(settings: Settings, trials: TrialStore) -> pd.DataFrame:
    """One row per trial."""
    cell = pick(table(settings, trials), n=settings["n"], epsilon=settings["epsilon"])
    return cell.explode("u").astype({"u": float})


FIGURE, MANY = both(
    "3c",
    "Quantiles of the truth, n = 10, ε = 0.1",
    run,
    pictures.qq,
    lambda rows: measures(rows.drop(columns="u").drop_duplicates()),
)

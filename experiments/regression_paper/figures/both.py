"""A figure of the synthetic study, and the same with five covariates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from experiments.regression_paper.measures import measures
from experiments.regression_paper.study import FIVE, ONE, Study
from experiments.reproduce.figure import Figure, Settings
from experiments.reproduce.store import TrialStore

AGAINST_N = ("n", "number of records n")
AGAINST_EPSILON = ("epsilon", "privacy budget ε")
AGAINST_BOTH = ((*AGAINST_N, {"epsilon": 0.1}), (*AGAINST_EPSILON, {"n": 10}))


def both(
    letter: str,
    title: str,
    run: Callable[[Settings, TrialStore], pd.DataFrame],
    draw: Callable[[pd.DataFrame, str], Any],
    measure: Callable[[pd.DataFrame], dict[str, float]] = measures,
) -> tuple[Figure, Figure]:
    """``draw`` is told the title, which names the number of covariates."""

    def make(study: Study) -> Figure:
        told = f"{title}{study.told}"
        name = f"regression-{letter}{study.suffix}"
        return Figure(
            name, study.paper, told, run, lambda rows: draw(rows, told), measure, study.name
        )

    return make(ONE), make(FIVE)

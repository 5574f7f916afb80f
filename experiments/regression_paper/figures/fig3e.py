"""Fig. 3e (thesis 5.7): utility as closeness to the non-private posterior."""

from __future__ import annotations

from experiments.regression_paper import pictures
from experiments.regression_paper.figures.fig3d import ALONG
from experiments.regression_paper.measures import measures
from experiments.regression_paper.study import FIVE, ONE, Study, table
from experiments.reproduce.figure import Figure


def figure(study: Study) -> Figure:
    """For one or more covariates."""
    title = f"Utility against n (left, ε = 0.1) and ε (right, n = 10){study.told}"
    return Figure(
        f"regression-3e{study.suffix}",
        study.paper,
        title,
        lambda settings, trials: table(settings, trials).drop(columns="u"),
        lambda rows: pictures.utility(rows, title, ALONG),
        measures,
        study.name,
    )


FIGURE, MANY = figure(ONE), figure(FIVE)

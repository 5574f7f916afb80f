"""Fig. 3d (thesis 5.6): coverage of 95 % intervals, against n and against ε."""

from __future__ import annotations

from experiments.regression_paper import pictures
from experiments.regression_paper.figures import fig3a, fig3b
from experiments.regression_paper.measures import measures
from experiments.regression_paper.study import FIVE, ONE, Study, table
from experiments.reproduce.figure import Figure

ALONG = ((*fig3a.ALONG, {"epsilon": 0.1}), (*fig3b.ALONG, {"n": 10}))


def figure(study: Study) -> Figure:
    """For one or more covariates."""
    title = f"Coverage of 95 % intervals against n (ε = 0.1) and ε (n = 10){study.told}"
    return Figure(
        f"regression-3d{study.suffix}",
        study.paper,
        title,
        lambda settings, trials: table(settings, trials).drop(columns="u"),
        lambda rows: pictures.covering(rows, title, ALONG),
        measures,
        study.name,
    )


FIGURE, MANY = figure(ONE), figure(FIVE)

"""Fig. 3a (thesis 5.4, left): calibration against n, at ε = 0.1."""

from __future__ import annotations

from experiments.regression_paper import pictures
from experiments.regression_paper.measures import measures
from experiments.regression_paper.study import FIVE, ONE, Study, pick, table
from experiments.reproduce.figure import Figure

ALONG = ("n", "number of records n")


def figure(study: Study) -> Figure:
    """For one or more covariates."""
    title = f"Calibration against n, ε = 0.1{study.told}"
    return Figure(
        f"regression-3a{study.suffix}",
        study.paper,
        title,
        lambda settings, trials: pick(table(settings, trials), epsilon=settings["epsilon"]).drop(
            columns="u"
        ),
        lambda rows: pictures.calibration(rows, title, [(*ALONG, {})]),
        measures,
        study.name,
    )


FIGURE, MANY = figure(ONE), figure(FIVE)

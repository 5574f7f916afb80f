"""Fig. 3b (thesis 5.4, right): calibration against ε, at n = 10."""

from __future__ import annotations

from experiments.regression_paper import pictures
from experiments.regression_paper.measures import measures
from experiments.regression_paper.study import FIVE, ONE, Study, pick, table
from experiments.reproduce.figure import Figure

ALONG = ("epsilon", "privacy budget ε")


def figure(study: Study) -> Figure:
    """For one or more covariates."""
    title = f"Calibration against ε, n = 10{study.told}"
    return Figure(
        f"regression-3b{study.suffix}",
        study.paper,
        title,
        lambda settings, trials: pick(table(settings, trials), n=settings["n"]).drop(columns="u"),
        lambda rows: pictures.calibration(rows, title, [(*ALONG, {})]),
        measures,
        study.name,
    )


FIGURE, MANY = figure(ONE), figure(FIVE)

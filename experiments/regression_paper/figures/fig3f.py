"""Fig. 3f (thesis 5.8): running time against n, and what it buys in effective draws."""

from __future__ import annotations

from experiments.regression_paper import pictures
from experiments.regression_paper.measures import growth
from experiments.regression_paper.study import FIVE, ONE, Study, pick, table
from experiments.reproduce.figure import Figure


def figure(study: Study) -> Figure:
    """For one or more covariates."""
    title = f"Running time against n{study.told}"
    return Figure(
        f"regression-3f{study.suffix}",
        study.paper,
        title,
        lambda settings, trials: pick(table(settings, trials), sensitivity="as printed").drop(
            columns="u"
        ),
        lambda rows: pictures.running(rows, title),
        growth,
        study.name,
    )


FIGURE, MANY = figure(ONE), figure(FIVE)

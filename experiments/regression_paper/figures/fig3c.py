"""Fig. 3c (thesis 5.5): the truth's quantiles against uniform ones, at n = 10 and ε = 0.1."""

from __future__ import annotations

from experiments.regression_paper import pictures
from experiments.regression_paper.measures import measures
from experiments.regression_paper.study import FIVE, ONE, Study, pick, table
from experiments.reproduce.figure import Figure


def figure(study: Study) -> Figure:
    """For one or more covariates."""
    title = f"Quantiles of the truth, n = 10, ε = 0.1{study.told}"

    def one_row_per_trial(settings, trials):  # type: ignore[no-untyped-def]
        cell = pick(table(settings, trials), n=settings["n"], epsilon=settings["epsilon"])
        return cell.explode("u").astype({"u": float})

    def measured(rows):  # type: ignore[no-untyped-def]
        return measures(rows.drop(columns="u").drop_duplicates())

    return Figure(
        f"regression-3c{study.suffix}", study.paper, title, one_row_per_trial,
        lambda rows: pictures.qq(rows, title), measured, study.name,
    )  # fmt: skip


FIGURE, MANY = figure(ONE), figure(FIVE)

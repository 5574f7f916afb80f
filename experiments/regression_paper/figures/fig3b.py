"""Fig. 3b (thesis 5.4, right): calibration against ε, at n = 10."""

from __future__ import annotations

from experiments.regression_paper import pictures
from experiments.regression_paper.figures.both import AGAINST_EPSILON, both
from experiments.regression_paper.study import pick, table

FIGURE, MANY = both(
    "3b",
    "Calibration against ε, n = 10",
    lambda s, trials: pick(table(s, trials), n=s["n"]).drop(columns="u"),
    lambda rows, title: pictures.calibration(rows, title, [(*AGAINST_EPSILON, {})]),
)

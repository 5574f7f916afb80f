"""Fig. 3a (thesis 5.4, left): calibration against n, at ε = 0.1."""

from __future__ import annotations

from experiments.regression_paper import pictures
from experiments.regression_paper.figures.both import AGAINST_N, both
from experiments.regression_paper.study import pick, table

FIGURE, MANY = both(
    "3a",
    "Calibration against n, ε = 0.1",
    lambda s, trials: pick(table(s, trials), epsilon=s["epsilon"]).drop(columns="u"),
    lambda rows, title: pictures.calibration(rows, title, [(*AGAINST_N, {})]),
)

"""Fig. 3d (thesis 5.6): coverage of 95 % intervals, against n and against ε."""

from __future__ import annotations

from experiments.regression_paper import pictures
from experiments.regression_paper.figures.both import AGAINST_BOTH, both
from experiments.regression_paper.study import table

FIGURE, MANY = both(
    "3d",
    "Coverage of 95 % intervals against n (ε = 0.1) and ε (n = 10)",
    lambda settings, trials: table(settings, trials).drop(columns="u"),
    lambda rows, title: pictures.covering(rows, title, AGAINST_BOTH),
)

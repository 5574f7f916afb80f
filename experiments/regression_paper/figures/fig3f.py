"""Fig. 3f (thesis 5.8): running time against n, and what it buys in effective draws."""

from __future__ import annotations

from experiments.regression_paper import pictures
from experiments.regression_paper.figures.both import both
from experiments.regression_paper.measures import growth
from experiments.regression_paper.study import pick, table

FIGURE, MANY = both(
    "3f",
    "Running time against n",
    lambda s, trials: pick(table(s, trials), sensitivity="as printed").drop(columns="u"),
    pictures.running,
    growth,
)

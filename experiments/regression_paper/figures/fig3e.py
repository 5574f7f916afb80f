"""Fig. 3e (thesis 5.7): utility as closeness to the non-private posterior."""

from __future__ import annotations

from experiments.regression_paper import pictures
from experiments.regression_paper.figures import fig3d
from experiments.regression_paper.figures.both import AGAINST_BOTH, both

FIGURE, MANY = both(
    "3e",
    "Utility against n (left, ε = 0.1) and ε (right, n = 10)",
    fig3d.FIGURE.run,
    lambda rows, title: pictures.utility(rows, title, AGAINST_BOTH),
)

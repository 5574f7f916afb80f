"""Fig. 5.4-5.9: the regression paper's synthetic study and real data, as the thesis shows them.

The thesis prints the same experiments; 5.4 has both halves of calibration in one figure.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.regression_paper import pictures
from experiments.regression_paper.figures import fig3c, fig3d, fig3e, fig3f, fig4
from experiments.regression_paper.figures.both import AGAINST_BOTH

PAPER = "thesis ch. 5"
TITLE = "Calibration against n (ε = 0.1) and against ε (n = 10)"

CALIBRATION = replace(
    fig3d.FIGURE,
    name="regression-5.4",
    paper=PAPER,
    title=TITLE,
    draw=lambda rows: pictures.calibration(rows, TITLE, AGAINST_BOTH),
)

FIGURES = (
    CALIBRATION,
    replace(fig3c.FIGURE, name="regression-5.5", paper=PAPER),
    replace(fig3d.FIGURE, name="regression-5.6", paper=PAPER),
    replace(fig3e.FIGURE, name="regression-5.7", paper=PAPER),
    replace(fig3f.FIGURE, name="regression-5.8", paper=PAPER),
    replace(fig4.FIGURE, name="regression-5.9", paper=PAPER, study=fig4.FIGURE.name),
)

"""Differentially Private Bayesian Linear Regression (Bernstein & Sheldon, NeurIPS 2019)."""

from experiments.regression_paper.figures import (
    asymptotic,
    bounds,
    cost,
    fig3a,
    fig3b,
    fig3c,
    fig3d,
    fig3e,
    fig3f,
    fig4,
)

SYNTHETIC = (fig3a, fig3b, fig3c, fig3d, fig3e, fig3f)

FIGURES = (
    bounds.FIGURE,
    asymptotic.FIGURE,
    cost.FIGURE,
    *(each.FIGURE for each in SYNTHETIC),
    fig4.FIGURE,
    *(each.MANY for each in SYNTHETIC),
)

"""Chapter 5 of the thesis: the regression study again, and the social-mobility case study."""

from experiments.thesis_regression.figures import (
    fig5_10,
    fig5_11,
    fig5_12,
    fig5_13,
    fig5_14,
    fig5_15,
    fig5_16,
    nation,
    synthetic,
)

CASE_STUDY = (fig5_10, fig5_11, fig5_12, fig5_13, fig5_14, fig5_15, fig5_16, nation)

FIGURES = (*synthetic.FIGURES, *(each.FIGURE for each in CASE_STUDY))

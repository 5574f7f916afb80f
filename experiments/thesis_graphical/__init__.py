"""Thesis chapter 3: graphical models from noisy tables. Its figures, settings and claims."""

from experiments.thesis_graphical.figures import (
    divergence_by_size,
    error_by_size,
    held_out_mobility,
    marginal_scatter,
    projection,
    regularisation,
)

FIGURES = (
    error_by_size.FIGURE,
    projection.FIGURE,
    regularisation.FIGURE,
    divergence_by_size.FIGURE,
    marginal_scatter.FIGURE,
    held_out_mobility.FIGURE,
)

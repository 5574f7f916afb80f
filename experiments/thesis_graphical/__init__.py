"""Thesis chapter 3: graphical models from noisy tables. Its figures, settings and claims."""

from experiments.thesis_graphical.figures import error_by_size, projection, regularisation

FIGURES = (error_by_size.FIGURE, projection.FIGURE, regularisation.FIGURE)

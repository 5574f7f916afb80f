"""Thesis chapter 4: exponential families. Its figures, their settings, its claims."""

from experiments.thesis_families.figures import (
    calibration_by_size,
    rank_distributions,
    traces,
    utility_by_size,
)

FIGURES = (
    calibration_by_size.FIGURE,
    rank_distributions.FIGURE,
    utility_by_size.FIGURE,
    traces.FIGURE,
)

"""Pictures of posteriors. Needs matplotlib, which is loaded by the first picture only."""

from noisewise.plots.calibration_plots import coverage_points, rank_ecdf
from noisewise.plots.posterior_plots import posterior_against_prior, trace

__all__ = ["coverage_points", "posterior_against_prior", "rank_ecdf", "trace"]

"""Pictures of posteriors. Needs matplotlib, which is loaded by the first picture only."""

from noisewise.plots.calibration import coverage_points, rank_ecdf
from noisewise.plots.density import posterior_against_prior
from noisewise.plots.trace import trace

__all__ = ["coverage_points", "posterior_against_prior", "rank_ecdf", "trace"]

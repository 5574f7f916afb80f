"""Pictures of posteriors. Needs matplotlib, which is loaded by the first picture only."""

from noisewise.plots.density import posterior_against_prior
from noisewise.plots.trace import trace

__all__ = ["posterior_against_prior", "trace"]

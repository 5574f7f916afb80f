"""Exponential families of one column, from noisy sums of it.

The owner's file is ``release``. The analyst's, in the order of reading: ``family`` (the contract of
a family), ``families`` (those there are), ``truncation`` (what an interval leaves of a record),
``problem`` (a release as arrays), ``exact`` with ``fourier_likelihood`` and ``parameter_grid``,
``categorical_exact``, ``normal_exact`` with ``normal_likelihood``, ``gibbs``; ``posterior`` is what
an analyst gets. ``Release.family`` is the model's name in a file; a family here is a distribution,
which the file calls ``distribution``.
"""

from __future__ import annotations

from noisewise.artifact import Release
from noisewise.artifact.validation import text
from noisewise.models.base import Model, register


class ExponentialFamilyRelease(Release):
    """The noisy sufficient statistic of one column."""


@register
class ExponentialFamily(Model):
    """One column that follows an exponential family."""

    name = "exponential-family"
    statistics = ("power-sums", "tables")
    release_type = ExponentialFamilyRelease

    def check(self, release: Release) -> None:
        """Raise a ReleaseError unless the distribution is named."""
        text(release.model.get("distribution"), "model: 'distribution'")

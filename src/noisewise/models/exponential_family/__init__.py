"""Exponential families of one column, from noisy sums of it.

The owner's file is ``release``. The analyst's, in the order of reading: ``family`` (the contract of
a family), ``families`` (those there are), ``truncation`` (what an interval leaves of a record),
``problem`` (a release as arrays), ``exact`` with ``fourier_likelihood`` and ``parameter_grid``,
``categorical_exact``, ``normal_exact`` with ``normal_likelihood``, ``gibbs``; ``posterior`` is what
an analyst gets. ``Release.family`` is the model's name in a file; a family here is a distribution,
which the file calls ``distribution``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisewise.artifact import Release
from noisewise.artifact.validation import text
from noisewise.models.base import Analyst, Model, Owner, Simulator, register

if TYPE_CHECKING:
    from noisewise.inference.result import Result
    from noisewise.simulate.calibration_check import Check


class ExponentialFamilyRelease(Release):
    """The noisy sufficient statistic of one column."""


@register
class ExponentialFamily(Model):
    """Describe the model and import its parts when they are asked for."""

    name = "exponential-family"
    statistics = ("power-sums", "tables")
    release_type = ExponentialFamilyRelease

    def check(self, release: Release) -> None:
        """Raise a ReleaseError unless the distribution is named."""
        text(release.model.get("distribution"), "model: 'distribution'")

    def owner(self) -> Owner:
        """Return the owner's part."""
        from noisewise.models.exponential_family.release import OWNER

        return OWNER

    def analyst(self) -> Analyst[Any]:
        """Return the analyst's part."""
        from noisewise.models.exponential_family.analyst import ANALYST

        return ANALYST

    def simulator(self) -> Simulator[Any]:
        """Return the simulator."""
        from noisewise.models.exponential_family.simulate import SIMULATOR

        return SIMULATOR

    def page(self, result: Result | Release, check: Check | None = None) -> str:
        """Return the HTML page about a result."""
        from noisewise.models.exponential_family.report import page

        return page(result, check)

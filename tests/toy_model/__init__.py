"""A model from outside the package: the means of two bounded columns.

The guide "Add a model" explains this folder. Records are normal with a known spread, the means are
uniform on the public bounds, and the noise on the sums is known: the posterior is exact.
"""

from __future__ import annotations

from noisewise.artifact import Release, ReleaseError
from noisewise.models import Model, register


@register
class TwoMeans(Model):
    """The means of two columns; the parts of the model are the files beside this one."""

    name = "two-means"
    statistics = ("gram",)

    def check(self, release: Release) -> None:
        """Raise a ReleaseError unless the file is of two columns."""
        if len(release.block("gram").statistic.columns) != 2:
            raise ReleaseError("two-means: the Gram matrix must be of two columns")

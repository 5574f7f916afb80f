"""A model from outside the package: the means of two bounded columns.

The guide "Add a model" explains this folder. Records are normal with a known spread, the means are
uniform on the public bounds, and the noise on the sums is known: the posterior is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisewise.artifact import Release, ReleaseError
from noisewise.models import Analyst, Model, Owner, Simulator, register

if TYPE_CHECKING:
    from noisewise.inference import Result
    from noisewise.simulate import Check


@register
class TwoMeans(Model):
    """Describe the model; its parts are imported when they are asked for."""

    name = "two-means"
    statistics = ("gram",)

    def check(self, release: Release) -> None:
        """Raise a ReleaseError unless the file is of two columns."""
        if len(release.block("gram").statistic.columns) != 2:
            raise ReleaseError("two-means: the Gram matrix must be of two columns")

    def owner(self) -> Owner:
        """Return the owner's part."""
        from tests.toy_model.release import OWNER

        return OWNER

    def analyst(self) -> Analyst[Any]:
        """Return the analyst's part."""
        from tests.toy_model.analyst import ANALYST

        return ANALYST

    def simulator(self) -> Simulator[Any]:
        """Return the simulator."""
        from tests.toy_model.simulate import SIMULATOR

        return SIMULATOR

    def page(self, result: Result | Release, check: Check | None = None) -> str:
        """Return the HTML page about a result."""
        from tests.toy_model.report import page

        return page(result, check)

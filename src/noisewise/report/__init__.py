"""One self-contained HTML page about a result: nothing is loaded, nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noisewise.report.html import write

if TYPE_CHECKING:
    import os

__all__ = ["render", "save"]


def render(result: Any, check: Any = None) -> str:
    """The page of a Posterior, a graphical model (or posterior of one), a partition release, a
    check or a plan.

    ``check``: what ``noisewise check`` found of the same release, if it was asked.
    """
    from noisewise.artifact import ArgumentError, Release

    if isinstance(result, Release):
        from noisewise.models.partition.report import page

        return page(result)
    if hasattr(result, "clique_marginals"):
        from noisewise.models.graphical_model.report import page as page_of_model

        return page_of_model(result)
    if hasattr(result, "marginal_draws"):
        from noisewise.models.graphical_model.report import page_of_draws

        return page_of_draws(result)
    if hasattr(result, "recommended"):
        from noisewise.report.calibration import page as page_of_check

        return page_of_check(result)
    if hasattr(result, "wish"):
        from noisewise.report.forecast import page as page_of_plan

        return page_of_plan(result)
    if isinstance(result, Mapping) or not hasattr(result, "draws"):
        raise ArgumentError(
            "result: report makes a page of what infer, check or plan returned, or of a release of "
            f"a partition answer, not of {type(result).__name__!r}; of a file, load it first, and "
            "of groups of graphical models, give one group's result"
        )
    from noisewise.report.posterior import page as page_of_posterior

    return page_of_posterior(result, check)


def save(result: Any, path: str | os.PathLike[str], check: Any = None) -> Path:
    """Write the page; it appears whole or not at all."""
    return write(render(result, check), Path(path))

"""One self-contained HTML page about a result: nothing is loaded, nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from noisewise.report.html import write

if TYPE_CHECKING:
    import os

__all__ = ["render", "save"]


def render(result: Any, check: Any = None) -> str:
    """The page of a Posterior, of a graphical model, or of a partition release.

    ``check``: what ``noisewise check`` found of the same release, if it was asked.
    """
    from noisewise.artifact import Release

    if isinstance(result, Release):
        from noisewise.report.answer import page

        return page(result)
    if hasattr(result, "clique_marginals"):
        from noisewise.report.graphical import page as page_of_model

        return page_of_model(result)
    from noisewise.report.posterior import page as page_of_posterior

    return page_of_posterior(result, check)


def save(result: Any, path: str | os.PathLike[str], check: Any = None) -> Path:
    """Write the page; it appears whole or not at all."""
    return write(render(result, check), Path(path))

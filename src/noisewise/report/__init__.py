"""One self-contained HTML page about a result: nothing is loaded, nothing is run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from noisewise import models
from noisewise.artifact import ArgumentError, Release
from noisewise.report.html import write

if TYPE_CHECKING:
    from noisewise.inference.results import Result
    from noisewise.simulate import Check, Plan

__all__ = ["findings", "render", "save"]


def findings(result: Result | Release) -> tuple[str, ...]:
    """Return what was found, in the plain sentences with which the page begins.

    Args:
        result: what ``infer`` returned, or a release that is an answer.

    Returns:
        A sentence each; names of columns stand between backticks. None where the model has no
        words for its results.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> owns = pd.DataFrame({"owns": [0, 1, 1, 1] * 5000})
        >>> release = nw.release.exponential_family(
        ...     owns, column="owns", family="bernoulli", epsilon=1.0
        ... )
        >>> first, *_ = nw.report.findings(nw.infer(release))
        >>> first.startswith("About 75")
        True
    """
    from noisewise.inference.results import Result

    if isinstance(result, Release):
        return models.find(result.family).findings(result)
    if not isinstance(result, Result):
        raise ArgumentError(
            "result: findings are of what infer returned, or of a release of a partition answer, "
            f"not of {type(result).__name__!r}"
        )
    return models.find(result.model_name).findings(result)


def render(
    result: Result | Release | Check | Plan, check: Check | str | os.PathLike[str] | None = None
) -> str:
    """Return the page about a result as HTML.

    Args:
        result: what ``infer``, ``check`` or ``plan`` returned, or a release that is an answer.
        check: what ``noisewise check`` found of the same release, if it was asked, or its file.

    Returns:
        One HTML document that loads nothing.

    Example:
        >>> import noisewise as nw
        >>> settings = nw.release.exponential_family(
        ...     nw.release.Blank(500), column="visits", family="poisson", bounds=(0, 20),
        ...     epsilon=1.0,
        ... )
        >>> page = nw.report.render(nw.check(settings, ["exact"], trials=50))
        >>> page.startswith("<!doctype html>")
        True
    """
    from noisewise.inference.results import Result
    from noisewise.inference.summaries import PosteriorSummary
    from noisewise.report.pages import check_page, plan_page
    from noisewise.simulate import Check, Plan, load_check

    if isinstance(check, str | os.PathLike):
        check = load_check(check)
    if not isinstance(check, Check | None):
        raise ArgumentError(
            f"check: must be what nw.check returned, or its file, not {type(check).__name__!r}"
        )
    if isinstance(result, Release):
        return models.find(result.family).page(result, check)

    if isinstance(result, Check):
        return check_page(result)
    if isinstance(result, Plan):
        return plan_page(result)
    if not isinstance(result, Result):
        raise ArgumentError(
            "result: report makes a page of what infer, check or plan returned, or of a release of "
            f"a partition answer, not of {type(result).__name__!r}; of a file, load it first, and "
            "of groups of graphical models, give one group's result"
        )
    if isinstance(result, PosteriorSummary):
        raise ArgumentError("result: a report needs draws; infer with keep='draws' (--keep draws)")
    checked = result.model_name if check is None else check.settings.get("family")
    if check is not None and checked not in (None, result.model_name):
        raise ArgumentError(
            f"check: is of a {check.settings.get('family')} ({check.settings.get('what')}), and "
            f"the result of a {result.model_name} ({result.title}): give the check of the same "
            "release"
        )
    return models.find(result.model_name).page(result, check)


def save(
    result: Result | Release | Check | Plan,
    path: str | os.PathLike[str],
    check: Check | str | os.PathLike[str] | None = None,
) -> Path:
    """Write the page about a result; it appears whole or not at all.

    Args:
        result: as for ``render``.
        path: where the page goes.
        check: as for ``render``.

    Returns:
        The path.

    Example:
        >>> import noisewise as nw
        >>> settings = nw.release.exponential_family(
        ...     nw.release.Blank(500), column="visits", family="poisson", bounds=(0, 20),
        ...     epsilon=1.0,
        ... )
        >>> nw.report.save(nw.check(settings, ["exact"], trials=50), "check.html").name
        'check.html'
    """
    return write(render(result, check), Path(path))

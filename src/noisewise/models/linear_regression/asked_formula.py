"""What an analyst asks of a release with sums within cells, as a formula."""

from __future__ import annotations

from noisewise.artifact import ArgumentError, Release
from noisewise.models.base import Question


def has_cells(release: Release) -> bool:
    """Return whether a release holds sums within the cells of factors."""
    return any(block.statistic.kind == "cell-sums" for block in release.blocks)


def formula_asked(release: Release, question: Question) -> str | None:
    """Return the formula that is asked for; None for the owner's."""
    words = question.words
    if "x" not in words and "y" not in words:
        formula: str | None = words.get("formula")
        return formula
    if "x" not in words:
        raise ArgumentError("y: say with a formula which terms it has, such as 'educ ~ C(sex)'")
    x = [words["x"]] if isinstance(words["x"], str) else words["x"]
    columns = [words.get("y", release.model["y"]), *x]
    if not all(isinstance(c, str) for c in columns):
        raise ArgumentError("x: must be one or more columns by name, and y another")
    names = [c if c.isidentifier() else f"`{c}`" for c in columns]
    return f"{names[0]} ~ {' + '.join(names[1:])}"

"""Options of groups that learn from each other, and the table of what is public of each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from noisewise.artifact import ArgumentError, Release

if TYPE_CHECKING:
    import pandas as pd

Pool: TypeAlias = Annotated[
    bool, typer.Option("--pool", help="Let groups learn from each other: small areas.")
]
FeaturesFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--features",
        metavar="FILE",
        help="What is public of each pooled group: a CSV file with a row per group, its key in the "
        "column that is named as in the release.",
    ),
]
ParentColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--parent", metavar="COLUMN", help="Of the features: the larger group of each group."
    ),
]


def read_features(path: Path | None, release: Release, parent: str | None) -> pd.DataFrame | None:
    """Return the table of public features; keys stay text, so that no leading zero is lost."""
    if path is None:
        return None
    import pandas as pd

    keys = {} if release.groups is None else {release.groups.column: str}
    try:
        table = pd.read_csv(path, dtype={**keys, **({parent: str} if parent else {})})
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise ArgumentError(f"--features: {str(path)!r} cannot be read: {why}") from None
    if release.groups is not None and release.groups.column not in table.columns:
        raise ArgumentError(
            f"--features: {str(path)!r} has no column {release.groups.column!r}, which holds the "
            "groups' keys"
        )
    return table

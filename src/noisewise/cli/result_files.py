"""Files of results, as arguments of the verbs that ask something of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from noisewise.artifact import ArgumentError, Release

if TYPE_CHECKING:
    from noisewise.inference import Result

ResultFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="RESULT", help="A file that `noisewise infer` wrote.")
]


def load_result(path: Path) -> Result:
    """Read a file that ``infer`` wrote; an ArgumentError says what else it is."""
    from noisewise.inference import load

    loaded = load(path)
    if isinstance(loaded, Release):
        raise ArgumentError(f"RESULT: {str(path)!r} is a release; run noisewise infer on it first")
    return loaded

"""Warnings that point at the user's own line, however deep in the library they arise."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

PACKAGE = str(Path(__file__).parents[1])
"""The folder of this package: its own lines say nothing to a user."""


class LargeEpsilonWarning(UserWarning):
    """A release promises next to nothing, and nobody said that this is meant."""


def warn_user(message: str, kind: type[UserWarning] = UserWarning) -> None:
    """Issue a warning, attributed to the first caller outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level)

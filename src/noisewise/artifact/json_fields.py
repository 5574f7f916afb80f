"""JSON objects taken apart strictly: nothing missing, nothing unknown, every type right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from noisewise.artifact import validation
from noisewise.artifact.errors import ReleaseError

MAX_ITEMS = 2_200_000
"""Entries of a list that become Python objects (chosen): more than a release may have groups."""


class Fields:
    """A JSON object being taken apart; ``done`` complains about what nobody asked for."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise ReleaseError(f"{where}: must be a JSON object, not {validation.shown(value)}")
        self._left = dict(value)
        self.where = where

    def take(self, name: str) -> Any:
        """Return the field; a ReleaseError where it is missing."""
        if name not in self._left:
            raise ReleaseError(f"{self.where}: {name!r} is missing")
        return self._left.pop(name)

    def optional(self, name: str) -> Any:
        """Return the field, or None where it is missing."""
        return self._left.pop(name, None)

    def items(self, name: str) -> list[Any]:
        """Return the field, which must be a list."""
        value = self.take(name)
        if isinstance(value, np.ndarray) and len(value) <= MAX_ITEMS:
            value = value.tolist()  # long lists of a large file are parsed as arrays
        if not isinstance(value, list):
            raise ReleaseError(
                f"{self.where}: {name!r} must be a list, not {validation.shown(value)}"
            )
        return value

    def flag(self, name: str) -> bool:
        """Return the field, which must be true or false."""
        value = self.take(name)
        if not isinstance(value, bool):
            raise ReleaseError(
                f"{self.where}: {name!r} must be true or false, not {validation.shown(value)}"
            )
        return value

    def object(self, name: str) -> dict[str, Any]:
        """Return the field, which must be an object with free keys."""
        value = self.take(name)
        if not isinstance(value, dict):
            raise ReleaseError(
                f"{self.where}: {name!r} must be a JSON object, not {validation.shown(value)}"
            )
        return value

    def done(self) -> None:
        """Raise a ReleaseError where a field was not taken."""
        if self._left:
            raise ReleaseError(f"{self.where}: unknown field {validation.shown(min(self._left))}")


@contextmanager
def located(where: str) -> Iterator[None]:
    """Put ``where`` before the message of any ReleaseError: which of several it is about."""
    try:
        yield
    except ReleaseError as error:
        raise ReleaseError(f"{where}: {error}") from None

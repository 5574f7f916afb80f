"""Edits that spoil a parsed release file, and the check that it is refused in helpful words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from noisewise.artifact import Release, ReleaseError
from tests.artifact.factories import FACTORIES, content_of, redigested

Edit = Callable[[dict[str, Any]], None]


def _place(content: Any, path: str) -> tuple[Any, str | int]:
    """The holder of ``a.0.b`` (numbers index lists), and the last step."""
    *steps, last = [int(s) if s.isdigit() else s for s in path.split(".")]
    for step in steps:
        content = content[step]
    return content, last


def put(path: str, value: object) -> Edit:
    """Set a field that is there, or a new one."""

    def edit(content: dict[str, Any]) -> None:
        holder, last = _place(content, path)
        holder[last] = value

    return edit


def drop(path: str) -> Edit:
    """Remove a field."""

    def edit(content: dict[str, Any]) -> None:
        holder, last = _place(content, path)
        del holder[last]

    return edit


def both(*edits: Edit) -> Edit:
    """Several edits at once."""

    def edit(content: dict[str, Any]) -> None:
        for one in edits:
            one(content)

    return edit


def refused(content: str | bytes, fragment: str) -> None:
    """A ReleaseError with that fragment, which a terminal can print on a few lines."""
    with pytest.raises(ReleaseError, match=re.escape(fragment)) as caught:
        Release.from_json(content)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def check_case(factory: str, edit: Edit, fragment: str) -> None:
    content = content_of(FACTORIES[factory]())
    edit(content)
    refused(redigested(content), fragment)

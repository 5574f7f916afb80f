"""What a column holds, in plain words, whichever engine names its type."""

from __future__ import annotations

import re

TYPE_WORDS = (
    (r"dictionary<values=([^,>]+).*", ""),
    (r"(large_)?(string|utf8)(_view)?", "text"),
    (r"timestamp|datetime", "dates and times"),
    (r"date", "dates"),
    (r"duration|interval|month", "lengths of time"),
    (r"time", "times of day"),
    (r"bool", "true or false"),
    (r"u?int\d*", "whole numbers"),
    (r"(half|half_)?float|double|decimal", "numbers"),
    (r"(large_|fixed_size_)?(binary|blob)|bytes", "bytes"),
    (r"(large_|fixed_size_)?list|array|struct|map|json|union|extension", "nested values"),
    (r"null", "nothing"),
)
"""Beginnings of the names that Arrow and Ibis give to types, and what a person calls them."""


def describe_type(kind: object) -> str:
    """Return in plain words what a column of an Arrow or Ibis type holds.

    Args:
        kind: the type, whose text begins with its name, such as ``timestamp[us]``.

    Returns:
        Words such as "text", or the type's own name where nobody has better words.
    """
    # Ibis marks a column without missing values by an exclamation mark.
    name = str(kind).lower().removeprefix("!")
    for pattern, words in TYPE_WORDS:
        match = re.match(pattern, name)
        if match:
            return words or describe_type(match.group(1))
    return str(kind)

"""Plain values among the owner's arguments, and how an error may speak of them.

An argument that is no plain value is named by its type only: a column of the sensitive table, given
where a number or a public list belongs, must not end up in an error's text.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.artifact import check as wire

_SHORT = 4


def shown(value: object) -> str:
    """A plain value, or a few of them, as it was written; of anything else its type."""
    if value is None or isinstance(value, str | numbers.Number | np.bool_):
        return wire.shown(value)
    if isinstance(value, list | tuple) and len(value) <= _SHORT:
        inside = ", ".join(shown(v) for v in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return type(value).__name__


def number(value: object, argument: str) -> float:
    """A finite number, Python's or NumPy's."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ArgumentError(f"{argument}: must be a number, not {shown(value)}")
    try:
        plain = float(value)
    except OverflowError:
        plain = math.inf
    if not math.isfinite(plain):
        raise ArgumentError(f"{argument}: must be a finite number, not {shown(value)}")
    return plain


def positive(value: object, argument: str) -> float:
    """A finite number above zero."""
    plain = number(value, argument)
    if not plain > 0:
        raise ArgumentError(f"{argument}: must be above zero, not {shown(value)}")
    return plain


def pair(value: object, argument: str) -> tuple[float, float]:
    """Two finite numbers."""
    ends = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(ends, Sequence) or isinstance(ends, str | bytes) or len(ends) != 2:
        raise ArgumentError(f"{argument}: must be a pair (lower, upper), not {shown(value)}")
    return number(ends[0], argument), number(ends[1], argument)


def mapping(value: object, argument: str, form: str) -> Mapping[Any, Any]:
    """A dictionary, such as ``form``; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{argument}: must be a dictionary, {form}, not {shown(value)}")
    return value


def scalar(value: Any) -> Any:
    """A NumPy scalar as Python's; a bool as 0 or 1."""
    if isinstance(value, np.generic):
        value = value.item()
    return int(value) if isinstance(value, bool) else value

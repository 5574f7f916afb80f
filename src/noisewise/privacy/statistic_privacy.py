"""What the privacy core must know of each kind of statistic: what to sum, and its usual share.

How far one person can move a statistic, the statistic itself says (``artifact/sensitivity.py``), so
that readers of a file check it against the bound that its noise was made for. A statistic is
published only if its kind has a `StatisticPrivacy` here. Those that come with noisewise are in
``statistics.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, Level, Sensitivity, Statistic
from noisewise.artifact.sensitivity import Relation, sensitivity
from noisewise.privacy.lattice import Coded
from noisewise.privacy.sum_plan import Part

__all__ = [
    "PublicColumns",
    "Relation",
    "Sensitivity",
    "StatisticPrivacy",
    "find_privacy",
    "register_privacy",
    "sensitivity",
    "unregister_privacy",
]

S = TypeVar("S", bound=Statistic)
P = TypeVar("P", bound="type[StatisticPrivacy[Any]]")


@dataclass(frozen=True)
class PublicColumns:
    """What is public about the columns before the table is read.

    ``fill`` stands in for missing entries, ``other`` for categories that are not on the list.
    """

    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    fill: Mapping[str, float | Level] = field(default_factory=dict)
    other: Mapping[str, Level] = field(default_factory=dict)

    def number(self, column: str) -> float | None:
        """Return the public number for missing entries of a numeric column, or None."""
        value = self.fill.get(column)
        return value if isinstance(value, int | float) else None

    def level(self, column: str) -> Level | None:
        """Return the public level for missing entries of a categorical column, or None."""
        value = self.fill.get(column)
        return value if isinstance(value, str | int) else None

    def coded(self, levels: Mapping[str, tuple[Level, ...]]) -> tuple[Coded, ...]:
        """Return categorical columns as indices of their public levels."""
        return tuple(Coded(c, v, self.level(c), self.other.get(c)) for c, v in levels.items())


class StatisticPrivacy(ABC, Generic[S]):
    """What the privacy core must know of one kind of statistic."""

    weight: float = 1.0
    """The relative share of the budget where the owner names none."""

    @abstractmethod
    def part(self, statistic: S, columns: PublicColumns) -> Part:
        """Return what to sum over the records; the sums become the statistic's integers."""

    def integers(self, statistic: S, sums: np.ndarray) -> np.ndarray:
        """Return the exact sums (components by groups) in the statistic's one integer unit."""
        return sums


PARTS = ("part", "integers", "weight")
"""What the privacy core must know of every statistic."""

_PRIVACY: dict[str, StatisticPrivacy[Any]] = {}


def register_privacy(kind: str) -> Callable[[P], P]:
    """Return a decorator that gives the statistics of one kind their part in the privacy core.

    Args:
        kind: the statistic's ``kind`` on the wire.

    Returns:
        A decorator for a subclass of `StatisticPrivacy`.
    """

    def decorate(privacy: P) -> P:
        if not (isinstance(privacy, type) and issubclass(privacy, StatisticPrivacy)):
            raise ArgumentError("privacy: must be a subclass of StatisticPrivacy")
        missing = sorted(getattr(privacy, "__abstractmethods__", frozenset()))
        if missing:
            raise ArgumentError(
                f"privacy: {privacy.__name__} lacks {', '.join(missing)}; "
                f"the privacy part of a statistic has {', '.join(PARTS)}"
            )
        if kind in _PRIVACY:
            raise ArgumentError(
                f"privacy: {kind!r} has a privacy part already, as have {', '.join(_PRIVACY)}"
            )
        _PRIVACY[kind] = privacy()
        return privacy

    return decorate


def unregister_privacy(kind: str) -> None:
    """Forget a part that was registered from outside; those that come with noisewise stay."""
    if kind in _PRIVACY and type(_PRIVACY[kind]).__module__.startswith("noisewise."):
        raise ArgumentError(f"privacy: {kind!r} comes with noisewise, and its proved bound stays")
    _PRIVACY.pop(kind, None)


def find_privacy(kind: str) -> StatisticPrivacy[Any]:
    """Return the privacy part of a kind of statistic; an ArgumentError names those there are."""
    if kind not in _PRIVACY:
        raise ArgumentError(
            f"statistic: {kind!r} has no privacy part, so it is not known what to sum; "
            f"there are {', '.join(_PRIVACY)}"
        )
    return _PRIVACY[kind]

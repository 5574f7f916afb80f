"""How far one person can move a statistic, and what the privacy core must know of each kind.

The relations between neighbouring tables:

* ``replace-one``: one record is exchanged for any other;
* ``add-remove``: one record appears or disappears; then n is secret and counted with noise;
* ``move``: replace-one where the table is split by a secret group column: the record may leave one
  group and enter another (``docs/proofs/sensitivity.md``, section 6).

Where people are protected with several records, of which at most k count, the bounds of one record
give that of a person (``docs/proofs/units.md``).

A statistic is published only if its kind has a `StatisticPrivacy` here: its bound, what to sum, and
its usual share of the budget. Those that come with noisewise are in ``statistics.py``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from noisewise.artifact import ArgumentError, Bounds, Level, Statistic
from noisewise.privacy.sum_plan import Part

Relation = Literal["replace-one", "add-remove", "move"]
"""What turns a table into its neighbour: ``move`` takes a record from one group to another."""

S = TypeVar("S", bound=Statistic)
P = TypeVar("P", bound="type[StatisticPrivacy[Any]]")


@dataclass(frozen=True)
class Sensitivity:
    """L1 and L2 sensitivity in integer units; ``l2_squared`` is exact, L2 itself irrational."""

    l1: int
    l2_squared: int

    @property
    def l2(self) -> float:
        """A float64 that is not below the true root."""
        root = math.isqrt(self.l2_squared)
        if root * root == self.l2_squared and float(root) == root:
            return float(root)
        return math.nextafter(math.sqrt(self.l2_squared), math.inf)


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


class StatisticPrivacy(ABC, Generic[S]):
    """What the privacy core must know of one kind of statistic."""

    weight: float = 1.0
    """The relative share of the budget where the owner names none."""

    @abstractmethod
    def bound(self, statistic: S, replace: bool) -> Sensitivity:
        """Return a proved bound on how far one record moves the integers.

        Args:
            statistic: what is published.
            replace: whether the record is replaced by any other; else it is added or removed.
        """

    @abstractmethod
    def part(self, statistic: S, columns: PublicColumns) -> Part:
        """Return what to sum over the records; the sums become the statistic's integers."""

    def integers(self, statistic: S, sums: np.ndarray) -> np.ndarray:
        """Return the exact sums (components by groups) in the statistic's one integer unit."""
        return sums


PARTS = ("bound", "part", "integers", "weight")
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
            f"statistic: {kind!r} has no privacy part, so nothing is known of its sensitivity; "
            f"there are {', '.join(_PRIVACY)}"
        )
    return _PRIVACY[kind]


def sensitivity(statistic: Statistic, relation: Relation, records: int = 1) -> Sensitivity:
    """Return the bound for any statistic under any relation.

    Args:
        statistic: what is published.
        relation: what turns a table into its neighbour.
        records: how many records of the person who changes count at most.
    """
    privacy = find_privacy(statistic.kind)
    single = privacy.bound(statistic, False)
    if relation == "add-remove":
        return _of_person(single, single, records)
    replace = privacy.bound(statistic, True)
    moved = _moved(replace, single) if relation == "move" else replace
    return _of_person(moved, single, records)


def _moved(replace: Sensitivity, single: Sensitivity) -> Sensitivity:
    """Return the bound of section 6: out of one group, into another; or replaced in place."""
    return Sensitivity(
        max(replace.l1, 2 * single.l1), max(replace.l2_squared, 2 * single.l2_squared)
    )


def _of_person(first: Sensitivity, single: Sensitivity, records: int) -> Sensitivity:
    """Return the bound of a person with 1 to ``records`` records (``docs/proofs/units.md``).

    One record changes by ``first``; each other one is changed likewise, or comes or goes.
    """
    more = records - 1
    worst = max(first.l2_squared, single.l2_squared)
    cross = 4 * more**2 * first.l2_squared * worst
    root = math.isqrt(cross)
    return Sensitivity(
        first.l1 + more * max(first.l1, single.l1),
        first.l2_squared + more**2 * worst + root + (root * root < cross),
    )

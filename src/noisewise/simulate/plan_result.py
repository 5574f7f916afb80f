"""What a plan found: widths and coverage by ε and method, warnings, and the ε to ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """Mean width of intervals and how often they held the guess, over all trials."""

    epsilon: float
    method: str
    parameter: str
    width: float
    coverage: float


@dataclass(frozen=True)
class Wish:
    """A wanted width and the smallest ε that gives it; None where none can."""

    parameter: str
    width: float
    epsilon: float | None
    words: str


@dataclass(frozen=True)
class Plan:
    """``without``: mean width without privacy, by parameter: neither noise nor clamping.

    ``before``: width of the prior's own interval. ``outside``: share of records outside the bounds.

    Example:
        >>> import noisewise as nw
        >>> def settings(epsilon):
        ...     return nw.release.exponential_family(
        ...         nw.release.Blank(1000), column="visits", family="poisson", bounds=(0, 20),
        ...         epsilon=epsilon,
        ...     )
        >>> plan = nw.plan(settings, 1000, [0.5, 1.0], methods=["exact"], trials=10)
        >>> plan.epsilons, plan.row(1.0, "exact", "rate").width > 0
        ((0.5, 1.0), True)
    """

    settings: Mapping[str, Any]
    guess: Mapping[str, float]
    rows: tuple[Row, ...]
    without: Mapping[str, float]
    before: Mapping[str, float]
    outside: Mapping[str, float]
    warnings: tuple[str, ...]
    wish: Wish | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        """In the order tried."""
        return tuple(dict.fromkeys(r.method for r in self.rows))

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The grid."""
        return tuple(dict.fromkeys(r.epsilon for r in self.rows))

    def row(self, epsilon: float, method: str, parameter: str) -> Row:
        """One of them."""
        asked = (epsilon, method, parameter)
        return next(r for r in self.rows if (r.epsilon, r.method, r.parameter) == asked)

    def to_json(self) -> str:
        """For scripts."""
        return json.dumps(asdict(self), indent=1)

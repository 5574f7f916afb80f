"""Public bounds of a column and the affine map they define: user's units ↔ the box [-1, 1].

`Bounds` are the range that a column has by nature, `Censored` ones cut values off. Both map records
alike, so that sums and sensitivities are the same: what differs is what the sums mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from noisewise.artifact import validation
from noisewise.artifact.errors import ReleaseError

Sides = Literal["both", "lower", "upper"]
"""Which ends of an interval cut values off."""


@dataclass(frozen=True)
class Bounds:
    """A closed interval that was public before anyone looked at the data (errata E1).

    Example:
        >>> import noisewise as nw
        >>> nw.Bounds(0, 100).centre
        50.0
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", validation.real(self.lower, "bounds: lower"))
        object.__setattr__(self, "upper", validation.real(self.upper, "bounds: upper"))
        if not self.lower < self.upper:
            raise ReleaseError(
                f"bounds: lower must be below upper, not ({self.lower!r}, {self.upper!r})"
            )
        # Products of two columns in the user's units must neither overflow nor vanish.
        if max(-self.lower, self.upper) > 1e145 or self.half_width < 1e-145:
            raise ReleaseError(
                "bounds: must lie within ±1e145 and be at least 2e-145 apart, "
                f"not ({self.lower!r}, {self.upper!r})"
            )

    @property
    def centre(self) -> float:
        """The point that maps to 0 in the box."""
        return self.lower / 2 + self.upper / 2

    @property
    def half_width(self) -> float:
        """The length in user's units that one unit of the box stands for."""
        return self.upper / 2 - self.lower / 2


@dataclass(frozen=True)
class Censored(Bounds):
    """Bounds that cut values off: a record at such an end may have lain beyond it.

    Plain bounds are the range that values have by nature, such as 0 to 100 for a percentage.
    ``sides`` says which ends cut: an income's lower end 0 is natural, its upper end may cut.

    Example:
        >>> import noisewise as nw
        >>> wages = nw.Censored(0, 20, sides="upper")
        >>> wages.cuts_lower, wages.cuts_upper
        (False, True)
    """

    sides: Sides = "both"

    def __post_init__(self) -> None:
        super().__post_init__()
        validation.one_of(self.sides, get_args(Sides), "bounds: sides")

    @property
    def cuts_lower(self) -> bool:
        """Whether values below the lower end were moved to it."""
        return self.sides != "upper"

    @property
    def cuts_upper(self) -> bool:
        """Whether values above the upper end were moved to it."""
        return self.sides != "lower"

    def in_words(self) -> str:
        """Return which values were cut off."""
        ends = [f"below {self.lower:g}"] * self.cuts_lower + [
            f"above {self.upper:g}"
        ] * self.cuts_upper
        return f"values {' and '.join(ends)} were moved to the bound"


class LatticeMap(NamedTuple):
    """The constants of u = floor((x - base) * factor), and u at both ends of an interval."""

    base: float
    factor: float
    low: int
    high: int


def lattice_map(bounds: Bounds, bits: int, origin: float, scale: float) -> LatticeMap:
    """Return the map of an interval to whole steps of ``scale * 2**-bits`` from ``origin``.

    The ends go by the same float64 arithmetic as every record (``privacy/lattice.py``), and
    sensitivities are computed from the ends.
    """
    factor = 2.0**bits / scale
    base = origin - 0.5 / factor
    low, high = (math.floor((end - base) * factor) for end in (bounds.lower, bounds.upper))
    return LatticeMap(base, factor, low, high)

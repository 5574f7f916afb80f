"""Public bounds of a column and the affine map they define: user's units ↔ the box [-1, 1]."""

from __future__ import annotations

from dataclasses import dataclass

from noisewise.artifact import validation
from noisewise.artifact.errors import ReleaseError


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

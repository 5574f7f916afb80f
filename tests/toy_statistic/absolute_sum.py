"""The wire's side of one statistic: Σ |u| over records, u a column mapped to [-1, 1]."""

from dataclasses import dataclass
from typing import ClassVar, Self

from noisewise.artifact import ReleaseError, Sensitivity, Statistic, register_statistic
from noisewise.artifact.validation import Fields

MAX_BITS = 10
"""The lattice has 2**11 + 1 points at most (chosen): every one is counted."""


@register_statistic
@dataclass(frozen=True)
class AbsoluteSum(Statistic):
    """How far the records are from the middle of the column's bounds, all together."""

    kind: ClassVar[str] = "absolute-sum"
    unit_words: ClassVar[str] = "sum of distances from the middle, in half widths"
    column: str
    bits: int = 7

    def __post_init__(self) -> None:
        """Refuse what the privacy core could not sum."""
        if not isinstance(self.column, str) or not self.column:
            raise ReleaseError("absolute-sum: column must be a non-empty text")
        if type(self.bits) is not int or not 1 <= self.bits <= MAX_BITS:
            raise ReleaseError(f"absolute-sum: bits must be in [1, {MAX_BITS}]")

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column that is read."""
        return (self.column,)

    @property
    def bounded_columns(self) -> tuple[str, ...]:
        """The release must state the bounds, which make the box."""
        return self.columns

    @property
    def names(self) -> tuple[str, ...]:
        """One name per component."""
        return (f"|{self.column}|",)

    @property
    def units(self) -> tuple[float, ...]:
        """What one integer step is worth, in box units."""
        return (2.0**-self.bits,)

    def bound(self, replace: bool) -> Sensitivity:
        """Return the bound of proof.md: |u| lies in [0, F], F = 2**bits."""
        largest = 2**self.bits
        return Sensitivity(largest, largest**2)

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the statistic from its JSON fields; ``encode`` needs no code."""
        return cls(fields.take("column"), fields.take("bits"))

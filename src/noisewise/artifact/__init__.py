"""THE WIRE: the one file between the owner and the analyst. numpy and the standard library only."""

from noisewise.artifact.bounds import Bounds
from noisewise.artifact.check import Level
from noisewise.artifact.errors import (
    ArgumentError,
    BudgetError,
    DataError,
    NoisewiseError,
    ReleaseError,
    SourceError,
)
from noisewise.artifact.guarantee import Guarantee, Mechanism, Neighbours, Noise
from noisewise.artifact.release import Block, Groups, Population, Receipt, Release, Selection
from noisewise.artifact.statistics import (
    Clamped,
    Gram,
    Monomials,
    PowerSums,
    Statistic,
    Tables,
)

__all__ = [
    "ArgumentError",
    "Block",
    "Bounds",
    "BudgetError",
    "Clamped",
    "DataError",
    "Gram",
    "Groups",
    "Guarantee",
    "Level",
    "Mechanism",
    "Monomials",
    "Neighbours",
    "Noise",
    "NoisewiseError",
    "Population",
    "PowerSums",
    "Receipt",
    "Release",
    "ReleaseError",
    "Selection",
    "SourceError",
    "Statistic",
    "Tables",
]

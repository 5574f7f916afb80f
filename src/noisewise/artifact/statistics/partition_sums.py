"""What is added up over random partitions of the table (sample and aggregate), not over records.

Each of M partitions gives one answer of its own: a posterior probability, or a posterior quantile.
That answer is clipped and rounded to a lattice of whole numbers, and the M whole numbers are added.
One person is in one partition, so the sum moves by at most the ``reach`` of one lattice value.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from noisewise.artifact import validation
from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.guarantee import Noise
from noisewise.artifact.release_forms import find_form
from noisewise.artifact.sensitivity import Sensitivity
from noisewise.artifact.statistics.base import Statistic, register_statistic
from noisewise.artifact.validation import Fields

if TYPE_CHECKING:
    from noisewise.artifact.release import Release

BITS = 30
"""Steps of 2**-30: the sum of 2**20 partitions stays far below 2**63, with room for noise."""

MAX_PARTITIONS = 2**20
"""Partitions at most, so that their sums fit (see ``BITS``)."""

MAX_CUTOFFS = 10_000
"""Cutoffs of one release at most (chosen): they share one budget."""

INTERCEPT = "intercept"
"""The name of the constant term among the coefficients."""

METHODS = ("normality", "fisher")
"""Ways to combine the partitions' probabilities (thesis 3.1 and 3.2)."""

SEARCHES = ("centred", "symmetric")
"""Ways to find the interval of a quantile: with a centre of its own, or around zero."""


class _PartitionSums(Statistic):
    """What both kinds share: they stand alone in a release, with noise for a whole partition."""

    over_partitions = True

    @property
    @abstractmethod
    def reach(self) -> int:
        """How far one partition, hence one person, can move all sums together (L1)."""

    def bound(self, replace: bool) -> Sensitivity:
        """Return the bound of ``docs/proofs/partition.md``, section 2 (errata E4).

        One partition's lattice values move from end to end.
        """
        return Sensitivity(self.reach, self.reach**2 // len(self.names))

    def check(self, release: Release, noise: Noise) -> None:
        """Raise a ReleaseError unless the statistic stands alone."""
        if find_form(release.family).statistics != (self.kind,):
            raise ReleaseError(f"blocks: {self.kind} stands alone, in a release of its own family")


def _regression(kind: str, columns: tuple[str, ...], coefficient: str) -> tuple[str, ...]:
    """Return covariates, then response; the coefficient must be a covariate's or the intercept."""
    names = tuple(validation.text(c, f"{kind}: columns[{i}]") for i, c in enumerate(columns))
    if len(names) < 2:
        raise ReleaseError(f"{kind}: columns must name the covariates and then the response")
    validation.distinct(names, f"{kind}: columns")
    if validation.text(coefficient, f"{kind}: coefficient") not in (*names[:-1], INTERCEPT):
        raise ReleaseError(
            f"{kind}: coefficient must be a covariate or {INTERCEPT!r}, "
            f"not {validation.shown(coefficient)}"
        )
    return names


def _probability(value: object, where: str) -> float:
    number = validation.real(value, where)
    if not 0 < number < 1:
        raise ReleaseError(f"{where} must be between 0 and 1, not {number!r}")
    return number


@register_statistic
@dataclass(frozen=True)
class ProbabilitySums(_PartitionSums):
    """Σ over partitions of p_j(b) = Pr(coefficient ≤ b | partition j), for each cutoff b in ``at``.

    ``normality``: of p_j itself, in [0, 1]. ``fisher``: of -2 log max(p_j, floor), which lies in
    [0, -2 log floor] (thesis 3.1 and 3.2; errata E4). Partition j's likelihood was raised to
    ``power``: 1 in the thesis.
    """

    kind: ClassVar[str] = "probability-sums"
    unit_words: ClassVar[str] = "means over the partitions"
    columns: tuple[str, ...]
    coefficient: str
    at: tuple[float, ...]
    partitions: int
    method: Literal["normality", "fisher"] = "normality"
    floor: float | None = None
    power: float = 1.0
    bits: int = BITS

    def __post_init__(self) -> None:
        columns = _regression(self.kind, self.columns, self.coefficient)
        object.__setattr__(self, "columns", columns)
        at = tuple(validation.real(b, f"{self.kind}: at[{i}]") for i, b in enumerate(self.at))
        if not 1 <= len(at) <= MAX_CUTOFFS:
            raise ReleaseError(f"{self.kind}: at must hold 1 to {MAX_CUTOFFS} cutoffs")
        validation.distinct(at, f"{self.kind}: at")
        object.__setattr__(self, "at", at)
        validation.integer(self.partitions, f"{self.kind}: partitions", 1, MAX_PARTITIONS)
        validation.integer(self.bits, f"{self.kind}: bits", 1, BITS)
        validation.one_of(self.method, METHODS, f"{self.kind}: method")
        if (self.floor is None) != (self.method == "normality"):
            raise ReleaseError(f"{self.kind}: floor goes with method 'fisher', and only with it")
        object.__setattr__(self, "power", validation.positive(self.power, f"{self.kind}: power"))
        if not 1 / 64 <= self.power <= 64:
            raise ReleaseError(f"{self.kind}: power must be in [1/64, 64], not {self.power!r}")
        if self.floor is not None:
            object.__setattr__(self, "floor", _probability(self.floor, f"{self.kind}: floor"))

    @property
    def names(self) -> tuple[str, ...]:
        """One name per cutoff."""
        what = "mean of Pr" if self.floor is None else "sum of -2 log Pr"
        return tuple(f"{what}({self.coefficient} <= {b!r})" for b in self.at)

    @property
    def step(self) -> float:
        """What one step of a partition's whole number is worth."""
        return (1.0 if self.floor is None else -2 * math.log(self.floor)) * 2.0**-self.bits

    @property
    def units(self) -> tuple[float, ...]:
        """What one integer step is worth: in a mean of probabilities, or in Fisher's sum."""
        unit = self.step / self.partitions if self.floor is None else self.step
        return (unit,) * len(self.at)

    @property
    def reach(self) -> int:
        """How far one partition, hence one person, can move all sums together (L1)."""
        return len(self.at) << self.bits

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the statistic from its JSON fields."""
        columns, at = tuple(fields.items("columns")), tuple(fields.items("at"))
        names = ("coefficient", "partitions", "method", "floor", "power", "bits")
        return cls(columns=columns, at=at, **{name: fields.take(name) for name in names})


@register_statistic
@dataclass(frozen=True)
class QuantileSum(_PartitionSums):
    """Σ over partitions of the p-quantile of the coefficient, clipped to centre ± radius.

    Partition j's posterior has its likelihood raised to the power M (thesis 4.1). The interval was
    found privately: ``search_cost`` is the ε it took.
    """

    kind: ClassVar[str] = "quantile-sum"
    unit_words: ClassVar[str] = "mean over the partitions"
    columns: tuple[str, ...]
    coefficient: str
    p: float
    partitions: int
    centre: float
    radius: float
    search: Literal["centred", "symmetric"]
    search_cost: float
    bits: int = BITS

    def __post_init__(self) -> None:
        columns = _regression(self.kind, self.columns, self.coefficient)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "p", _probability(self.p, f"{self.kind}: p"))
        validation.integer(self.partitions, f"{self.kind}: partitions", 1, MAX_PARTITIONS)
        object.__setattr__(self, "centre", validation.real(self.centre, f"{self.kind}: centre"))
        for name in ("radius", "search_cost"):
            number = validation.positive(getattr(self, name), f"{self.kind}: {name}")
            object.__setattr__(self, name, number)
        if not 1e-145 < self.radius < 1e145 or abs(self.centre) > 1e145:
            raise ReleaseError(f"{self.kind}: centre and radius must be of a size below 1e145")
        validation.one_of(self.search, SEARCHES, f"{self.kind}: search")
        if self.search == "symmetric" and self.centre != 0:
            raise ReleaseError(f"{self.kind}: a symmetric search has its centre at 0")
        validation.integer(self.bits, f"{self.kind}: bits", 1, BITS)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the one component."""
        from_centre = f" from {self.centre!r}" if self.centre else ""
        return (f"mean distance of Q({self.coefficient}, {self.p!r}){from_centre}",)

    @property
    def step(self) -> float:
        """What one step of a partition's whole number is worth."""
        return self.radius * 2.0**-self.bits

    @property
    def units(self) -> tuple[float, ...]:
        """What one integer step is worth: in a mean distance from the centre."""
        return (self.step / self.partitions,)

    @property
    def reach(self) -> int:
        """How far one partition can move the sum: from one end of the interval to the other."""
        return 2 << self.bits

    @property
    def extra_cost(self) -> float:
        """The epsilon that the private search for the interval took."""
        return self.search_cost

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the statistic from its JSON fields."""
        names = ("coefficient", "p", "partitions", "centre", "radius", "search", "search_cost")
        columns = tuple(fields.items("columns"))
        rest = {name: fields.take(name) for name in (*names, "bits")}
        return cls(columns, **rest)


PartitionStatistic = ProbabilitySums | QuantileSum
"""What a partition release may hold."""

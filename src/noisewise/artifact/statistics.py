"""What is summed over the records: one small type per statistic.

Every statistic is a vector of sums over records of *integers* (errata E6). A column is first put on
a lattice of step ``2**-bits``; a component of degree ``g`` inside a statistic of degree ``G`` is
multiplied by ``2**(bits*(G-g))`` so that the whole vector is in one integer unit and one noise
scale fits all. ``units`` turns integers back into numbers: box units for the regression statistics,
natural units elsewhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

from noisewise.artifact import check
from noisewise.artifact.check import Level
from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.partition import ProbabilitySums, QuantileSum

GRAM_BITS = 15
"""Lattice of the Gram matrix: products are at most 2**30, so 2**32 rows fit into 64 bits."""

MONOMIAL_BITS = 7
"""Lattice of the fourth-degree monomials: 2**28 at most, for the same 2**32 rows."""

MAX_ROWS = 2**32
MAX_COMPONENTS = 2_000_000
MAX_NAME_CHARS = 2**28
"""All component names together: every one stands in the file, so they cannot be longer than it."""

Exponents = tuple[int, ...]
"""A product of columns, as the sorted indices of its factors; () is the constant 1."""


def _columns(values: tuple[str, ...], where: str) -> tuple[str, ...]:
    names = tuple(check.text(v, f"{where}[{i}]") for i, v in enumerate(values))
    if not names:
        raise ReleaseError(f"{where} must name at least one column")
    check.distinct(names, where)
    return names


def _affordable(kind: str, components: int, characters: int) -> None:
    """Asked before a name or product is built: a small file must not claim all of memory."""
    if components > MAX_COMPONENTS:
        raise ReleaseError(f"{kind}: {components} components, more than {MAX_COMPONENTS}")
    if characters > MAX_NAME_CHARS:
        raise ReleaseError(f"{kind}: the component names exceed {MAX_NAME_CHARS} characters in all")


def _product_name(columns: tuple[str, ...], product: Exponents) -> str:
    return "*".join(columns[i] for i in product) if product else "n"


@dataclass(frozen=True)
class Gram:
    """All unique products of the columns and the constant 1: the upper triangle of ``u uᵀ``.

    ``u = (v, 1)``. The constant corner, the number of records, belongs to it only where ``count``
    says so (errata E2: under replace-one neighbours n is public and gets no noise).
    """

    kind: ClassVar[str] = "gram"
    columns: tuple[str, ...]
    count: bool
    bits: int = GRAM_BITS

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _columns(self.columns, "gram: columns"))
        check.integer(self.bits, "gram: bits", 1, GRAM_BITS)
        k = len(self.columns)
        _affordable(self.kind, k * (k + 3) // 2 + 1, (k + 2) * sum(map(len, self.columns)))

    @cached_property
    def products(self) -> tuple[Exponents, ...]:
        """Row by row of the upper triangle; the constant is the last column."""
        k = len(self.columns)
        rows: list[Exponents] = []
        for i in range(k):
            rows += [(i, j) for j in range(i, k)] + [(i,)]
        return tuple(rows) + (((),) if self.count else ())

    @property
    def degree(self) -> int:
        """The highest degree among the products."""
        return 2

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name per component, in the order of the values."""
        return tuple(_product_name(self.columns, p) for p in self.products)

    @property
    def units(self) -> tuple[float, ...]:
        """What one integer step is worth, in box units."""
        return (2.0 ** (-2 * self.bits),) * len(self.products)


@dataclass(frozen=True)
class Monomials:
    """All non-constant monomials of the columns up to a degree (fourth moments for gibbs-noisy)."""

    kind: ClassVar[str] = "monomials"
    columns: tuple[str, ...]
    degree: int = 4
    bits: int = MONOMIAL_BITS

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _columns(self.columns, "monomials: columns"))
        # Even degrees only: the sensitivity proof rests on their positivity (docs/proofs).
        if check.integer(self.degree, "monomials: degree", 2, 4) == 3:
            raise ReleaseError("monomials: degree must be 2 or 4")
        check.integer(self.bits, "monomials: bits", 1, MONOMIAL_BITS)
        components = math.comb(len(self.columns) + self.degree, self.degree) - 1
        longest = self.degree * (max(map(len, self.columns)) + 3)
        _affordable(self.kind, components, components * longest)

    @cached_property
    def products(self) -> tuple[Exponents, ...]:
        """By degree, then lexicographically."""
        k = range(len(self.columns))
        degrees = range(1, self.degree + 1)
        return tuple(p for g in degrees for p in itertools.combinations_with_replacement(k, g))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """``a^2*b^1``: written unlike the Gram's products, beside which they stand in tables."""
        return tuple(
            "*".join(f"{self.columns[i]}^{p.count(i)}" for i in dict.fromkeys(p))
            for p in self.products
        )

    @property
    def units(self) -> tuple[float, ...]:
        """What one integer step is worth, in box units."""
        return (2.0 ** (-self.degree * self.bits),) * len(self.products)


@dataclass(frozen=True)
class PowerSums:
    """Sums of ``t = x - origin`` and perhaps ``t²`` over a public interval (thesis ch. 4, B.3).

    ``outside="drop"``: a record outside ``[lower, upper]`` contributes nothing to the sums;
    ``"clamp"``: it contributes the nearer end. The lattice step is ``scale * 2**-bits``.
    """

    kind: ClassVar[str] = "power-sums"
    column: str
    lower: float
    upper: float
    outside: Literal["drop", "clamp"]
    degree: int
    count: bool
    origin: float = 0.0
    scale: float = 1.0
    bits: int = GRAM_BITS

    def __post_init__(self) -> None:
        check.text(self.column, "power-sums: column")
        for name in ("lower", "upper", "origin"):
            object.__setattr__(self, name, check.real(getattr(self, name), f"power-sums: {name}"))
        object.__setattr__(self, "scale", check.positive(self.scale, "power-sums: scale"))
        check.one_of(self.outside, ("drop", "clamp"), "power-sums: outside")
        check.integer(self.degree, "power-sums: degree", 1, 2)
        check.integer(self.bits, "power-sums: bits", 0, GRAM_BITS)
        if not self.lower < self.upper:
            raise ReleaseError(
                f"power-sums: lower must be below upper, not ({self.lower!r}, {self.upper!r})"
            )
        reach = max(abs(self.lower - self.origin), abs(self.upper - self.origin)) / self.scale
        # Integer lattices (bits = 0) keep counts as counts; elsewhere the interval fits the box.
        if not reach <= (2.0 ** (30 // self.degree) if self.bits == 0 else 1.0):
            raise ReleaseError(
                f"power-sums: the interval ({self.lower!r}, {self.upper!r}) does not fit origin "
                f"{self.origin!r} and scale {self.scale!r}"
            )
        if not 1e-145 < self.scale < 1e145:
            raise ReleaseError(
                f"power-sums: scale must be between 1e-145 and 1e145, not {self.scale!r}"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column this reads."""
        return (self.column,)

    @property
    def products(self) -> tuple[Exponents, ...]:
        """t, perhaps t·t, perhaps the number of records."""
        powers: tuple[Exponents, ...] = ((0,), (0, 0))[: self.degree]
        return powers + (((),) if self.count else ())

    @property
    def names(self) -> tuple[str, ...]:
        """One name per component, in the order of the values."""
        shown = f"({self.column}-{self.origin!r})" if self.origin else self.column
        return tuple(_product_name((shown,), p) for p in self.products)

    @property
    def units(self) -> tuple[float, ...]:
        """What one integer step is worth, in powers of the user's unit."""
        step = 2.0 ** (-self.bits * self.degree)
        return tuple(step * self.scale ** len(p) for p in self.products)


@dataclass(frozen=True)
class Tables:
    """Contingency tables over cliques of categorical columns; a single column is a count vector."""

    kind: ClassVar[str] = "tables"
    cliques: tuple[tuple[str, ...], ...]
    levels: Mapping[str, tuple[Level, ...]] = field(hash=False)

    def __post_init__(self) -> None:
        if not self.cliques:
            raise ReleaseError("tables: cliques must not be empty")
        cliques = tuple(_columns(c, f"tables: cliques[{i}]") for i, c in enumerate(self.cliques))
        check.distinct([frozenset(c) for c in cliques], "tables: cliques")
        used = {c for clique in cliques for c in clique}
        if used != set(self.levels):
            odd = check.shown(min(used ^ set(self.levels)))
            raise ReleaseError(
                "tables: levels must be given for exactly the columns in the cliques; "
                f"{odd} is in one of the two only"
            )
        levels = {
            check.text(c, "tables: column"): check.levels(v, f"tables: levels[{check.shown(c)}]")
            for c, v in self.levels.items()
        }
        object.__setattr__(self, "cliques", cliques)
        object.__setattr__(self, "levels", levels)
        self._check_cells()

    def _check_cells(self) -> None:
        """As many cells, and as long names, as a file can hold; stops counting where too many."""
        cells = characters = 0
        for clique in self.cliques:
            size = 1
            for column in clique:
                size *= len(self.levels[column])
                _affordable(self.kind, cells + size, 0)
            cells += size
            for column in clique:
                shown = sum(len(f"{column}={v},") for v in self.levels[column])
                characters += size // len(self.levels[column]) * shown
        _affordable(self.kind, cells, characters)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column in some clique, in order of first mention."""
        return tuple(dict.fromkeys(c for clique in self.cliques for c in clique))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of cells of each table."""
        return tuple(math.prod(len(self.levels[c]) for c in clique) for clique in self.cliques)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """``column=level`` for each factor; the last column of a clique runs fastest."""
        cells: list[str] = []
        for clique in self.cliques:
            labels = [[f"{c}={v}" for v in self.levels[c]] for c in clique]
            cells += [",".join(cell) for cell in itertools.product(*labels)]
        return tuple(cells)

    @property
    def units(self) -> tuple[float, ...]:
        """Counts are counts."""
        return (1.0,) * sum(self.sizes)


PERSON_BITS = 20
"""A person's weight in a table has 2**20 steps: 2**32 people fit into 64 bits."""


@dataclass(frozen=True)
class PersonTables(Tables):
    """Contingency tables in which every *person* weighs one, however many records they have.

    A person with K complete records (rows with the same value in column ``unit``) adds
    ``floor(2**bits / K)`` steps per record to each table (thesis 3.3.4), so 2**bits at most.
    """

    kind: ClassVar[str] = "person-tables"
    unit: str = ""
    bits: int = PERSON_BITS

    def __post_init__(self) -> None:
        super().__post_init__()
        check.text(self.unit, "person-tables: unit")
        check.integer(self.bits, "person-tables: bits", 1, PERSON_BITS)
        if self.unit in self.levels:
            raise ReleaseError(f"person-tables: unit {self.unit!r} is also a column of a table")

    @property
    def units(self) -> tuple[float, ...]:
        """What one step is worth, in people."""
        return (2.0**-self.bits,) * sum(self.sizes)


@dataclass(frozen=True)
class Clamped:
    """How many records had to be clamped (or dropped) in each column: do the bounds bite?"""

    kind: ClassVar[str] = "clamped"
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _columns(self.columns, "clamped: columns"))

    @property
    def products(self) -> tuple[Exponents, ...]:
        """One indicator per column."""
        return tuple((i,) for i in range(len(self.columns)))

    @property
    def degree(self) -> int:
        """Indicators are summed as they are."""
        return 1

    @property
    def names(self) -> tuple[str, ...]:
        """One name per component, in the order of the values."""
        return tuple(f"clamped({c})" for c in self.columns)

    @property
    def units(self) -> tuple[float, ...]:
        """Counts are counts."""
        return (1.0,) * len(self.columns)


Statistic = Gram | Monomials | PowerSums | Tables | Clamped | ProbabilitySums | QuantileSum
"""The last two are sums over partitions of the table, not over records (``partition``)."""

"""Sums over records of polynomials in the columns: Gram matrix, monomials, powers of one column."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from noisewise.artifact import validation
from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.guarantee import Noise, noise_sd
from noisewise.artifact.json_fields import Fields
from noisewise.artifact.statistics.base import (
    Exponents,
    Statistic,
    check_columns,
    check_size,
    register_statistic,
)

if TYPE_CHECKING:
    from noisewise.artifact.bounds import Bounds
    from noisewise.artifact.release import Block, Release

GRAM_BITS = 15
"""Lattice of the Gram matrix: products are at most 2**30, so 2**32 rows fit into 64 bits."""

MONOMIAL_BITS = 7
"""Lattice of the fourth-degree monomials: 2**28 at most, for the same 2**32 rows."""

BOX_SUMS = "sums of columns mapped to [-1, 1]"
"""The unit of Gram matrix and monomials, in words."""


def _product_name(columns: tuple[str, ...], product: Exponents) -> str:
    return "*".join(columns[i] for i in product) if product else "n"


@register_statistic
@dataclass(frozen=True)
class Gram(Statistic):
    """All unique products of the columns and the constant 1: the upper triangle of ``u uᵀ``.

    ``u = (v, 1)``. The constant corner, the number of records, belongs to it only where ``count``
    says so (errata E2: under replace-one neighbours n is public and gets no noise).
    """

    kind: ClassVar[str] = "gram"
    unit_words: ClassVar[str] = BOX_SUMS
    columns: tuple[str, ...]
    count: bool
    bits: int = GRAM_BITS

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", check_columns(self.columns, "gram: columns"))
        validation.integer(self.bits, "gram: bits", 1, GRAM_BITS)
        k = len(self.columns)
        check_size(self.kind, k * (k + 3) // 2 + 1, (k + 2) * sum(map(len, self.columns)))

    @cached_property
    def products(self) -> tuple[Exponents, ...]:
        """The products, row by row of the upper triangle; the constant is the last column."""
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

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the statistic from its JSON fields."""
        return cls(tuple(fields.items("columns")), fields.flag("count"), fields.take("bits"))

    @property
    def bounded_columns(self) -> tuple[str, ...]:
        """All columns: the box is made of their bounds."""
        return self.columns

    @property
    def counts_records(self) -> bool:
        """Whether the constant corner, n, is a component."""
        return self.count

    def in_user_units(self, release: Release, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Return sums of products of the clamped columns, with their noise.

        They are linear in the released components, which carry independent noise: so is the
        variance.
        """
        limits = [release.bounds[c] for c in self.columns]
        transform, constant = box_to_user(self.products, limits)
        sizes = 0 if release.n is None else np.atleast_1d(release.n)
        values = transform @ block.scaled + np.outer(constant, sizes)
        sd = noise_sd(block.noise) * np.array(self.units)
        return values, np.sqrt(transform**2 @ sd**2)


def box_to_user(
    products: Sequence[Exponents], limits: Sequence[Bounds]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix and the multiples of n that turn sums over the box into the user's units.

    With x = c + h u: Σ x_i x_j = h_i h_j Σ u_i u_j + c_i h_j Σ u_j + c_j h_i Σ u_i + c_i c_j n.
    """
    index = {p: r for r, p in enumerate(products)}
    centre = [b.centre for b in limits]
    half = [b.half_width for b in limits]
    transform = np.zeros((len(products), len(products)))
    constant = np.zeros(len(products))
    for row, product in enumerate(products):
        for chosen in range(2 ** len(product)):
            kept = tuple(i for b, i in enumerate(product) if chosen >> b & 1)
            left = [i for b, i in enumerate(product) if not chosen >> b & 1]
            weight = math.prod(half[i] for i in kept) * math.prod(centre[i] for i in left)
            if kept in index:
                transform[row, index[kept]] += weight
            else:
                constant[row] += weight
    return transform, constant


@register_statistic
@dataclass(frozen=True)
class Monomials(Statistic):
    """All non-constant monomials of the columns up to a degree (fourth moments for gibbs-noisy)."""

    kind: ClassVar[str] = "monomials"
    unit_words: ClassVar[str] = BOX_SUMS
    columns: tuple[str, ...]
    degree: int = 4
    bits: int = MONOMIAL_BITS

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", check_columns(self.columns, "monomials: columns"))
        # Even degrees only: the sensitivity proof rests on their positivity (docs/proofs).
        if validation.integer(self.degree, "monomials: degree", 2, 4) == 3:
            raise ReleaseError("monomials: degree must be 2 or 4")
        validation.integer(self.bits, "monomials: bits", 1, MONOMIAL_BITS)
        components = math.comb(len(self.columns) + self.degree, self.degree) - 1
        longest = self.degree * (max(map(len, self.columns)) + 3)
        check_size(self.kind, components, components * longest)

    @cached_property
    def products(self) -> tuple[Exponents, ...]:
        """All products, by degree and then lexicographically."""
        k = range(len(self.columns))
        degrees = range(1, self.degree + 1)
        return tuple(p for g in degrees for p in itertools.combinations_with_replacement(k, g))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names such as ``a^2*b^1``: unlike the Gram's products, beside which they stand."""
        return tuple(
            "*".join(f"{self.columns[i]}^{p.count(i)}" for i in dict.fromkeys(p))
            for p in self.products
        )

    @property
    def units(self) -> tuple[float, ...]:
        """What one integer step is worth, in box units."""
        return (2.0 ** (-self.degree * self.bits),) * len(self.products)

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the statistic from its JSON fields."""
        return cls(tuple(fields.items("columns")), fields.take("degree"), fields.take("bits"))

    @property
    def bounded_columns(self) -> tuple[str, ...]:
        """All columns: the box is made of their bounds."""
        return self.columns

    def in_user_units(self, release: Release, block: Block) -> None:
        """Return None: their only reader is a sampler that works in the box."""
        return None


@register_statistic
@dataclass(frozen=True)
class PowerSums(Statistic):
    """Sums of ``t = x - origin`` and perhaps ``t²`` over a public interval (thesis ch. 4, B.3).

    ``outside="drop"``: a record outside ``[lower, upper]`` contributes nothing to the sums;
    ``"clamp"``: it contributes the nearer end. The lattice step is ``scale * 2**-bits``.
    """

    kind: ClassVar[str] = "power-sums"
    unit_words: ClassVar[str] = "sums in the column's own units"
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
        validation.text(self.column, "power-sums: column")
        for name in ("lower", "upper", "origin"):
            object.__setattr__(
                self, name, validation.real(getattr(self, name), f"power-sums: {name}")
            )
        object.__setattr__(self, "scale", validation.positive(self.scale, "power-sums: scale"))
        validation.one_of(self.outside, ("drop", "clamp"), "power-sums: outside")
        validation.integer(self.degree, "power-sums: degree", 1, 2)
        validation.integer(self.bits, "power-sums: bits", 0, GRAM_BITS)
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
        """The products: t, perhaps t·t, perhaps the number of records."""
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

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the statistic from its JSON fields."""
        names = ("lower", "upper", "outside", "degree", "origin", "scale", "bits")
        return cls(
            column=fields.take("column"),
            count=fields.flag("count"),
            **{name: fields.take(name) for name in names},
        )

    @property
    def bounded_columns(self) -> tuple[str, ...]:
        """The one column: its bounds are the interval."""
        return self.columns

    @property
    def counts_records(self) -> bool:
        """Whether n is a component."""
        return self.count

    def check(self, release: Release, noise: Noise) -> None:
        """Raise a ReleaseError unless the interval is that of the column's bounds."""
        bounds = release.bounds.get(self.column)
        if bounds is not None and (bounds.lower, bounds.upper) != (self.lower, self.upper):
            raise ReleaseError("power-sums: the interval differs from the column's bounds")

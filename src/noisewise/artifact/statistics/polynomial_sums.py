"""Sums over records of polynomials in the columns: Gram matrix, monomials, powers of one column.

Every ``bound`` is in the statistic's own integer unit and holds for lattice points, which are
points of the box. Proofs: ``docs/proofs/sensitivity.md`` (sections by number below).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from noisewise.artifact import validation
from noisewise.artifact.bounds import Bounds, lattice_map
from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.guarantee import Noise, noise_sd
from noisewise.artifact.sensitivity import Sensitivity
from noisewise.artifact.statistics.base import (
    Exponents,
    Statistic,
    check_columns,
    check_size,
    register_statistic,
)
from noisewise.artifact.validation import Fields

if TYPE_CHECKING:
    from noisewise.artifact.release import Block, Release

GRAM_BITS = 15
"""Lattice of the Gram matrix: products are at most 2**30, so 2**32 rows fit into 64 bits."""

MONOMIAL_BITS = 7
"""Lattice of the fourth-degree monomials: 2**28 at most, for the same 2**32 rows."""

BISECTIONS = 100
"""Halvings of [-1, 0]: the bound exceeds the least one by far less than a float64 can tell."""

BOX_SUMS = "sums of columns mapped to [-1, 1]"
"""The unit of Gram matrix and monomials, in words."""


def _product_name(columns: tuple[str, ...], product: Exponents) -> str:
    return "*".join(columns[i] for i in product) if product else "n"


class BoxSums(Statistic):
    """What Gram matrix and monomials share: they are sums of products of columns in the box."""

    unit_words: ClassVar[str] = BOX_SUMS

    @property
    def bounded_columns(self) -> tuple[str, ...]:
        """All columns: the box is made of their bounds."""
        return self.columns


@register_statistic
@dataclass(frozen=True)
class Gram(BoxSums):
    """All unique products of the columns and the constant 1: the upper triangle of ``u uᵀ``.

    ``u = (v, 1)``. The constant corner, the number of records, belongs to it only where ``count``
    says so (errata E2: under replace-one neighbours n is public and gets no noise).
    """

    kind: ClassVar[str] = "gram"
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

    def bound(self, replace: bool) -> Sensitivity:
        """Return the bound of sections 2 and 3.

        In box units Δ1 = k(k+2)²/(2(k+1)) and Δ2 = 2√⌊(k+1)²/4⌋ (errata E1).
        """
        k = len(self.columns)
        unit = 4**self.bits
        if replace:
            l1 = Fraction(k * (k + 2) ** 2, 2 * (k + 1))
            return Sensitivity(math.floor(l1 * unit), 4 * ((k + 1) ** 2 // 4) * unit**2)
        components = k * (k + 3) // 2 + self.count
        return Sensitivity(components * unit, components * unit**2)

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the statistic from its JSON fields."""
        return cls(tuple(fields.items("columns")), fields.flag("count"), fields.take("bits"))

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
class Monomials(BoxSums):
    """All non-constant monomials of the columns up to a degree (fourth moments for gibbs-noisy)."""

    kind: ClassVar[str] = "monomials"
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

    def bound(self, replace: bool) -> Sensitivity:
        """Return the bound of sections 2 and 4.

        With N monomials, Δ1 = N - min_t Σ_j C(d+j-1, j) t^j, and Δ2² ≤ 2 Δ1.
        """
        unit = 2 ** (self.bits * self.degree)
        components = len(self.products)
        if not replace:
            return Sensitivity(components * unit, components * unit**2)
        l1 = components - _diagonal_minimum(len(self.columns), self.degree)
        return Sensitivity(math.floor(l1 * unit), math.floor(2 * l1 * unit**2))

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the statistic from its JSON fields."""
        return cls(tuple(fields.items("columns")), fields.take("degree"), fields.take("bits"))

    def in_user_units(self, release: Release, block: Block) -> None:
        """Return None: their only reader is a sampler that works in the box."""
        return None


@cache
def _diagonal_minimum(columns: int, degree: int) -> Fraction:
    """Return a lower bound on min_t g(t), g(t) = Σ_{j=1}^{degree} C(d+j-1, j) t^j, t in [-1, 1].

    g is convex (section 4), so its tangent at any point bounds it from below. The point is the root
    of g' by bisection in exact arithmetic: every machine finds the same bound, to the last bit.
    """
    coefficients = [math.comb(columns + j - 1, j) for j in range(1, degree + 1)]

    def slope(t: Fraction) -> Fraction:
        return sum((j * c * t ** (j - 1) for j, c in enumerate(coefficients, 1)), Fraction(0))

    low, high = Fraction(-1), Fraction(0)  # g'(0) = d > 0, and g'(-1) ≤ 0 for even degrees
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    value = sum((c * low**j for j, c in enumerate(coefficients, 1)), Fraction(0))
    return value - 2 * abs(slope(low))


def _with_square(low: int, high: int, reach: int, unit: int) -> Sensitivity:
    """Return the largest (u-w)(F + |u+w|) over low ≤ w ≤ u ≤ high, and its L2 companion."""

    def l1(u: int, w: int) -> int:
        return (u - w) * (unit + abs(u + w))

    # The interior optimum w = -F/2 (or u = F/2) is a lattice point or lies between two.
    halves = (unit // 2, unit // 2 + 1)
    best = max(max(l1(high, _into(-h, low, high)), l1(_into(h, low, high), low)) for h in halves)
    span = high - low
    # The L2 bound needs reach ≤ F; on integer lattices (F = 1) component by component instead.
    if reach <= unit:
        squared = span**2 * (unit**2 + (2 * reach - span) ** 2)
    else:
        squared = span**2 * unit**2 + reach**4
    return Sensitivity(best, squared)


def _into(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


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

    def bound(self, replace: bool) -> Sensitivity:
        """Return the bound of section 5.

        A dropped record contributes 0, so 0 joins the interval (thesis B.3).
        """
        _, _, low, high = lattice_map(
            Bounds(self.lower, self.upper), self.bits, self.origin, self.scale
        )
        if self.outside == "drop":
            low, high = min(low, 0), max(high, 0)
        reach = max(abs(low), abs(high))
        unit = 2**self.bits
        if not replace:
            parts = [reach * unit ** (self.degree - 1), reach**2][: self.degree]
            parts += [unit**self.degree] * self.count
            return Sensitivity(sum(parts), sum(p * p for p in parts))
        if self.degree == 1:
            return Sensitivity(high - low, (high - low) ** 2)
        return _with_square(low, high, reach, unit)

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

"""Sums of products of numeric columns within the cells of factors.

What a regression with factors needs: a record has one level of every factor, so it adds to one cell
of every block, and a factor of fifty levels costs no more than one of two. Proofs:
``docs/proofs/sensitivity.md``, section 10.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from noisewise.artifact import validation
from noisewise.artifact.bounds import Bounds
from noisewise.artifact.errors import ArgumentError, ReleaseError
from noisewise.artifact.guarantee import noise_sd
from noisewise.artifact.sensitivity import Sensitivity
from noisewise.artifact.statistics.base import (
    Exponents,
    Statistic,
    check_size,
    register_statistic,
)
from noisewise.artifact.statistics.polynomial_sums import GRAM_BITS
from noisewise.artifact.validation import Fields, Level

if TYPE_CHECKING:
    from noisewise.artifact.guarantee import Noise
    from noisewise.artifact.release import Block, Release

MAX_CORNERS = 2**18
"""Corners and sets of levels that a bound is searched over; above, a looser bound is used
(chosen)."""

NumericColumn = tuple[str, ...]
"""A numeric column of the statistic: a product of columns of the table, in alphabetical order."""


class CellSum(NamedTuple):
    """One block: the sums of a product of numeric columns within the cells of some factors.

    ``product`` holds indices of at most two numeric columns, ascending; () counts records.
    ``within`` holds indices of factors, ascending; () is all records together.
    """

    product: Exponents
    within: tuple[int, ...]


def numeric_name(column: NumericColumn) -> str:
    """Return the name of a numeric column, such as ``age``, ``age^2`` or ``age:educ``."""
    powers = {c: column.count(c) for c in column}
    return ":".join(c if k == 1 else f"{c}^{k}" for c, k in powers.items())


def product_bounds(column: NumericColumn, bounds: Mapping[str, Bounds]) -> Bounds:
    """Return the bounds of a product of columns, from those of its parts.

    Example:
        >>> from noisewise.artifact import Bounds
        >>> product_bounds(("a", "a"), {"a": Bounds(-2, 3)})
        Bounds(lower=0.0, upper=9.0)
    """
    if len(column) == 1:
        return bounds[column[0]]
    lower = upper = 1.0
    for name in dict.fromkeys(column):
        power, part = column.count(name), bounds[name]
        # As a record's columns are multiplied; too large ends become infinite, which is refused.
        ends = [math.prod([end] * power) for end in (part.lower, part.upper)]
        if power % 2 == 0 and part.lower < 0 < part.upper:
            ends.append(0.0)
        products = [a * b for a in (lower, upper) for b in (min(ends), max(ends))]
        lower, upper = min(products), max(products)
    return Bounds(lower, upper)


@register_statistic
@dataclass(frozen=True)
class CellSums(Statistic):
    """Sums of products of numeric columns, mapped to [-1, 1], within cells of factors.

    ``numeric`` are the numeric columns, ``levels`` the factors, in order, with their public levels,
    ``blocks`` what is summed. Under relations that hide n, the cells of a block without numeric
    columns add up to it.
    """

    kind: ClassVar[str] = "cell-sums"
    unit_words: ClassVar[str] = "sums of columns mapped to [-1, 1], within cells"
    numeric: tuple[NumericColumn, ...]
    levels: Mapping[str, tuple[Level, ...]] = field(hash=False)
    blocks: tuple[CellSum, ...]
    bits: int = GRAM_BITS

    def __post_init__(self) -> None:
        validation.integer(self.bits, "cell-sums: bits", 1, GRAM_BITS)
        object.__setattr__(self, "numeric", _numeric(self.numeric))
        object.__setattr__(self, "levels", _levels(self.levels))
        object.__setattr__(self, "blocks", self._blocks())
        if set(self.factors) & {c for column in self.numeric for c in column}:
            raise ReleaseError("cell-sums: a factor is among the numeric columns")
        self._check_size()

    def _blocks(self) -> tuple[CellSum, ...]:
        if not self.blocks:
            raise ReleaseError("cell-sums: blocks must not be empty")
        blocks = tuple(CellSum(tuple(b[0]), tuple(b[1])) for b in self.blocks)
        for i, (product, within) in enumerate(blocks):
            where = f"cell-sums: blocks[{i}]"
            for values, most in ((product, len(self.numeric)), (within, len(self.levels))):
                for value in values:
                    validation.integer(value, where, 0, most - 1)
            if len(product) > 2 or list(product) != sorted(product):
                raise ReleaseError(f"{where}: a product has at most two columns, in order")
            if list(within) != sorted(set(within)):
                raise ReleaseError(f"{where}: factors must be distinct, in order")
        validation.distinct(blocks, "cell-sums: blocks")
        for used, count, what in (
            ({i for b in blocks for i in b.product}, len(self.numeric), "numeric column"),
            ({i for b in blocks for i in b.within}, len(self.levels), "factor"),
        ):
            if len(used) < count:
                raise ReleaseError(f"cell-sums: a {what} is in no block")
        return blocks

    def _check_size(self) -> None:
        cells = characters = 0
        for block in self.blocks:
            size = 1
            for factor in block.within:
                size *= len(self.levels[self.factors[factor]])
                check_size(self.kind, cells + size, 0)
            cells += size
            longest = sum(len(numeric_name(self.numeric[i])) + 1 for i in block.product)
            longest += sum(
                len(f) + 2 + max(len(str(v)) for v in self.levels[f])
                for f in (self.factors[i] for i in block.within)
            )
            characters += size * longest
        check_size(self.kind, cells, characters)

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """The factors, in order."""
        return tuple(self.levels)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read."""
        return (*dict.fromkeys(c for column in self.numeric for c in column), *self.factors)

    def shape(self, block: CellSum) -> tuple[int, ...]:
        """Return how many levels each factor of a block has; () for a block without factors."""
        return tuple(len(self.levels[self.factors[f]]) for f in block.within)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each block's cells are among the components, its last factor fastest."""
        ends = list(itertools.accumulate((math.prod(self.shape(b)) for b in self.blocks),
                                         initial=0))  # fmt: skip
        return tuple(itertools.starmap(slice, itertools.pairwise(ends)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names such as ``age*wages``, ``wages[sex=male]`` and ``n[sex=male,region=2]``."""
        return tuple(itertools.chain.from_iterable(map(self._cell_names, self.blocks)))

    def _cell_names(self, block: CellSum) -> Iterator[str]:
        product = "*".join(numeric_name(self.numeric[i]) for i in block.product) or "n"
        factors = [self.factors[f] for f in block.within]
        for levels in itertools.product(*(self.levels[f] for f in factors)):
            cell = ",".join(f"{f}={v}" for f, v in zip(factors, levels, strict=True))
            yield f"{product}[{cell}]" if cell else product

    @property
    def units(self) -> tuple[float, ...]:
        """What one integer step is worth, in box units."""
        return (2.0 ** (-2 * self.bits),) * sum(math.prod(self.shape(b)) for b in self.blocks)

    def bound(self, replace: bool) -> Sensitivity:
        """Return the bound of section 10."""
        unit = 4**self.bits
        if not replace:
            return Sensitivity(len(self.blocks) * unit, len(self.blocks) * unit**2)
        l1, l2_squared = replace_one_bounds(self.blocks, len(self.numeric), len(self.levels))
        return Sensitivity(math.floor(l1 * unit), l2_squared * unit**2)

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Make the statistic from its JSON fields."""
        numeric = tuple(_list(c, "numeric") for c in fields.items("numeric"))
        levels = {k: _list(v, "levels") for k, v in fields.object("levels").items()}
        blocks = tuple(_block(b) for b in fields.items("blocks"))
        return cls(numeric, levels, blocks, fields.take("bits"))

    def encode(self) -> dict[str, Any]:
        """Return the JSON of the specification."""
        return {
            "kind": self.kind,
            "numeric": self.numeric,
            "levels": dict(self.levels),
            "blocks": tuple({"product": b.product, "within": b.within} for b in self.blocks),
            "bits": self.bits,
        }

    @property
    def bounded_columns(self) -> tuple[str, ...]:
        """The numeric columns of the table: the box is made of their bounds."""
        return tuple(dict.fromkeys(c for column in self.numeric for c in column))

    @property
    def categories(self) -> Mapping[str, tuple[Level, ...]]:
        """The public levels of the factors."""
        return self.levels

    @property
    def counts_records(self) -> bool | None:
        """Whether n is a component where there are no factors; with factors, cells add up to n."""
        return CellSum((), ()) in self.blocks if not self.levels else None

    def check(self, release: Release, noise: Noise) -> None:
        """Raise a ReleaseError where the bounds of a product are too large or too close."""
        for column in self.numeric:
            if all(c in release.bounds for c in column):
                product_bounds(column, release.bounds)

    def in_user_units(self, release: Release, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Return sums of products of the clamped columns within cells, with their noise.

        With x = c + h u, Σ x_i x_j = h_i h_j Σ u_i u_j + c_i h_j Σ u_j + c_j h_i Σ u_i + c_i c_j n:
        sums of lower degree are added up from the block with the fewest cells.
        """
        limits = [product_bounds(column, release.bounds) for column in self.numeric]
        values, variances = np.zeros(block.scaled.shape), np.zeros(len(block.scaled))
        for (product, within), place in zip(self.blocks, self.slices, strict=True):
            weights: dict[Exponents, float] = {}
            for chosen in itertools.product((True, False), repeat=len(product)):
                kept = tuple(itertools.compress(product, chosen))
                parts = zip([limits[i] for i in product], chosen, strict=True)
                weight = math.prod(b.half_width if keep else b.centre for b, keep in parts)
                weights[kept] = weights.get(kept, 0.0) + weight
            for kept, weight in weights.items():
                sums, noises = self._coarser(release, block, CellSum(kept, within))
                values[place] += weight * sums
                variances[place] += weight**2 * noises
        return values, noise_sd(block.noise) * np.sqrt(variances) * np.array(self.units)

    def _coarser(self, release: Release, block: Block, wanted: CellSum) -> tuple[np.ndarray, int]:
        """Return sums (cell, group) in the box, and how many released ones each is the sum of."""
        if wanted == ((), ()) and release.n is not None:
            return np.atleast_1d(release.n)[None], 0
        finer = [
            (place.stop - place.start, own, place)
            for own, place in zip(self.blocks, self.slices, strict=True)
            if own.product == wanted.product and set(wanted.within) <= set(own.within)
        ]
        if not finer:
            raise ArgumentError("units: sums that 'user' needs were not released; take 'box'")
        cells, own, place = min(finer)
        others = tuple(i for i, f in enumerate(own.within) if f not in wanted.within)
        groups = block.scaled.shape[1]
        table = block.scaled[place].reshape(*self.shape(own), groups).sum(axis=others)
        return table.reshape(-1, groups), cells * groups // table.size


def _numeric(columns: Sequence[Sequence[str]]) -> tuple[NumericColumn, ...]:
    checked = []
    for i, column in enumerate(columns):
        names = tuple(validation.text(c, f"cell-sums: numeric[{i}]") for c in column)
        if not names or list(names) != sorted(names):
            raise ReleaseError(f"cell-sums: numeric[{i}] must be columns in alphabetical order")
        checked.append(names)
    validation.distinct(checked, "cell-sums: numeric")
    return tuple(checked)


def _levels(given: Mapping[str, tuple[Level, ...]]) -> dict[str, tuple[Level, ...]]:
    levels = {}
    for column, values in given.items():
        where = f"cell-sums: levels[{validation.shown(column)}]"
        levels[validation.text(column, "cell-sums: factor")] = validation.levels(values, where)
        if len(levels[column]) < 2:
            raise ReleaseError(f"{where} must be two or more")
    return levels


def _list(value: object, what: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ReleaseError(f"cell-sums: {what} must hold lists")
    return tuple(value)


def _block(value: object) -> CellSum:
    fields = Fields(value, "cell-sums: block")
    block = CellSum(tuple(fields.items("product")), tuple(fields.items("within")))
    fields.done()
    return block


# -- how far one record moves the sums -------------------------------------------------------------


@cache
def replace_one_bounds(
    blocks: tuple[CellSum, ...], columns: int, factors: int
) -> tuple[Fraction, int]:
    """Return bounds on the L1 norm and the squared L2 norm, in the box, for replaced records.

    Args:
        blocks: what is summed.
        columns: the number of numeric columns.
        factors: the number of factors.
    """
    return _l1(blocks, columns, factors), _l2_squared(blocks, columns, factors)


def _l1(blocks: tuple[CellSum, ...], columns: int, factors: int) -> Fraction:
    """Return the bound of Theorem A, or exact values where there is one set of factors or none."""
    p = columns
    pairs = set(itertools.combinations_with_replacement(range(p), 2))
    together = {b.product for b in blocks if not b.within}
    if factors == 0 and together - {()} == pairs | {(i,) for i in range(p)}:
        return Fraction(p * (p + 2) ** 2, 2 * (p + 1))
    inside = [b.product for b in blocks if b.within]
    one = len({b.within for b in blocks if b.within}) == 1
    if one and together == pairs and sorted(inside) == [(), *((i,) for i in range(p))]:
        return Fraction(p * p, 2) + 2 * p + 2 - (Fraction(1, p + 3) if p % 2 else 0)
    total = Fraction(2 * len(inside) + 2 * _largest_cut(_edges(together, p)))
    for i in range(p):
        if (i, i) in together:
            seen = sum((_loss(product, i) for product in inside), Fraction(0))
            total += max(Fraction(0), 1 - seen / 2) ** 2
    return total


def _loss(product: Exponents, i: int) -> Fraction:
    """Return the least loss of a block within cells per unit by which |u_i| falls short of one."""
    if i not in product:
        return Fraction(0)
    return Fraction(1, 2) if len(set(product)) == 2 else Fraction(1)


def _l2_squared(blocks: tuple[CellSum, ...], columns: int, factors: int) -> int:
    """Return the bound of Theorem B: the maximum over agreeing levels and corners of the box."""
    p, m = columns, factors
    squares = [sum(b.product == (i, i) for b in blocks) for i in range(p)]
    linear = [sum(b.product == (i,) for b in blocks) for i in range(p)]
    unpaired = sum(max(0, s - c) for s, c in zip(squares, linear, strict=True))
    if set(blocks) == set(main_effects(p, m)) and m > 1:
        return max(
            4 * k * b + 2 * (m - k) * p + 4 * b * (p - b) + m * (m - 1) - k * (k - 1)
            for k in range(m + 1)
            for b in range(p + 1)
        )
    if 2 ** (p + m) > MAX_CORNERS:
        inside = [b.product for b in blocks if b.within]
        together = [b.product for b in blocks if not b.within]
        alone = 2 * len(inside) + 2 * len(_edges(inside, p))
        return unpaired + alone + 4 * _largest_cut(_edges(together, p))
    largest = 0
    for agreeing in range(2**m):
        alike = [b.product for b in blocks if all(agreeing >> f & 1 for f in b.within)]
        cut = _largest_cut(_edges(alike, p))
        largest = max(largest, 2 * (len(blocks) - len(alike)) + 4 * cut)
    return unpaired + largest


def main_effects(columns: int, factors: int) -> tuple[CellSum, ...]:
    """Return the blocks of a regression with factors that interact with nothing."""
    numeric, pairs = range(columns), itertools.combinations(range(factors), 2)
    products = itertools.combinations_with_replacement(numeric, 2)
    tables = list(pairs) if factors > 1 else [(0,)]
    return (
        *(CellSum(product, ()) for product in products),
        *(CellSum((i,), (f,)) for i in numeric for f in range(factors)),
        *(CellSum((), table) for table in tables),
    )


def _edges(products: Iterable[Exponents], columns: int) -> list[tuple[int, int]]:
    """Return the products that differ between corners of the box, as edges between columns.

    A product of two columns joins these; a single column is joined with the constant, which is one
    more node.
    """
    distinct = (p for p in products if len(set(p)) == len(p) > 0)
    return [(p[0], p[1]) if len(p) == 2 else (p[0], columns) for p in distinct]


def _largest_cut(edges: Sequence[tuple[int, int]]) -> int:
    """Return the largest number of edges between two parts of the nodes, or a bound above it."""
    nodes = sorted({node for edge in edges for node in edge})
    size = len(nodes)
    weights = Counter(edges)
    all_pairs = len(weights) == size * (size - 1) // 2 and len(set(weights.values())) == 1
    if not edges or all_pairs or 2 ** (size - 1) > MAX_CORNERS:
        return min(len(edges), max(weights.values(), default=0) * (size**2 // 4))
    place = {node: i for i, node in enumerate(nodes)}
    side = (np.arange(2 ** (size - 1))[:, None] >> np.arange(size)) & 1
    cut = sum(
        w * (side[:, place[a]] != side[:, place[b]]).astype(int) for (a, b), w in weights.items()
    )
    return int(np.max(cut))

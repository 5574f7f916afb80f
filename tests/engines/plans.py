"""Plans that between them use everything a plan can say, over the table of `table.nasty`."""

from __future__ import annotations

import numpy as np

from noisewise.artifact import Bounds, Gram, Level, Monomials
from noisewise.artifact.statistics import CellSum, CellSums
from noisewise.artifact.statistics.cell_sums import main_effects
from noisewise.privacy.arguments import PrivateBounds
from noisewise.privacy.lattice import Coded, Multiplicand, Outside, ScaledProduct, boxed, scaled
from noisewise.privacy.private_bounds import outward
from noisewise.privacy.statistic_privacy import PublicColumns, find_privacy
from noisewise.privacy.sum_plan import CellCounts, Histogram, Part, ProductSums, SumPlan, Sums
from tests.engines.table import BOUNDS, CITIES, CODES, GRADES, REGIONS, TRACTS


def assert_same(found: Sums, expected: Sums) -> None:
    """Sums, sizes and columns in the way are those expected, to the last integer."""
    np.testing.assert_array_equal(found.sizes, expected.sizes)
    for part, other in zip(found.parts, expected.parts, strict=True):
        assert part.dtype == np.int64
        np.testing.assert_array_equal(part, other)
    assert (found.missing, found.unlisted) == (expected.missing, expected.unlisted)


def gram(fill: bool) -> ProductSums:
    columns = ("height", "weight", "age")
    fills = (0.7, -3.7, 100.0) if fill else (None, None, None)
    features = tuple(
        boxed(c, BOUNDS[c], bits=15, fill=f) for c, f in zip(columns, fills, strict=True)
    )
    return ProductSums(features, Gram(columns, count=True).products)


def monomials() -> ProductSums:
    columns = ("height", "share", "flag")
    features = tuple(boxed(c, BOUNDS[c], bits=7) for c in columns)
    return ProductSums(features, Monomials(columns).products)


def edges() -> ProductSums:
    """Extreme bounds: a tiny factor, an interval one ulp wide, and bases of zero."""
    signed = Multiplicand("weight", -3.7, 11.3), Multiplicand("height", 0.0, 2.0)
    features = (
        boxed("mass", BOUNDS["mass"], bits=15),
        boxed("far", BOUNDS["far"], bits=15),
        scaled("height", BOUNDS["height"], bits=0, origin=1.0, scale=2.0),
        # Of a tiny negative product, the sign alone decides.
        ScaledProduct(signed, scaled("", Bounds(-8, 23), bits=1, origin=0.25, scale=1.0)),
    )
    assert features[2].base == features[3].lattice.base == 0.0
    return ProductSums(features, ((0,), (0, 0), (1,), (1, 1), (2,), (3,), ()))


def powers(fill: bool) -> ProductSums:
    """What exponential families sum: dropped and clamped, and how many were outside."""
    weight, age = BOUNDS["weight"], BOUNDS["age"]
    number = -3.7 if fill else None
    years = 100.0 if fill else None
    features = (
        scaled("weight", weight, bits=15, origin=-3.7, scale=15.0, outside="drop", fill=number),
        scaled("weight", weight, bits=15, origin=-3.7, scale=15.0, fill=number),
        scaled("age", age, bits=0, origin=0.0, scale=1.0, outside="drop", fill=years),
        Outside("weight", weight.lower, weight.upper, fill=number),
        Outside("age", age.lower, age.upper, fill=years),
    )
    return ProductSums(features, ((0,), (0, 0), (1,), (1, 1), (2,), (2, 2), (3,), (4,), ()))


def cells(fill: bool) -> CellCounts:
    codes = (
        Coded("city", CITIES, "it's" if fill else None),
        Coded("code", CODES, 7 if fill else None),
        Coded("grade", GRADES, 0 if fill else None),
        Coded("smoker", (1, 0), 1 if fill else None),
    )
    return CellCounts(codes, ((0, 1), (3, 2), (2,)))


def histogram() -> Histogram:
    return Histogram(boxed("share", BOUNDS["share"], bits=7))


def magnitudes() -> tuple[Histogram, ...]:
    """Records counted by magnitude: both signs, from the lower limit, and beyond both limits."""
    asked = {
        "weight": PrivateBounds((-1e9, 1e9)),
        "mass": PrivateBounds((-(1e300**0.4), 1e300**0.4)),
        "height": PrivateBounds((0.5, 1e4)),
        "share": PrivateBounds((-0.3, -0.1)),
    }
    return tuple(Histogram(outward(c, w, None)) for c, w in asked.items())


NUMERIC = (("height",), ("weight",), ("height", "weight"), ("weight", "weight", "weight"))
FACTORS: dict[str, tuple[Level, ...]] = {"city": CITIES, "code": CODES, "smoker": (1, 0)}
EDGE_PRODUCTS = (("far", "far"), ("height",) * 8, ("height", "mass"), ("age", "share"))
INTERACTIONS = (
    *(CellSum(product, (1,)) for product in ((0, 1), (0, 0), (2, 2), (3,), (1, 3))),
    *(CellSum(product, within) for product in ((0,), (1,)) for within in ((0, 1), (1, 2))),
    *(CellSum((3, 3), ()), CellSum((0,), ()), CellSum((), (0, 1, 2)), CellSum((), ())),
)


def cell_sums(
    numeric: tuple[tuple[str, ...], ...],
    factors: tuple[str, ...],
    blocks: tuple[CellSum, ...],
    *,
    fill: bool = False,
) -> Part:
    """What a regression with factors sums."""
    statistic = CellSums(numeric, {f: FACTORS[f] for f in factors}, blocks)
    fills: dict[str, float | Level] = {
        "height": 0.7,
        "weight": 40.0,
        "city": "it's",
        "code": 7,
        "smoker": 0,
    }
    columns = PublicColumns(BOUNDS, fills if fill else {}, {"city": "NULL"} if fill else {})
    return find_privacy(statistic.kind).part(statistic, columns)


PLANS = {
    "gram": SumPlan((gram(fill=False),)),
    "gram, grouped": SumPlan((gram(fill=True),), Coded("tract", TRACTS, fill=-1)),
    "monomials": SumPlan((monomials(),)),
    "edges": SumPlan((edges(),)),
    "counts": SumPlan((cells(fill=False), histogram())),
    "magnitudes": SumPlan(magnitudes()),
    "magnitudes, grouped": SumPlan(magnitudes(), Coded("region", REGIONS)),
    "all, grouped": SumPlan(
        (gram(fill=False), powers(fill=False), cells(fill=False), histogram()),
        Coded("region", REGIONS),
    ),
    "all, filled": SumPlan((gram(fill=True), powers(fill=True), cells(fill=True))),
    "one factor": SumPlan((cell_sums(NUMERIC[:2], ("smoker",), main_effects(2, 1)),)),
    "three factors": SumPlan((cell_sums(NUMERIC, tuple(FACTORS), main_effects(4, 3)),)),
    "products of columns": SumPlan((cell_sums(EDGE_PRODUCTS, (), main_effects(4, 0)[:-1]),)),
    "interactions, filled": SumPlan((cell_sums(NUMERIC, tuple(FACTORS), INTERACTIONS, fill=True),)),
    "interactions, grouped": SumPlan(
        (cell_sums(NUMERIC, tuple(FACTORS), INTERACTIONS), gram(fill=False)),
        Coded("region", REGIONS),
    ),
}

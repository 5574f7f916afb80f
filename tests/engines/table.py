"""A table of everything that makes engines disagree, and the public knowledge that goes with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from noisewise.artifact import Bounds

BOUNDS = {
    "height": Bounds(0.0, 2.0),  # dyadic: half-lattice ties are exact
    "weight": Bounds(-3.7, 11.3),
    "mass": Bounds(-1e144, 1e144),  # a factor far below one
    "far": Bounds(1e15 + 0.125, 1e15 + 0.25),  # one ulp wide: rounding eats the lattice
    "age": Bounds(0.0, 100.0),
    "share": Bounds(0.1, 0.9),
    "flag": Bounds(0.0, 1.0),
}

CITIES = ("a", "A", "a ", "it's", 'quo"te', "naïve", "日本", "back\\slash", "%s", "-", "NULL")
CODES = (-3, 0, 7, 2**31 - 1)
GRADES = (0, 1, 2)
TRACTS = (2**53 + 1, 2**53, 7, -1, 99)  # 99 is on the list, but not in the table
REGIONS = ("north", "south", "north-east", "nowhere")

UNLISTED: dict[str, list[Any]] = {
    "city": ["", "b", "A ", "nai\u0308ve"],
    "code": [1, -(2**31)],
    "grade": [2.5, math.inf],
    "smoker": [],
    "tract": [2**53 + 2, 8],
    "region": ["North", "north "],
}

SIZES = (-math.inf, -1e308, -5e-324, -0.0, 0.0, 5e-324, 1e-310, 1e308, math.inf)


def nasty(rows: int, *, seed: int = 0, unlisted: bool = False) -> pa.Table:
    """Numbers at and beside every edge, NULL, NaN, awkward text, keys beyond 2**53."""
    rng = np.random.default_rng(seed)
    columns = {
        name: _numbers(rng, rows, BOUNDS[name]) for name in ("height", "weight", "mass", "far")
    }
    ages = np.array([-(2**62), -1, 0, 1, 50, 99, 100, 101, 2**53 + 1, 2**63 - 1])
    columns["age"] = _holes(rng, rng.choice(ages, rows))
    wide = _numbers(rng, rows, BOUNDS["share"])
    columns["share"] = pa.compute.cast(wide, pa.float32(), safe=False)
    columns["flag"] = _holes(rng, rng.random(rows) < 0.5)
    levels: dict[str, list[Any]] = {
        "city": list(CITIES),
        "code": list(CODES),
        "grade": [-0.0, 0.0, 1.0, 2.0, math.nan],
        "smoker": [False, True],
        "tract": list(TRACTS[:4]),
        "region": list(REGIONS[:3]),
    }
    types = {"code": pa.int32(), "tract": pa.int64()}
    for name, values in levels.items():
        extra = UNLISTED[name] if unlisted else []
        picked = rng.integers(0, len(values) + len(extra), rows)
        column = pa.array([*values, *extra], types.get(name))
        columns[name] = _holes(rng, column.take(pa.array(picked)))
    return pa.table(columns)


def shuffled(table: pa.Table, seed: int = 1) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))


def _numbers(rng: np.random.Generator, rows: int, bounds: Bounds) -> pa.Array:
    spread = rng.uniform(-1.3, 1.3, rows) * bounds.half_width + bounds.centre
    edges = np.array([*_edges(bounds), *SIZES, math.nan])
    values = np.where(rng.random(rows) < 0.5, spread, rng.choice(edges, rows))
    return pa.array(values, mask=_some(rng, rows))


def _edges(bounds: Bounds) -> list[float]:
    """The ends and the middle, the floats beside them, and ties on lattices of 15, 7 and 0 bits."""
    found = [bounds.lower, bounds.upper, bounds.centre]
    for bits in (15, 7, 0):
        for j in (-(2**bits), -1, 0, 1, 2**bits - 1):
            found.append(bounds.centre + (j + 0.5) * bounds.half_width / 2**bits)
    return [
        y for x in found for y in (math.nextafter(x, -math.inf), x, math.nextafter(x, math.inf))
    ]


def _some(rng: np.random.Generator, rows: int) -> np.ndarray:
    return rng.random(rows) < 0.03


def _holes(rng: np.random.Generator, values: np.ndarray | pa.Array) -> pa.Array:
    column = pa.array(values)
    return pa.compute.if_else(pa.array(~_some(rng, len(column))), column, None)

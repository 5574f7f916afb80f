"""Brute force against every bound: too small fails always, too large where it is claimed exact."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

from noisewise.artifact import Bounds, Clamped, Gram, LeftOut, Monomials, PowerSums, Tables
from noisewise.artifact.sensitivity import Sensitivity, sensitivity
from noisewise.artifact.statistics import CellSums
from noisewise.formula import parse
from noisewise.models.linear_regression.required_sums import required_sums
from noisewise.privacy.lattice import boxed
from noisewise.privacy.statistic_privacy import power_sums_lattice
from tests.reference.sensitivity_reference import (
    cell_contribution,
    largest_distances,
    lattice_points,
    monomial_contribution,
    power_contribution,
)


def names(k: int) -> tuple[str, ...]:
    return tuple(f"c{i}" for i in range(k))


def contributions(statistic: Gram | Monomials, *, count: bool) -> np.ndarray:
    points = lattice_points(len(statistic.columns), statistic.bits)
    return np.array([monomial_contribution(statistic, p, count=count) for p in points])


@pytest.mark.parametrize(("k", "bits"), [(1, 1), (1, 3), (1, 5), (2, 1), (2, 2), (2, 3), (3, 1)])
def test_gram_replace_one_covers_every_pair_of_lattice_records(k: int, bits: int) -> None:
    statistic = Gram(names(k), count=False, bits=bits)
    l1, l2 = largest_distances(contributions(statistic, count=False))
    bound = sensitivity(statistic, "replace-one")
    assert l1 <= bound.l1
    assert l2 == bound.l2_squared  # attained at corners, which are lattice points


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_gram_replace_one_l1_is_reached_by_search(k: int) -> None:
    """The search knows nothing of the formula; it must come within 1 % and never exceed it."""
    statistic = Gram(names(k), count=False)
    upper = np.triu_indices(k + 1)

    def distance(pair: np.ndarray) -> float:
        v, w = np.append(pair[:k], 1), np.append(pair[k:], 1)
        return float(np.abs((np.outer(v, v) - np.outer(w, w))[upper]).sum())

    rng = np.random.default_rng(k)
    best = 0.0
    for _ in range(30):
        start = rng.uniform(-1, 1, 2 * k)
        found = optimize.minimize(
            lambda p: -distance(p), start, method="Powell", bounds=[(-1, 1)] * (2 * k)
        )
        best = max(best, -found.fun)
    claimed = sensitivity(statistic, "replace-one").l1 / 4**15
    assert claimed * 0.99 <= best <= claimed * (1 + 1e-8)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_gram_replace_one_l1_is_reached_by_real_records(k: int) -> None:
    """The worst pair, sent through the real lattice: at least 99 %, never above."""
    statistic = Gram(names(k), count=False)
    feature = boxed("c0", Bounds(-3, 5), bits=15)
    worst = round(-(2**15) / (k + 1))
    high = monomial_contribution(statistic, [feature.high] * k, count=False)
    low = monomial_contribution(statistic, [worst] * k, count=False)
    moved = sum(abs(a - b) for a, b in zip(high, low, strict=True))
    claimed = sensitivity(statistic, "replace-one").l1
    assert 0.99 * claimed <= moved <= claimed


def test_gram_bound_has_the_closed_form_of_the_errata() -> None:
    for k, value in ((1, Fraction(9, 4)), (2, Fraction(16, 3)), (3, Fraction(75, 8))):
        bound = sensitivity(Gram(names(k), count=False), "replace-one")
        assert bound.l1 == math.floor(value * 4**15)


def test_paper_widths_would_not_be_private() -> None:
    """E1: bound widths say x in [10, 11] moves x² by at most 1; it moves by 21."""
    assert 11**2 - 10**2 > (11 - 10) ** 2


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6, 9])
def test_gram_l2_is_never_exceeded_by_search(k: int) -> None:
    upper = np.triu_indices(k + 1)
    rng = np.random.default_rng(k)
    v, w = (np.c_[rng.uniform(-1, 1, (20_000, k)), np.ones(20_000)] for _ in range(2))
    corner = rng.random(20_000) < 0.7
    v[corner, :k], w[corner, :k] = np.sign(v[corner, :k]), np.sign(w[corner, :k])
    difference = v[:, :, None] * v[:, None] - w[:, :, None] * w[:, None]
    squared = (difference[:, upper[0], upper[1]] ** 2).sum(axis=1).max()
    claimed = sensitivity(Gram(names(k), count=False), "replace-one").l2_squared / 16**15
    assert squared <= claimed * (1 + 1e-12)
    assert squared >= 0.6 * claimed


@pytest.mark.parametrize(("k", "bits"), [(1, 3), (2, 2), (3, 1)])
def test_gram_add_remove_is_exact(k: int, bits: int) -> None:
    statistic = Gram(names(k), count=True, bits=bits)
    single = contributions(statistic, count=True)
    bound = sensitivity(statistic, "add-remove")
    assert np.abs(single).sum(axis=1).max() == bound.l1
    assert (single**2).sum(axis=1).max() == bound.l2_squared


@pytest.mark.parametrize(("d", "bits"), [(1, 3), (1, 6), (2, 2), (2, 3), (3, 1)])
def test_monomials_replace_one_covers_every_pair(d: int, bits: int) -> None:
    statistic = Monomials(names(d), bits=bits)
    l1, l2 = largest_distances(contributions(statistic, count=False))
    bound = sensitivity(statistic, "replace-one")
    assert 0.97 * bound.l1 <= l1 <= bound.l1
    # The L2 bound is sound, not exact: at most 10 % above the truth (section 4).
    assert bound.l2_squared / 1.1**2 <= l2 <= bound.l2_squared


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_monomials_replace_one_l1_is_reached_by_search(d: int) -> None:
    statistic = Monomials(names(d))
    products = [list(p) for p in statistic.products]

    def distance(pair: np.ndarray) -> float:
        v, w = pair[:d], pair[d:]
        return sum(abs(np.prod(v[p]) - np.prod(w[p])) for p in products)

    rng = np.random.default_rng(d)
    best = 0.0
    for _ in range(8):
        found = optimize.minimize(
            lambda p: -distance(p),
            rng.uniform(-1, 1, 2 * d),
            method="Powell",
            bounds=[(-1, 1)] * (2 * d),
        )
        best = max(best, -found.fun)
    claimed = sensitivity(statistic, "replace-one").l1 / 2**28
    assert best <= claimed * (1 + 1e-8)
    assert best >= 0.99 * claimed


def test_monomials_of_degree_two_are_the_gram() -> None:
    for d in (1, 2, 5):
        two = sensitivity(Monomials(names(d), degree=2, bits=7), "replace-one")
        gram = sensitivity(Gram(names(d), count=False, bits=7), "replace-one")
        assert abs(two.l1 - gram.l1) <= 1
        assert two.l2_squared >= gram.l2_squared


@pytest.mark.parametrize("d", [1, 3])
def test_monomials_add_remove_is_exact(d: int) -> None:
    statistic = Monomials(names(d), bits=1)
    single = contributions(statistic, count=False)
    bound = sensitivity(statistic, "add-remove")
    assert np.abs(single).sum(axis=1).max() == bound.l1
    assert (single**2).sum(axis=1).max() == bound.l2_squared


INTERVALS = [(-1, 1), (0, 1), (-0.25, 1), (0.5, 1), (-1, -0.25), (-0.1, 0.2), (0.25, 0.5)]


@pytest.mark.parametrize("outside", ["drop", "clamp"])
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("bits", [1, 3, 5])
def test_power_sums_cover_every_pair(
    outside: str, degree: int, interval: tuple[float, float], bits: int
) -> None:
    def statistic(count: bool) -> PowerSums:
        return PowerSums("c", *interval, outside, degree, count, bits=bits)  # type: ignore[arg-type]

    lattice = power_sums_lattice(statistic(False))
    values: list[int | None] = list(range(lattice.low, lattice.high + 1))
    values += [None] if outside == "drop" else []
    paired = np.array([power_contribution(statistic(False), u, count=False) for u in values])
    l1, l2 = largest_distances(paired)
    bound = sensitivity(statistic(False), "replace-one")
    # Without dropping, or where 0 lies inside, the bound is exact; else 0 joins the interval.
    if outside == "clamp" or interval[0] <= 0 <= interval[1] or degree == 1:
        assert l1 == bound.l1
    assert l1 <= bound.l1
    assert l2 <= bound.l2_squared
    single = np.array([power_contribution(statistic(True), u, count=True) for u in values])
    bound = sensitivity(statistic(True), "add-remove")
    assert np.abs(single).sum(axis=1).max() == bound.l1
    assert (single**2).sum(axis=1).max() == bound.l2_squared


@pytest.mark.parametrize("interval", [(0, 1), (0, 7), (-4, 9), (3, 12)])
@pytest.mark.parametrize("degree", [1, 2])
def test_power_sums_on_whole_numbers_cover_every_pair(
    interval: tuple[int, int], degree: int
) -> None:
    statistic = PowerSums("c", *interval, "clamp", degree, False, bits=0)
    values = range(interval[0], interval[1] + 1)
    l1, l2 = largest_distances(
        np.array([power_contribution(statistic, u, count=False) for u in values])
    )
    bound = sensitivity(statistic, "replace-one")
    assert l1 == bound.l1
    assert l2 <= bound.l2_squared


def one_hot(statistic: Tables) -> np.ndarray:
    """The contribution of every possible record."""
    columns = statistic.columns
    sizes = [len(statistic.levels[c]) for c in columns]
    rows = []
    for record in np.ndindex(*sizes):
        row: list[int] = []
        for clique in statistic.cliques:
            cell = np.zeros([len(statistic.levels[c]) for c in clique], int)
            cell[tuple(record[columns.index(c)] for c in clique)] = 1
            row += cell.ravel().tolist()
        rows.append(row)
    return np.array(rows)


def test_tables_are_exact_under_both_relations() -> None:
    """E3: two per table under replace-one, one under add-remove."""
    levels = {"a": (0, 1), "b": (0, 1, 2), "c": (0, 1)}
    statistic = Tables((("a", "b"), ("b", "c"), ("c",)), levels)
    records = one_hot(statistic)
    replace, single = (sensitivity(statistic, r) for r in ("replace-one", "add-remove"))
    assert largest_distances(records) == (replace.l1, replace.l2_squared) == (6, 6)
    assert (single.l1, single.l2_squared) == (3, 3)
    assert records.sum(axis=1).max() == 3


def test_clamped_counts() -> None:
    for relation in ("replace-one", "add-remove"):
        assert sensitivity(Clamped(("a", "b")), relation) == Sensitivity(2, 2)


def test_records_left_out() -> None:
    """All tables of up to three records, complete or not, and all their neighbours."""

    def left_out(table: tuple[bool, ...]) -> int:
        return len(table) - sum(table)

    tables = [t for size in range(4) for t in itertools.product((True, False), repeat=size)]
    added = max(abs(left_out((*t, r)) - left_out(t)) for t in tables for r in (True, False))
    replaced = max(abs(left_out((*t, r)) - left_out((*t, s)))
                   for t in tables for r in (True, False) for s in (True, False))  # fmt: skip
    assert sensitivity(LeftOut(("a",)), "add-remove") == Sensitivity(added, added)
    assert sensitivity(LeftOut(("a",)), "replace-one") == Sensitivity(replaced, replaced)


@pytest.mark.parametrize("k", [1, 2])
def test_a_record_that_moves_between_groups(k: int) -> None:
    """Exhaustive over both groups and all pairs of lattice records (section 6)."""
    statistic = Gram(names(k), count=True, bits=1)
    single = contributions(statistic, count=True)
    nothing = np.zeros_like(single)
    placed = np.concatenate([np.hstack([single, nothing]), np.hstack([nothing, single])])
    l1, l2 = largest_distances(placed)
    bound = sensitivity(statistic, "move")
    assert (l1, l2) == (bound.l1, bound.l2_squared)


def test_l2_is_rounded_up() -> None:
    for squared in (2, 3, 10**18 + 1, 4**40 + 1, 5 * 4**60):
        root = Sensitivity(1, squared).l2
        assert Fraction(root) ** 2 >= squared
        assert root <= math.sqrt(squared) * (1 + 1e-15)


FORMULAS = (
    *("y ~ x", "y ~ C(s)", "y ~ x + C(s)", "y ~ x + C(s) + C(g)", "y ~ x + C(s) + C(g) + C(h)"),
    *("y ~ x * C(s)", "y ~ x:C(s) + C(g)", "y ~ x * C(s) + C(g) + C(h)", "y ~ x * C(s) * C(g)"),
    *("y ~ C(s) * C(g)", "y ~ C(s) * C(g) + C(h)", "y ~ x + C(s) * C(g)", "y ~ C(s) * C(g) * C(h)"),
)


def cell_records(formula: str, count: bool) -> tuple[CellSums, np.ndarray]:
    """The sums of a formula, and what each record on the lattice adds to them."""
    parsed = parse(formula)
    levels = dict.fromkeys(parsed.factors, ("one", "two"))
    sums = required_sums(parsed, levels, count)
    bits = 3 if len(levels) < 2 else 2
    statistic = CellSums(sums.numeric, sums.levels, sums.blocks, bits)
    points = lattice_points(len(statistic.numeric), bits)
    cells = list(itertools.product((0, 1), repeat=len(levels)))
    return statistic, np.array([cell_contribution(statistic, p, c) for p in points for c in cells])


@pytest.mark.parametrize("formula", FORMULAS)
def test_cell_sums_cover_every_pair_of_lattice_records(formula: str) -> None:
    """A bound that is too small fails, and one that could be smaller by a hundredth.

    Two factors whose cells alone are used are one factor, for which L1 is not known to be that.
    """
    statistic, records = cell_records(formula, count=False)
    l1, l2_squared = largest_distances(records)
    bound = sensitivity(statistic, "replace-one")
    tightness = 0.94 if formula == "y ~ x + C(s) * C(g)" else 0.99
    assert tightness * bound.l1 < l1 <= bound.l1
    assert 0.99**2 * bound.l2_squared < l2_squared <= bound.l2_squared


@pytest.mark.parametrize("formula", FORMULAS)
def test_cell_sums_add_remove_is_exact(formula: str) -> None:
    statistic, records = cell_records(formula, count=True)
    bound = sensitivity(statistic, "add-remove")
    assert np.abs(records).sum(axis=1).max() == bound.l1
    assert (records**2).sum(axis=1).max() == bound.l2_squared

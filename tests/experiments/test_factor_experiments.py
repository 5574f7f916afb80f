"""Pieces of the experiments with factors against plain oracles."""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.factors.__main__ import all_levels, design
from experiments.factors.adassp import NoiseScales, adassp, noise_scales
from experiments.factors.batched import begun
from experiments.factors.tables import SHARES, acs_income, two_factors, wages
from noisewise.artifact import Bounds
from noisewise.artifact.statistics.cell_sums import product_bounds
from noisewise.formula import parse
from noisewise.inference import adaptation
from noisewise.models.linear_regression.design_matrix import design_matrix
from noisewise.models.linear_regression.factor_records import boxed_columns, sums_within_cells
from noisewise.models.linear_regression.required_sums import required_sums


def test_scales_of_adassp_are_those_of_the_paper() -> None:
    """Algorithm 2 with d = 10, ‖X‖ = 2, ‖Y‖ = 3, ε = 0.6, δ = 6e-6: log(6/δ) = log 10⁶."""
    found = noise_scales(0.6, 6e-6, 10, 2.0, 3.0)
    tail = 6 * np.log(10)
    assert found.eigenvalue == found.products == pytest.approx(np.sqrt(tail) * 4 / 0.2)
    assert found.shift == pytest.approx(tail * 4 / 0.2)
    assert found.responses == pytest.approx(np.sqrt(tail) * 6 / 0.2)
    assert found.ridge == pytest.approx(np.sqrt(10 * tail * np.log(4000)) * 4 / 0.2)


def test_adassp_without_noise_is_least_squares_and_with_much_it_is_zero() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-0.5, 0.5, (500, 3)), rng.uniform(-1, 1, 500)
    exact = np.linalg.lstsq(x, y, rcond=None)[0]
    quiet = adassp(rng, x, y, noise_scales(1e9, 1e-5, 3, 1.0, 1.0))
    np.testing.assert_allclose(quiet, exact, atol=1e-5)
    loud = adassp(rng, x, y, noise_scales(1e-6, 1e-5, 3, 1.0, 1.0))
    assert np.abs(loud).max() < 2


def test_adassp_adds_noise_of_its_scales_and_a_ridge() -> None:
    """x = 1, y = 0: the coefficient is noise over (n + noise + ridge), 2,000 times."""
    x, y = np.ones((100, 1)), np.zeros(100)
    rng = np.random.default_rng(1)
    scales = NoiseScales(eigenvalue=0.0, shift=40.0, products=0.0, responses=5.0, ridge=80.0)
    found = [adassp(rng, x, y, scales)[0] for _ in range(2000)]
    # λ̃ = 100 − 40, so the ridge is 20. A deviation of 2,000 draws is right to 1.6 %; five of these.
    assert np.std(found) == pytest.approx(5 / 120, rel=0.08)


def test_incomes_have_the_shape_of_acs() -> None:
    table = acs_income(seed=3)
    assert len(table) == 50_000
    assert len(table.columns) == 8
    x = design(table)
    assert x.shape == (50_000, 40)
    assert ((x**2).sum(axis=1) <= 1 + len(SHARES)).all()
    assert np.linalg.matrix_rank(x) == 40
    assert (all_levels(table).sum(axis=1) == len(SHARES)).all()
    again = acs_income(seed=3)
    assert all((again.columns[c] == table.columns[c]).all() for c in table.columns)


def test_wages_have_the_slope_asked_for() -> None:
    table = wages()
    x = design(table)
    found = np.linalg.lstsq(x, table.columns["wage"], rcond=None)[0]
    # Standard errors are .0014 and .008.
    np.testing.assert_allclose(found[:2], [0.09, -0.3], atol=0.03)
    lower, upper = table.bounds["wage"]
    assert ((table.columns["wage"] > lower) & (table.columns["wage"] < upper)).all()


@pytest.mark.parametrize("formula", ["y ~ x + C(A) + C(B)", "y ~ x + C(A) + C(B) + x:C(A)"])
def test_formulas_read_without_formulaic_are_the_same(formula: str) -> None:
    table = two_factors(np.random.default_rng(0), 10)
    given = type(table)(table.columns, table.bounds, table.levels, formula).parsed
    read = parse(formula, table.levels)
    assert given.terms == read.terms
    assert given.design(table.levels) == read.design(table.levels)


def test_designs_and_sums_are_what_a_loop_gives() -> None:
    rng = np.random.default_rng(2)
    levels = {"A": ("a1", "a2"), "B": ("b1", "b2", "b3")}
    formula = parse("y ~ x + C(A) + C(B) + x:C(A) + I(x**2)", levels)
    bounds = {"x": Bounds(-1, 2), "y": Bounds(0, 4)}
    columns = {
        "x": rng.normal(0.5, 1, (2, 30)), "y": rng.normal(2, 1, (2, 30)),
        "A": rng.integers(0, 2, (2, 30)), "B": rng.integers(0, 3, (2, 30)),
    }  # fmt: skip
    names = [c.name for c in formula.design(levels)]
    matrix = design_matrix(formula.design(levels), {c: v[1] for c, v in columns.items()}, 30)
    here = {name: matrix[7, j] for j, name in enumerate(names)}
    x, a, b = (columns[c][1, 7] for c in ("x", "A", "B"))
    assert here == {
        "x": x, "C(A)[T.a2]": a == 1, "C(B)[T.b2]": b == 1, "C(B)[T.b3]": b == 2,
        "x:C(A)[T.a2]": x * (a == 1), "I(x ** 2)": pytest.approx(x**2), "intercept": 1,
    }  # fmt: skip
    statistic = required_sums(formula, levels, count=False)
    kept = {c: np.clip(columns[c], b.lower, b.upper) for c, b in bounds.items()}
    limits = [product_bounds(product, bounds) for product in statistic.numeric]
    boxed = boxed_columns(statistic, limits, kept)
    found = sums_within_cells(statistic, boxed, columns)
    for block, where in zip(statistic.blocks, statistic.slices, strict=True):
        factors = [statistic.factors[i] for i in block.within]
        cells = list(itertools.product(*(range(len(levels[f])) for f in factors)))
        for place, cell in zip(range(where.start, where.stop), cells, strict=True):
            total = 0.0
            for i in range(30):
                if all(columns[f][0, i] == v for f, v in zip(factors, cell, strict=True)):
                    value = 1.0
                    for k in block.product:
                        raw = 1.0
                        for name in statistic.numeric[k]:
                            ends = bounds[name]
                            raw *= min(max(columns[name][0, i], ends.lower), ends.upper)
                        box = product_bounds(statistic.numeric[k], bounds)
                        value *= (raw - box.centre) / box.half_width
                    total += value
            assert found[0, place] == pytest.approx(total, abs=1e-10)


def test_trials_side_by_side_begin_as_each_would_alone() -> None:
    rng = np.random.default_rng(0)
    starts, spread = rng.normal(size=(3, 2, 4, 1)), np.array([[0.5], [2.0]])
    together = begun(starts, spread)
    for k, one in enumerate(starts):
        alone = adaptation.start(jnp.asarray(one), jnp.asarray(spread), plain=True)
        for name, mine, its in zip(together._fields, together, alone, strict=True):
            np.testing.assert_array_equal(mine[k], its, err_msg=name)

"""Coefficients given the sums: ridge regression with the prior, least squares, any reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from formulaic import model_matrix

import noisewise as nw
from noisewise.formula import parse
from noisewise.models.linear_regression.factor_coefficients import draw_coefficients
from noisewise.models.linear_regression.factor_density import FactorData, moments
from noisewise.models.linear_regression.factor_prior import scale_names
from noisewise.models.linear_regression.factor_problem import FactorProblem, factor_problem
from noisewise.models.linear_regression.factor_structure import effects, penalties
from tests.reference import factor_reference as reference

BOUNDS = {"year": (1980.0, 2030.0), "age": (0.0, 100.0), "wage": (-10.0, 70.0)}
LEVELS: dict[str, list[Any]] = {"sex": ["f", "m"], "region": [1, 2, 3]}
MAIN = "wage ~ year + age + C(sex) + C(region)"
CROSSED = "wage ~ year + C(sex) + C(region) + year:C(sex)"
NOISE = 2.0


class Expectation:
    """Randomness that is not: normal variates are zero and gamma variates at their shape."""

    def standard_normal(self, shape: Any) -> np.ndarray:
        return np.zeros(shape)

    def standard_gamma(self, shape: np.ndarray) -> np.ndarray:
        return shape


def people(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    sex, region = rng.choice(LEVELS["sex"], n), rng.choice(LEVELS["region"], n, p=[0.5, 0.3, 0.2])
    year, age = rng.normal(2010, 5, n).clip(1980, 2030), rng.uniform(20, 65, n)
    wage = 30 + 0.4 * (year - 2010) + 0.2 * age + 3 * (sex == "m") - 2 * (region == 2)
    wage = (wage + 0.3 * (year - 2010) * (sex == "m") + rng.normal(0, 3, n)).clip(-10, 70)
    return pd.DataFrame({"year": year, "age": age, "wage": wage, "sex": sex, "region": region})


def problem(owner: str, n: int, asked: str | None = None) -> FactorProblem:
    named = parse(owner, LEVELS).columns
    release = nw.release.linear_regression(
        nw.release.Blank(n), formula=owner, epsilon=1.0,
        levels={f: v for f, v in LEVELS.items() if f in named},
        bounds={c: b for c, b in BOUNDS.items() if c in named},
    )  # fmt: skip
    return factor_problem(release, asked)


def boxed(given: FactorProblem, table: pd.DataFrame) -> reference.Records:
    columns = [
        (np.prod([table[c] for c in product], axis=0) - b.centre) / b.half_width
        for product, b in zip(given.statistic.numeric, given.bounds, strict=True)
    ]
    levels = [[given.levels[f].index(v) for v in table[f]] for f in given.levels]
    return reference.Records(np.array(levels).T, np.array(columns).T)


def at_the_sums(
    given: FactorProblem, table: pd.DataFrame
) -> tuple[dict[str, float], dict[str, float], reference.Scales, reference.Records]:
    """Means and deviations of the coefficients at the sums of a table; scales; the records."""
    records = boxed(given, table)
    rng = np.random.default_rng(2)
    scales = {name: rng.normal(name[0] == "effects", 0.5) for name in scale_names(given.structure)}
    n = float(len(table))
    v = reference.coordinates(given.structure, records, scales, NOISE)
    data = FactorData(jnp.zeros(0), jnp.asarray(NOISE), jnp.asarray(n))
    at = jax.tree.map(lambda a: np.asarray(a)[None, None], moments(jnp.asarray(v), data,
                                                                  given.structure))  # fmt: skip
    drawn, widths = draw_coefficients(Expectation(), given, at)  # type: ignore[arg-type]
    names = (*given.x, "intercept", "sigma2")
    mean = dict(zip(names, drawn[:, 0, 0].tolist(), strict=True))
    return mean, dict(zip(names, widths.tolist(), strict=True)), scales, records


def fitted(mean: dict[str, float], given: FactorProblem, table: pd.DataFrame) -> np.ndarray:
    """The line at every record, by formulaic's own design."""
    design = model_matrix(given.formula.text.split("~")[1], table)
    return np.asarray(
        sum(design[c] * mean["intercept" if c == "Intercept" else c] for c in design.columns)
    )


@pytest.mark.parametrize(
    "asked",
    [
        CROSSED,
        "wage ~ C(region) + C(sex) + year:C(sex)",
        "wage ~ year + C(sex, contr.treatment('m')) + C(region, contr.treatment(3))"
        " + year:C(sex, contr.treatment('m'))",
    ],
)
def test_owners_formula_is_ridge_regression_with_the_prior(asked: str) -> None:
    """Fitted values are those of the normal law of the records, however the columns are coded."""
    table = people(60)
    given = problem(CROSSED, 60, asked)
    mean, _, scales, records = at_the_sums(given, table)
    w, structure = records.values[:, -1], given.structure
    signal = reference.response_covariance(structure, records, scales)
    inverse = np.linalg.inv(np.eye(60) + signal)
    constant = inverse.sum(axis=0) @ w / inverse.sum()
    smooth = constant + signal @ inverse @ (w - constant)
    half, centre = given.bounds[-1].half_width, given.bounds[-1].centre
    np.testing.assert_allclose(fitted(mean, given, table), centre + half * smooth, rtol=1e-6)
    residual = reference.projected(reference.response_design(structure, records), w)[1]
    rate = np.exp(2 * scales["error", 1, 0]) * residual / 60
    bn = rate + 0.5 * (w - constant) @ inverse @ (w - constant)
    assert mean["sigma2"] == pytest.approx(half**2 * bn / (0.5 + 30), rel=1e-6)


@pytest.mark.parametrize(
    ("owner", "asked"),
    [
        (MAIN, MAIN),
        (CROSSED, CROSSED),
        (MAIN, "wage ~ year + C(region)"),
        (MAIN, "wage ~ year"),
        (MAIN, "year ~ age + wage + C(region, contr.treatment(2))"),
        (CROSSED, "year ~ C(sex)"),
        (CROSSED, "wage ~ C(region) + year:C(sex)"),
        ("wage ~ C(sex)*C(region)", "wage ~ C(sex):C(region)"),
        ("wage ~ C(sex)*C(region) + age + I(age**2)", "age ~ C(region, contr.treatment(3))"),
        ("wage ~ C(sex) + C(region) + age + I(age**2)", "wage ~ age + I(age**2)"),
    ],
)
def test_many_records_give_least_squares(owner: str, asked: str) -> None:
    """The prior is worth a few of 600 records: 0.3 deviations at most, widths to 5 %."""
    table = people(600)
    given = problem(owner, 600, asked)
    mean, deviation, _, _ = at_the_sums(given, table)
    both = model_matrix(asked, table)
    x, y = np.asarray(both.rhs), np.asarray(both.lhs).ravel()
    theta, residual = np.linalg.lstsq(x, y)[:2]
    variance = residual[0] / (600 - x.shape[1])
    errors = np.sqrt(variance * np.diag(np.linalg.inv(x.T @ x)))
    for name, least, error in zip(both.rhs.columns, theta, errors, strict=True):
        own = "intercept" if name == "Intercept" else name
        assert abs(mean[own] - least) < 0.3 * error, own
        assert deviation[own] == pytest.approx(error, rel=0.05), own
    assert mean["sigma2"] == pytest.approx(variance, rel=0.03)
    assert deviation["sigma2"] == pytest.approx(variance * np.sqrt(2 / 600), rel=0.05)


def test_the_prior_of_effects_does_not_know_which_level_is_left_out() -> None:
    """Coefficients against another reference have the same effects, and the same quadratic form."""
    structure = problem("wage ~ C(sex)*C(region)", 60).structure
    columns, sizes = structure.y_columns, structure.sizes
    rng = np.random.default_rng(0)
    theta = rng.normal(size=len(columns))
    cells = structure.y_grid @ theta
    table = cells.reshape(sizes)
    row, column = table.mean(axis=1), table.mean(axis=0)
    expected = {
        (0,): row - row.mean(),
        (1,): column - column.mean(),
        (0, 1): (table - row[:, None] - column + table.mean()).ravel(),
    }
    for t, term in enumerate(structure.y_terms):
        np.testing.assert_allclose(effects(term, columns, sizes) @ theta, expected[term])
        form = penalties(structure, True)[t]
        assert theta @ form @ theta == pytest.approx((expected[term] ** 2).sum())


def test_two_references_are_one_posterior() -> None:
    """Contrasts of levels are the same whichever level is left out; given the sums, exactly."""
    table = people(60)
    first = problem(MAIN, 60)
    second = problem(MAIN, 60, "wage ~ year + age + C(sex) + C(region, contr.treatment(2))")
    one, another = (at_the_sums(p, table) for p in (first, second))
    label = "C(region, contr.treatment(2))[T.{}]".format
    contrast = one[0]["C(region)[T.3]"] - one[0]["C(region)[T.2]"]
    assert another[0][label(3)] == pytest.approx(contrast, rel=1e-9)
    assert another[0][label(1)] == pytest.approx(-one[0]["C(region)[T.2]"], rel=1e-9)
    assert another[1][label(1)] == pytest.approx(one[1]["C(region)[T.2]"], rel=1e-9)
    assert another[0]["sigma2"] == pytest.approx(one[0]["sigma2"], rel=1e-9)


def test_units_do_not_matter() -> None:
    """Slopes of a column in days are those in years over 365, for the owner's formula and any."""
    table, days = people(60), people(60)
    days["age"] *= 365
    for asked in (None, "wage ~ age"):
        years = problem(MAIN, 60, asked)
        bounds = {**dict(zip(("year", "age", "wage"), years.bounds, strict=True)),
                  "age": nw.Bounds(0, 36500)}  # fmt: skip
        other = replace(years, bounds=tuple(bounds.values()))
        mean, deviation, _, _ = at_the_sums(years, table)
        scaled, wide, _, _ = at_the_sums(other, days)
        assert scaled["age"] * 365 == pytest.approx(mean["age"], rel=1e-7)
        assert wide["age"] * 365 == pytest.approx(deviation["age"], rel=1e-7)

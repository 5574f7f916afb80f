"""Units change the coefficient they belong to and nothing else; any column may be the response."""

from __future__ import annotations

import numpy as np
import pytest

import noisewise as nw
from noisewise.models.linear_regression.problem import regression_problem
from noisewise.priors import NormalInverseGamma, NormalInverseWishart
from tests.inference.regressions import CHAINS, GROUPS, release, table
from tests.reference import regression_reference as reference

pytestmark = pytest.mark.xdist_group("one-covariate")

RESPONSE = NormalInverseGamma([0.3, -0.1], [[2.0, 0.3], [0.3, 1.0]], 3.0, 0.2)
COVARIATES = NormalInverseWishart([0.2], 0.5, [[0.4]], 5.0)


def boxed() -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    return [table(rng, 30) for _ in range(GROUPS)]


@pytest.mark.parametrize("method", ["exact", "naive"])
@pytest.mark.parametrize("column", ["a", "b"])
def test_rescaling_a_column(method: str, column: str) -> None:
    """Metres to 1/64 metres: with priors rescaled alike, the draws are the same up to units."""
    factor = 64.0
    unit = np.array([factor if c == column else 1.0 for c in ("a", "b")])
    bounds = {"a": (-1.0, 1.0), "b": (-1.0, 1.0)}
    wide = {c: (b[0] * u, b[1] * u) for (c, b), u in zip(bounds.items(), unit, strict=True)}
    matrix = np.diag([unit[1] / unit[0], unit[1]])
    prior = {"response": RESPONSE, "covariates": COVARIATES}
    mapped = {
        "response": RESPONSE.mapped(matrix, np.zeros(2), 1 / unit[1]),
        "covariates": COVARIATES.mapped(np.zeros(1), 1 / unit[:1]),
    }
    one = nw.infer(release(boxed(), bounds), method, prior=prior)
    two = nw.infer(release([w * unit for w in boxed()], wide), method, prior=mapped)
    for name, change in zip(
        ("a", "intercept", "sigma2"), (*np.diag(matrix), unit[1] ** 2), strict=True
    ):
        np.testing.assert_allclose(two.draws[name], one.draws[name] * change, rtol=1e-6)


def test_shifting_a_column_moves_the_intercept_only() -> None:
    """The default prior is in the box, so it moves along."""
    bounds = {"a": (-1.0, 1.0), "b": (-1.0, 1.0)}
    moved = {"a": (15.0, 17.0), "b": (-1.0, 1.0)}
    shift = np.array([16.0, 0.0])
    one = nw.infer(release(boxed(), bounds), "naive")
    two = nw.infer(release([w + shift for w in boxed()], moved), "naive")
    np.testing.assert_allclose(two.draws["a"], one.draws["a"], rtol=1e-8)
    np.testing.assert_allclose(two.draws["sigma2"], one.draws["sigma2"], rtol=1e-8)
    expected = one.draws["intercept"] - 16 * one.draws["a"]
    np.testing.assert_allclose(two.draws["intercept"], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("x", "y"), [(("a", "b"), "c"), (("c", "a"), "b"), (("c",), "a"), (("b",), "c"), (None, "b")]
)
def test_any_regression_among_the_columns(x: tuple[str, ...] | None, y: str) -> None:
    """The problem's statistics are those of the chosen columns in the chosen order."""
    rng = np.random.default_rng(3)
    tables = [table(rng, 40, 2) for _ in range(3)]
    bounds = {"a": (-2.0, 2.0), "b": (-4.0, 4.0), "c": (-2.0, 2.0)}
    given = regression_problem(release(tables, bounds, scale=1e-6, monomials=True), None, x, y)
    names = ("a", "b", "c")
    chosen = x or ("a", "c")
    order = [names.index(c) for c in (*chosen, y)]
    for row, w in enumerate(tables):
        expected = reference.statistic((w / np.array([2.0, 4.0, 2.0]))[:, order])
        np.testing.assert_allclose(given.z[row], expected, atol=1e-4)
    assert (given.moments is None) == ("c" in chosen)
    if given.moments is not None:
        box = (tables[0] / np.array([2.0, 4.0, 2.0]))[:, order[:-1]]
        sums = [np.prod(box[:, p], axis=1).sum() for p in given.exponents]
        np.testing.assert_allclose(given.moments[0], sums, atol=1e-3)


@pytest.mark.evidence
def test_swapping_covariates_swaps_their_coefficients() -> None:
    rng = np.random.default_rng(4)
    given = release(
        [table(rng, 400, 2)], dict.fromkeys("abc", (-1.0, 1.0)), scale=0.01, grouped=False
    )
    one = nw.infer(given, "naive", x=["a", "b"]).summary()
    two = nw.infer(given, "naive", x=["b", "a"]).summary()
    error = one["sd"] / np.sqrt(CHAINS * 1000)
    # 4 parameters, 5 standard errors of a difference: a false alarm in 400,000.
    assert (np.abs(one["mean"] - two["mean"].loc[one.index]) < 5 * np.sqrt(2) * error).all()

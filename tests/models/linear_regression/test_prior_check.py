"""A column that uses little of its bounds is told of, others are not, and not without need."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import noisewise as nw
from noisewise.models.linear_regression.prior_check import (
    CERTAINTY,
    NARROW_VARIANCE,
    narrow_columns,
)
from noisewise.priors import NormalInverseGamma, NormalInverseWishart
from tests.inference.regressions import problem, release

NOISE = 16 / 3
"""Of one covariate at ε = 1."""


def drawn(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    """One column in [-1, 1]."""
    columns = {
        "uniform": lambda: rng.uniform(-1, 1, n),
        "binary": lambda: 2.0 * (rng.random(n) < 0.05) - 1,
        "skewed": lambda: 2 * rng.beta(1, 6, n) - 1,
        "twentieth": lambda: rng.uniform(-0.95, -0.85, n),
    }
    return columns[kind]()


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_rule_by_hand(mechanism: str) -> None:
    rng = np.random.default_rng(1)
    tables = [np.column_stack([drawn(rng, 2000, k) for k in ("twentieth", "uniform", "skewed")])]
    given = problem(tables, 2.0, mechanism=mechanism)  # type: ignore[arg-type]
    spread = 2.0 * (np.sqrt(2) if mechanism == "laplace" else 1)
    # x1x1, x1x2, x1y, x2x2, x2y, yy, x1, x2, y
    z, expected = given.z[0], []
    for name, square, first in (("x1", 0, 6), ("x2", 3, 7), ("y", 5, 8)):
        mean = z[first] / 2000
        high = z[square] / 2000 - mean**2 + CERTAINTY * spread / 2000 * np.sqrt(1 + 4 * mean**2)
        expected += [name] if high < NARROW_VARIANCE else []
    assert narrow_columns(given) == tuple(expected) == ("x1",)


@pytest.mark.parametrize("kind", ["uniform", "binary", "skewed"])
@pytest.mark.parametrize("n", [30, 300, 3000, 30_000])
def test_usual_columns_are_not_told_of(kind: str, n: int) -> None:
    """Of 200 releases none: the narrowest has twice the variance, seven deviations away."""
    rng = np.random.default_rng(2)
    tables = [np.column_stack([drawn(rng, n, kind), rng.uniform(-1, 1, n)]) for _ in range(200)]
    for number, table in enumerate(tables):
        assert narrow_columns(problem([table], NOISE, seed=number)) == ()


def test_noise_that_hides_the_width_is_no_reason() -> None:
    rng = np.random.default_rng(3)
    table = np.column_stack([drawn(rng, 30, "twentieth"), rng.uniform(-1, 1, 30)])
    assert narrow_columns(problem([table], NOISE)) == ()


def test_it_is_said_once_and_only_of_default_priors() -> None:
    rng = np.random.default_rng(4)
    tables = [
        np.column_stack([rng.uniform(25, 75, 5000), rng.uniform(0, 100, 5000)]) for _ in range(4)
    ]
    given = release(tables, {"age": (0, 1000), "score": (0, 100)}, scale=NOISE)
    with pytest.warns(UserWarning, match=r"'age' \(0 to 1000\)\. The default prior") as seen:
        nw.infer(given, "naive", progress=False)
    assert len(seen) == 1
    own = {
        "response": NormalInverseGamma([0, 50], np.eye(2), 2, 100),
        "covariates": NormalInverseWishart([50], 1, [[200]], 3),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nw.infer(given, "naive", prior=own, progress=False)

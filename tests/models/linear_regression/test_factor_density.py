"""Sums, density and coefficients of regressions with factors, against records one by one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisewise.formula import parse
from noisewise.models.linear_regression import factor_tables
from noisewise.models.linear_regression.factor_density import (
    FactorData,
    moments,
    observation,
    scale_names,
    target,
)
from noisewise.models.linear_regression.factor_structure import Structure, structure_of
from noisewise.models.linear_regression.required_sums import required_sums
from tests.reference import factor_reference as reference

LEVELS = {"A": ("a", "b"), "B": ("1", "2", "3"), "C": ("u", "v")}
FORMULAS = {
    "one factor": "y ~ x + C(B)",
    "two factors": "y ~ x + C(A) + C(B)",
    "slopes by a factor": "y ~ x + C(A) + x:C(A) + C(B)",
    "slopes by the second factor": "y ~ x + C(A) + x:C(B) + C(B)",
    "slopes by two factors": "y ~ x + x:C(A):C(C)",
    "slopes and an interaction": "y ~ x + C(A)*C(B) + x:C(B)",
    "interaction": "y ~ x + C(A):C(B)",
    "three factors": "y ~ x + C(A) + C(B) + C(C)",
    "three factors, an interaction": "y ~ x + C(A):C(C) + C(B)",
    "no covariate": "y ~ C(A) + C(B)",
    "two covariates": "y ~ x + u + C(A)",
    "two covariates, slopes by a factor": "y ~ x + u + C(A) + u:C(A)",
    "no factor": "y ~ x + I(x**2)",
}
SECRET_SIZE = ("one factor", "slopes by a factor", "three factors", "no factor")
NOISE = 3.0


def structure(formula: str, noisy_n: bool = False) -> Structure:
    parsed = parse(formula, LEVELS)
    return structure_of(required_sums(parsed, LEVELS, noisy_n), noisy_n)


@pytest.fixture(autouse=True)
def exact_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factor_tables, "LEAST_CELL", 0.0)


def random_scales(rng: np.random.Generator, given: Structure) -> reference.Scales:
    return {name: rng.normal(-1 if name[0] == "association" else 0, 0.7)
            for name in scale_names(given)}  # fmt: skip


@pytest.mark.parametrize(
    ("formula", "noisy_n"),
    [(f, False) for f in FORMULAS.values()] + [(FORMULAS[name], True) for name in SECRET_SIZE],
    ids=[*FORMULAS, *(f"{name}, n secret" for name in SECRET_SIZE)],
)
def test_sums_and_density_of_records(formula: str, noisy_n: bool) -> None:
    given = structure(formula, noisy_n)
    rng = np.random.default_rng(1)
    differences = []
    for n in (48, 53, 48) if noisy_n else (48, 48):
        records = reference.random_records(rng, given, n)
        scales = random_scales(rng, given)
        data = FactorData(jnp.zeros(0), jnp.asarray(NOISE), jnp.asarray(50.0 if noisy_n else n))
        v = reference.coordinates(given, records, scales, NOISE, np.sqrt(float(data.n)))
        at = moments(jnp.asarray(v), data, given)
        np.testing.assert_allclose(at.sums, reference.released_sums(given, records), atol=1e-8)
        atoms = np.column_stack([reference.response_design(given, records), records.values[:, -1]])
        np.testing.assert_allclose(at.gram, atoms.T @ atoms, atol=1e-8)
        assert float(at.n) == pytest.approx(n)
        slow = reference.log_density(given, records, scales, NOISE)
        differences.append(float(at.log_density) - slow)
    # Constants are left out of both.
    np.testing.assert_allclose(differences, differences[0], atol=1e-7)

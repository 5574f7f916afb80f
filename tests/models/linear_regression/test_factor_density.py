"""Sums, density and coefficients of regressions with factors, against records one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noisewise.formula import parse
from noisewise.models.linear_regression import factor_simulate, latent_cell_counts
from noisewise.models.linear_regression.factor_density import (
    FactorData,
    moments,
    target,
)
from noisewise.models.linear_regression.factor_naive import noisy_gram
from noisewise.models.linear_regression.factor_prior import scale_names
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
    return structure_of(required_sums(parse(formula, LEVELS), LEVELS, noisy_n), noisy_n)


@pytest.fixture(autouse=True)
def exact_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latent_cell_counts, "LEAST_CELL", 0.0)


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
        v = reference.coordinates(given, records, scales, NOISE)
        at = moments(jnp.asarray(v), data, given)
        np.testing.assert_allclose(at.sums, reference.released_sums(given, records), atol=1e-8)
        atoms = np.column_stack([reference.response_design(given, records), records.values[:, -1]])
        np.testing.assert_allclose(at.gram, atoms.T @ atoms, atol=1e-8)
        assert float(at.n) == pytest.approx(n)
        slow = reference.log_density(given, records, scales, NOISE)
        differences.append(float(at.log_density) - slow)
    # Constants are left out of both.
    np.testing.assert_allclose(differences, differences[0], atol=1e-7)


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS.keys())
def test_sums_without_noise_give_the_gram_matrix(formula: str) -> None:
    """What method ``naive`` makes of released sums; n is that of the group."""
    statistic = required_sums(parse(formula, LEVELS), LEVELS, False)
    given = structure(formula)
    problem: Any = SimpleNamespace(statistic=statistic, structure=given, n=np.array([7.0, 48.0]))
    records = reference.random_records(np.random.default_rng(3), given, 48)
    atoms = np.column_stack([reference.response_design(given, records), records.values[:, -1]])
    gram = noisy_gram(problem, reference.released_sums(given, records), 48.0)
    np.testing.assert_allclose(gram, atoms.T @ atoms, atol=1e-8)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_noise_of_the_released_sums(mechanism: str) -> None:
    given = structure(FORMULAS["one factor"])
    rng = np.random.default_rng(4)
    records = reference.random_records(rng, given, 48)
    sums = reference.released_sums(given, records)
    z = sums + rng.normal(0, 4, len(sums))
    data = FactorData(jnp.asarray(z), jnp.asarray(NOISE), jnp.asarray(48.0))
    scales = random_scales(rng, given)
    v = jnp.asarray(reference.coordinates(given, records, scales, NOISE))
    law: Any = target(given, mechanism)
    _, value = law.density(v, data, jnp.ones(()))
    off = np.abs(z - sums) / NOISE
    noise = off.sum() if mechanism == "laplace" else (off**2).sum() / 2
    assert float(value - moments(v, data, given).log_density) == pytest.approx(-noise)


def test_tables_of_pairs_from_the_prior_have_the_density_of_the_sampler() -> None:
    """E has the covariance of independent cells whose rows and columns add up to zero."""
    given = structure(FORMULAS["three factors"])
    scales = dict.fromkeys(scale_names(given), jnp.asarray(np.log(0.2)))
    n, noise = jnp.asarray(500.0), jnp.asarray(NOISE)

    def table(key: jax.Array) -> jax.Array:
        tables, _ = factor_simulate._drawn_latent_counts(key, n, noise, scales, given)
        return tables.cells((0, 1))

    cells = np.asarray(jax.vmap(table)(jax.random.split(jax.random.key(0), 4000)))
    lengths = []
    for counts in cells.reshape(-1, 2, 3):
        one, other = counts.sum(axis=1), counts.sum(axis=0)
        if min(one.min(), other.min()) > 5:
            apart = (counts - np.outer(one, other) / 500)[1:, 1:].ravel()
            covariance = reference.zero_sum_covariance(0.04 * np.outer(one, other))
            lengths.append(apart @ np.linalg.solve(covariance, apart))
    assert len(lengths) > 1000
    # χ² with (2 - 1)(3 - 1) degrees: exponential with mean 2.
    assert stats.kstest(lengths, stats.expon(scale=2).cdf).pvalue > 1e-3

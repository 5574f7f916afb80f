"""Where chains start: far apart in every coordinate, the number of records included."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from noisewise.models.linear_regression.initial_values import prior_statistics, towards
from noisewise.models.linear_regression.problem import default_covariates
from tests.inference.regressions import problem, table
from tests.reference import regression_reference as reference


@pytest.mark.parametrize("n_noise", [None, 4.0])
def test_starts_are_spread_in_every_coordinate(n_noise: float | None) -> None:
    """A coordinate without spread would never move: n would stay what was released."""
    prior = problem([table(np.random.default_rng(0), 9)], 1.0).box_prior
    n = np.array([5.0, 40.0, 1e8])
    rng = np.random.default_rng(0)
    starts = prior_statistics(rng, n, prior, 64, 2, n_noise=n_noise).coordinates(
        noisy_n=n_noise is not None
    )
    assert starts.shape == (3, 64, 5 if n_noise is None else 6)
    assert np.isfinite(starts).all()
    assert (starts.std(axis=1) > 0).all()


def test_starts_are_the_prior_predictive() -> None:
    """Sums of squares against the oracle's: 5 standard errors, 40,000 draws each, 4 comparisons."""
    p = reference.paper_priors()
    prior = problem([table(np.random.default_rng(0), 9)], 1.0).box_prior
    drawn = prior_statistics(
        np.random.default_rng(1), np.array([12.0]), prior, 40_000, 2, n_noise=None
    )
    v = drawn.coordinates(noisy_n=False)[0]
    s = reference.prior_statistics(np.random.default_rng(2), 12, p, 40_000)
    mean, scatter = reference.unpacked(s, 12)
    expected = np.column_stack([mean**2, np.log(np.diagonal(scatter, axis1=1, axis2=2) / 12) / 2])
    found = np.column_stack([v[:, :2] ** 2, v[:, 2:4]])
    error = np.sqrt((expected.var(0) + found.var(0)) / 40_000)
    assert np.abs((found.mean(0) - expected.mean(0)) / error).max() < 5


@pytest.mark.parametrize("noise", [1e-3, 1.0, 1e2, 1e3])
@pytest.mark.parametrize("d", [1, 20])
def test_starts_are_within_the_noise_of_what_was_released(d: int, noise: float) -> None:
    """Quiet or loud: a start is about as far from the sums as the truth is, one noise a sum."""
    n = 60
    rng = np.random.default_rng(3)
    given = problem([table(rng, n, d)], noise, seed=4)
    given = replace(given, covariates=default_covariates(given.units))
    drawn = prior_statistics(rng, given.n, given.box_prior, 8, d + 1, n_noise=None)
    at = towards(rng, drawn, given.z, noise)
    second = (
        at.factor @ np.swapaxes(at.factor, -1, -2) + at.mean[..., :, None] * at.mean[..., None, :]
    )
    rows, columns = np.triu_indices(d + 1)
    sums = n * np.concatenate([second[0][:, rows, columns], at.mean[0]], axis=-1)
    off = np.abs(sums - given.z).mean(axis=-1) / noise
    assert off.max() < 4

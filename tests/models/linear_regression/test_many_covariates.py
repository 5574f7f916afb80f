"""More covariates than are written out (LAPACK), and no more records than coefficients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from noisewise.models.linear_regression import exact
from tests.inference.agreement import TOLERANCE, departures, known, summary
from tests.inference.regressions import problem, table
from tests.reference import regression_reference as reference

pytestmark = pytest.mark.xdist_group("many-covariates")


@pytest.mark.parametrize(("d", "n"), [(7, 60), (7, 6), (3, 3)])
def test_without_noise_the_posterior_is_the_conjugate_one(d: int, n: int) -> None:
    """Noise far below the signal; the scatter of 3 or 6 records is singular."""
    w = table(np.random.default_rng(n), n, d)
    p = reference.paper_priors(d)
    given = replace(problem([w], 1e-3, priors=p), keys=None)
    post = exact.run(given, 0, 4, 1000)
    assert post.converged, post.status
    first, second = reference.moments_given_statistic(reference.statistic(w), n, p)
    expected = known(first, np.sqrt(second - first**2))
    assert np.abs(departures(summary(post), expected)).max() < TOLERANCE
    assert post.latent["tau2"].shape == (4, 1000, d, d)


@pytest.mark.parametrize(("d", "n"), [(7, 6), (3, 3)])
def test_few_records_and_nothing_but_noise_give_the_prior(d: int, n: int) -> None:
    """Only the volume of singular scatters stands between this and a wrong prior."""
    w = table(np.random.default_rng(n), n, d)
    p = reference.paper_priors(d)
    post = exact.run(replace(problem([w], 1e4, priors=p), keys=None), 0, 4, 1000)
    assert post.converged, post.status
    variance = p.b0 / (p.a0 - 1)
    spread = np.sqrt(np.append(variance * np.diag(np.linalg.inv(p.lam0)), 0.0))
    spread[-1] = variance / np.sqrt(p.a0 - 2)
    expected = known(np.append(p.m0, variance), spread)
    assert np.abs(departures(summary(post), expected)).max() < TOLERANCE

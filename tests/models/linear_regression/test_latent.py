"""What `exact` tells beyond coefficients: the sums behind the noise, and the covariates' law."""

from __future__ import annotations

import numpy as np
import pytest

from noisewise.models.linear_regression import exact, posterior_draws
from noisewise.models.linear_regression.coordinates import full_rank
from tests.inference.agreement import TOLERANCE
from tests.inference.regressions import CHAINS, DRAWS, GROUPS, problem, table
from tests.reference import regression_reference as reference

pytestmark = pytest.mark.xdist_group("one-covariate")


def test_without_noise_the_sums_are_the_sums() -> None:
    """And (μx, τ²) is its conjugate posterior: 4 comparisons of means, per group."""
    rng = np.random.default_rng(60)
    chosen = [table(rng, 60) for _ in range(GROUPS)]
    seen: list[tuple[int, int]] = []
    post = exact.run(problem(chosen, 1e-4), 0, CHAINS, DRAWS, lambda *a: seen.append(a))
    assert post.latent["s"].shape == (GROUPS, CHAINS, DRAWS, 5)
    assert post.latent["mu_x"].shape == (GROUPS, CHAINS, DRAWS, 1)
    assert post.latent["tau2"].shape == (GROUPS, CHAINS, DRAWS, 1, 1)
    p = reference.paper_priors()
    for group, w in enumerate(chosen):
        sums = post.latent["s"][group].mean(axis=(0, 1))
        np.testing.assert_allclose(sums, reference.statistic(w), atol=1e-3)
        x, n = w[:, 0], len(w)
        kappa, nu = p.kappa0 + n, p.nu0 + n
        scale = p.psi0[0, 0] + x.var() * n + p.kappa0 * n / kappa * (x.mean() - p.mu0[0]) ** 2
        centre = (p.kappa0 * p.mu0[0] + x.sum()) / kappa
        tau2 = scale / (nu - 2)
        error = np.sqrt(np.array([tau2 / kappa, 2 * tau2**2 / (nu - 4)]) / (CHAINS * DRAWS))
        found = [post.latent[name][group].mean() for name in ("mu_x", "tau2")]
        assert np.abs((np.array(found) - [centre, tau2]) / error).max() < TOLERANCE
    assert seen[-1] == (GROUPS, GROUPS)
    assert set(post.details) == {"tries", "divergences", "seconds", "hidden"}


def test_a_secret_n_is_inferred() -> None:
    """Noise of 2 on n = 60 and on the sums: n is near what was released, and as uncertain."""
    rng = np.random.default_rng(60)
    chosen = [table(rng, 60) for _ in range(GROUPS)]
    given = problem(chosen, 2.0, noisy_n=True)
    post = exact.run(given, 0, CHAINS, DRAWS)
    assert post.converged, post.status
    n = post.latent["s"][..., -1]
    assert post.latent["s"].shape[-1] == 6
    assert (np.abs(n.mean(axis=(1, 2)) - given.z[:, -1]) < 2).all()
    # A Laplace of scale 2 has an sd of 2.8; the other sums can hardly help.
    assert (np.abs(n.std(axis=(1, 2)) - 2.8) < 0.6).all()


def test_what_would_not_fit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not posterior_draws.latent_fit(full_rank(2), 73_000 * 2000)
    monkeypatch.setattr(posterior_draws, "MAX_LATENT_NUMBERS", 1000)
    rng = np.random.default_rng(0)
    post = exact.run(problem([table(rng, 60)] * GROUPS, 1.0), 0, CHAINS, DRAWS)
    assert post.latent == {}

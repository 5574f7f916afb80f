"""From draws in the box to a Posterior in the user's units."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from noisewise.inference.posterior import Posterior
from noisewise.models.linear_regression.problem import Problem
from noisewise.models.linear_regression.without_noise import deviations
from noisewise.numerics.convergence import diagnose
from noisewise.priors import NormalInverseGamma

_SLAB = 4096


def posterior(
    problem: Problem, parameters: np.ndarray, method: str, details: Mapping[str, Any]
) -> Posterior:
    """Parameters (group, chain, draw, θ… σ²) in the box; units and diagnostics added."""
    user = np.moveaxis(problem.units.to_user(parameters), -1, 0)
    judged = [judge(values) for values in user]
    rhat, ess = (np.stack(side) for side in zip(*judged, strict=True))
    return assembled(problem, user, rhat, ess, method, details)


def assembled(
    problem: Problem,
    user: np.ndarray,
    rhat: np.ndarray,
    ess: np.ndarray,
    method: str,
    details: Mapping[str, Any],
    latent: Mapping[str, np.ndarray] | None = None,
) -> Posterior:
    """Name what is in the user's units already: draws (parameter, group, chain, draw)."""
    names = (*problem.x, "intercept", "sigma2")
    only = problem.keys is None

    def named(values: np.ndarray) -> dict[str, np.ndarray]:
        return {name: v[0] if only else v for name, v in zip(names, values, strict=True)}

    return Posterior(
        draws=named(user),
        rhat=named(rhat),
        ess=named(ess),
        method=method,
        x=problem.x,
        y=problem.y,
        keys=problem.keys,
        prior=f"response {problem.response}; covariates {problem.covariates}",
        details=details,
        latent=latent or {},
        prior_draws=partial(prior_draws, problem.response, names),
        without_noise=partial(deviations, problem, latent) if latent else None,
    )


def prior_draws(
    prior: NormalInverseGamma, names: tuple[str, ...], number: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Draws of every coefficient and the error variance before anything is seen."""
    rng = np.random.default_rng(seed)
    sigma2 = prior.rate / rng.standard_gamma(prior.shape, number)
    white = rng.standard_normal((len(prior.mean), number))
    # Λ0 = L Lᵀ: L⁻ᵀ times white noise has covariance Λ0⁻¹.
    spread = np.linalg.solve(np.linalg.cholesky(prior.precision).T, white) * np.sqrt(sigma2)
    return dict(zip(names, [*(prior.mean[:, None] + spread), sigma2], strict=True))


def judge(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R-hat and ESS per group, a slab at a time so that memory stays bounded."""
    parts = [diagnose(values[i : i + _SLAB]) for i in range(0, len(values), _SLAB)]
    rhat, ess = zip(*parts, strict=True)
    return np.concatenate(rhat), np.concatenate(ess)

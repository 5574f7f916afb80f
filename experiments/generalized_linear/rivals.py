"""Two rivals that read the same noisy sums, as the field has them; neither accounts for the noise.

* ``polynomial``: the logistic log likelihood replaced by its second-order expansion at zero,
  -log 2 + t/2 - t²/8 (T. Kulkarni, J. Jälkö, A. Koskela, S. Kaski, A. Honkela, "Differentially
  private Bayesian inference for generalized linear models", ICML 2021, use such statistics; their
  noise-aware sampler is not rewritten here), with intervals from its curvature.
* ``rescaled``: least squares of the 0/1 response, divided by p (1 - p), with the classical
  intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from noisewise.models.base import Progress
from noisewise.models.generalized_linear.posterior import GeneralizedPosterior, posterior_of
from noisewise.models.generalized_linear.problem import GeneralizedProblem
from noisewise.models.generalized_linear.starting_values import noisy_moments
from noisewise.numerics.convergence import diagnose_groups

Estimate = Callable[[np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray]]
"""(X'X, X'y, n) with the intercept first in, coefficients and their covariance out."""


def polynomial(gram: np.ndarray, cross: np.ndarray, n: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the maximum of Σ (y - ½) t - t²/8, and its inverse curvature."""
    covariance = 4 * np.linalg.inv(gram)
    return covariance @ (cross - 0.5 * gram[0]), covariance


def rescaled(gram: np.ndarray, cross: np.ndarray, n: float) -> tuple[np.ndarray, np.ndarray]:
    """Return least squares of y over p (1 - p), the intercept so that the mean response is p."""
    inverse = np.linalg.inv(gram)
    fit = inverse @ cross
    p = float(np.clip(cross[0] / n, 0.01, 0.99))
    rest = max(float(cross[0] - fit @ cross) / n, 1e-3)
    slopes = fit / (p * (1 - p))
    slopes[0] = np.log(p / (1 - p)) - slopes[1:] @ gram[0, 1:] / n
    return slopes, inverse * rest / (p * (1 - p)) ** 2


def run_by(
    estimate: Estimate,
) -> Callable[[GeneralizedProblem, int, int, int, Progress | None], GeneralizedPosterior]:
    """Return a method that draws from the normal law about an estimate."""

    def run(
        problem: GeneralizedProblem, seed: int, chains: int, draws: int,
        progress: Progress | None = None,
    ) -> GeneralizedPosterior:  # fmt: skip
        rng, d = np.random.default_rng(seed), len(problem.x)
        mean, covariance = noisy_moments(problem)
        half, centre = problem.units.half, problem.units.centre
        user = np.empty((d + 1, len(problem.n), chains, draws))
        for g, n in enumerate(problem.n):
            one = np.append(1.0, mean[g])
            gram = n * np.outer(one, one)
            gram[1:, 1:] += n * covariance[g]
            cross = half[-1] * problem.response[g] + centre[-1] * n * one
            theta, spread = estimate(gram, cross, float(n))
            drawn = rng.multivariate_normal(theta, spread, (chains, draws))
            user[problem.order, g] = (
                np.moveaxis(drawn[..., 1:], -1, 0) / half[problem.order, None, None]
            )
            user[d, g] = drawn[..., 0] - np.tensordot(centre[:d], user[:d, g], axes=1)
        judged = [diagnose_groups(values) for values in user]
        rhat, ess = (np.stack(s) for s in zip(*judged, strict=True))
        details: dict[str, Any] = {}
        return posterior_of(
            problem, user, rhat, ess, estimate.__name__, details, None, mean, covariance
        )

    return run

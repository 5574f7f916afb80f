"""Method ``gibbs-noisy``: Gibbs-SS-Noisy, moments of x from privately released monomials.

The owner spends part of the budget on Σ x_i x_j x_k x_l and all lower monomials; their averages are
used as if they were exact, as in the paper (which finds slight miscalibration for that reason).
In the box no monomial leaves [-1, 1] and no even one is negative: noisy averages are clamped to
that first, and then moved to the nearest moments that some distribution has, where they are none.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.inference.posterior import Posterior
from noisewise.models.base import Progress
from noisewise.models.linear_regression.gibbs_prior import run_given_moments
from noisewise.models.linear_regression.problem import RegressionProblem


def noisy_fourth(problem: RegressionProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return E[x̃⊗4] (group, …) from noisy averages, and in which groups one left its range."""
    if problem.moments is None or not any(len(p) == 4 for p in problem.exponents):
        raise ArgumentError(
            f"method: gibbs-noisy needs released monomials of {', '.join(problem.x)} up to degree "
            "four, which this release does not have: release with monomials=True, these columns "
            "as x"
        )
    averages = problem.moments / problem.n[:, None]
    even = np.array([all(p.count(i) % 2 == 0 for i in p) for p in problem.exponents])
    clamped = np.clip(averages, np.where(even, 0.0, -1.0), 1.0)
    d = len(problem.x)
    place = {p: c for c, p in enumerate(problem.exponents)}
    fourth = np.ones((*(d + 1,) * 4, len(averages)))
    for index in itertools.product(range(d + 1), repeat=4):
        if product := tuple(sorted(i for i in index if i < d)):
            fourth[index] = clamped[:, place[product]]
    return np.moveaxis(fourth, -1, 0), (clamped != averages).any(axis=1)


def run(
    problem: RegressionProblem, seed: int, chains: int, draws: int, progress: Progress | None = None
) -> Posterior:
    """Sample by Gibbs-SS-Noisy."""
    fourth, outside = noisy_fourth(problem)
    details: dict[str, Any] = {
        "moments": "released, with noise, as if exact",
        "moments_clamped_share": float(outside.mean()),
    }
    return run_given_moments("gibbs-noisy", fourth, problem, seed, chains, draws, progress, details)

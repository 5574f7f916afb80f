"""What noise-aware inference is compared with (errata E8): each says what it satisfies.

These draw from NumPy and know the exact data: for experiments only, never for a release.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import stats

from experiments.exponential_families.simulate import Trials

SATISFIES = {
    "exact": "ε-DP; models data and noise exactly",
    "gibbs": "ε-DP; models the noise, sums normal by the central limit theorem",
    "gibbs as printed": "ε-DP; thesis Algorithm 2 before errata E14",
    "naive": "ε-DP; ignores the noise",
    "naive, untruncated": "NOT private: the thesis' baseline sees the whole sum, with noise of the "
    "truncated one",
    "non-private": "NOT private: the conjugate posterior of the data",
    "one-posterior sampling": "ε-DP by the exponential mechanism, 100 draws of ε/100 each, only "
    "because p is confined to [0.1, 0.9]",
}


def one_posterior_sampling(
    rng: np.random.Generator, s: np.ndarray, n: int, epsilon: float, alpha: float = 1.0,
    beta: float = 1.0, draws: int = 100, edge: float = 0.1,
) -> np.ndarray:  # fmt: skip
    """Draws (trial, draw) of p for binary data: thesis 4.4.1, after Foulds et al. (2016).

    With p in [edge, 1 - edge], replacing one record changes the log-likelihood by at most
    Δ = log((1 - edge)/edge). The exponential mechanism draws from the posterior to the power
    min(1, ε'/2Δ), ε' = ε/draws: a beta again, cut to the support.
    """
    power = min(1.0, epsilon / draws / (2 * math.log((1 - edge) / edge)))
    a, b = power * (alpha + s - 1) + 1, power * (beta + n - s - 1) + 1
    law = stats.beta(a[:, None], b[:, None])
    low, high = law.cdf(edge), law.cdf(1 - edge)
    return np.asarray(law.ppf(low + (high - low) * rng.random((len(s), draws))))


def untruncated(given: Trials, rng: np.random.Generator) -> Trials:
    """The thesis' "cheating" baseline: the whole sum, with noise for the truncated one."""
    noisy = given.sums + rng.laplace(0, given.problem.scale, given.sums.shape)
    return replace(given, problem=replace(given.problem, z=noisy))

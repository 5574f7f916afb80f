"""Gaussian differential privacy: one number μ for an (ε, δ), and how shares of it compose.

J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy" (JRSS B 84, 2022): noise of deviation
Δ₂/μ is μ-private, several are √(Σ μᵢ²)-private together, and μ-private is (ε, δ)-private where

    δ = Φ(-ε/μ + μ/2) - exp(ε) Φ(-ε/μ - μ/2).
"""

from __future__ import annotations

import numpy as np
from scipy import optimize
from scipy.special import log_ndtr, ndtr


def delta_of(epsilon: float, mu: float) -> float:
    """Return δ, the privacy profile at ε."""
    return float(ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2)))


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest μ that is (ε, δ)-private."""
    return float(optimize.brentq(lambda mu: delta_of(epsilon, mu) - delta, 1e-6, 1e3, xtol=1e-12))

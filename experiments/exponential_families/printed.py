"""Thesis Algorithm 2 as printed, for the exponential family: what errata E14 corrects.

Kept: the three regions' sums are drawn as if independent, and line 10 draws the middle one again
from its law given θ alone, so that the released value is forgotten when the noise's variance is
updated. Mended, because nothing could run otherwise: RS-CLT's mean nq is n q μ̂, and q is
F(w; θ) - F(v; θ). A baseline of experiments; ``noisewise.infer`` has the corrected sampler.
"""

from __future__ import annotations

import numpy as np

from noisewise import priors

TRIES = 30


def exponential(
    rng: np.random.Generator, z: np.ndarray, n: int, scale: float, prior: priors.Gamma,
    interval: tuple[float, float], draws: int, burn_in: int,
) -> np.ndarray:  # fmt: skip
    """Rates (trial, draw): one chain for each released sum, every sweep after the burn-in."""
    low, high = interval
    rate = rng.gamma(prior.shape, 1 / prior.rate, len(z))
    mixture = 2 * scale**2 * rng.exponential(size=len(z))
    kept = np.empty((len(z), draws))
    for sweep in range(-burn_in, draws):
        m_c, v_c = random_sum(rate, low, high, n)
        m_l, v_l = random_sum(rate, 0.0, low, n)
        m_u, v_u = random_sum(rate, high, np.inf, n)
        pulled = v_c * mixture / (v_c + mixture)
        centre = pulled * (m_c / v_c + z / mixture)
        s = _positive(rng, m_l + centre + m_u, np.sqrt(v_l + pulled + v_u))
        rate = rng.gamma(prior.shape + n, 1 / (prior.rate + s))
        m_c, v_c = random_sum(rate, low, high, n)
        s_c = m_c + np.sqrt(v_c) * rng.standard_normal(len(z))
        mixture = 1 / rng.wald(1 / (scale * np.abs(z - s_c)), 1 / scale**2)
        if sweep >= 0:
            kept[:, sweep] = rate
    return kept


def random_sum(rate: np.ndarray, low: float, high: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """RS-CLT: mean and variance of the sum of those of n records that lie in [low, high]."""
    width = rate * (high - low)
    inside = np.exp(-rate * low) * -np.expm1(-width)
    with np.errstate(over="ignore", invalid="ignore"):
        tail = np.where(np.isinf(width), 0.0, (high - low) / np.expm1(width))
        mean = low + 1 / rate - tail
        variance = 1 / rate**2 - np.where(np.isinf(width), 0.0, tail**2 * np.exp(width))
    variance = np.maximum(variance, 0.0)
    return n * inside * mean, n * inside * (variance + (1 - inside) * mean**2)


def _positive(rng: np.random.Generator, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Normal draws, again while they are no possible sum; the thesis rejects for ever."""
    s = mean + sd * rng.standard_normal(len(mean))
    for _ in range(TRIES):
        bad = s <= 0
        if not bad.any():
            break
        s[bad] = mean[bad] + sd[bad] * rng.standard_normal(int(bad.sum()))
    return np.where(s <= 0, 1e-9, s)

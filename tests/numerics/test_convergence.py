"""R-hat and effective sample size against a slow version written from the paper's formulas."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

from noisewise.numerics.convergence import diagnose


def scores(draws: np.ndarray) -> np.ndarray:
    ranks = stats.rankdata(draws, method="average").reshape(draws.shape)
    return np.asarray(stats.norm.ppf((ranks - 3 / 8) / (draws.size + 1 / 4)))


def slow_rhat(draws: np.ndarray) -> float:
    length = draws.shape[1]
    within = np.mean([np.var(c, ddof=1) for c in draws])
    between = length * np.var([c.mean() for c in draws], ddof=1)
    return float(np.sqrt(((length - 1) / length * within + between / length) / within))


def slow_ess(draws: np.ndarray) -> float:
    chains, length = draws.shape
    within = np.mean([np.var(c, ddof=1) for c in draws])
    pooled = within * (length - 1) / length + np.var(draws.mean(axis=1), ddof=1)
    rho = [1.0]
    for lag in range(1, length):
        products = []
        for c in draws:
            off = c - c.mean()
            products.append(np.sum(off[lag:] * off[:-lag]) / (length - 1))
        rho.append(1 - (within - np.mean(products)) / pooled)
    total, least = 0.0, np.inf
    for first in range(0, length - 1, 2):
        pair = rho[first] + rho[first + 1]
        if pair <= 0:
            break
        least = min(least, pair)
        total += least
    return float(chains * length / max(-1 + 2 * total, 1 / np.log10(chains * length)))


def slow(draws: np.ndarray) -> tuple[float, float]:
    half = draws.shape[1] // 2
    split = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    bulk = scores(split)
    folded = scores(np.abs(split - np.median(split)))
    return max(slow_rhat(bulk), slow_rhat(folded)), slow_ess(bulk)


@pytest.mark.parametrize("judge", [diagnose, jax.jit(diagnose)], ids=["numpy", "jax"])
def test_diagnostics_of_good_sticky_shifted_and_wider_chains(judge: Any) -> None:
    rng = np.random.default_rng(0)
    white = rng.standard_normal((4, 4, 100))
    cases = white.copy()
    for t in range(1, 100):
        cases[1, :, t] = 0.9 * cases[1, :, t - 1] + white[1, :, t]
    cases[2, 0] += 1.5
    cases[3, 0] *= 4
    rhat, ess = judge(cases)
    for case, r, e in zip(cases, rhat, ess, strict=True):
        expected_r, expected_e = slow(case)
        np.testing.assert_allclose(r, expected_r, rtol=1e-9)
        np.testing.assert_allclose(e, expected_e, rtol=1e-9)
    assert rhat[0] < 1.02 < 1.1 < min(rhat[2], rhat[3])
    assert ess[1] < 60 < 250 < ess[0]

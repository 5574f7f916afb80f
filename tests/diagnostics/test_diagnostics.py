"""Diagnostics against plain oracles: loops, closed forms, and draws whose law is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from noisewise import diagnostics


def test_ranks_are_shares_of_draws_below_the_truth() -> None:
    draws = np.array([[[1.0], [2.0], [3.0], [4.0]], [[0.0], [0.0], [5.0], [5.0]]])
    np.testing.assert_allclose(diagnostics.ranks(draws, np.array([[2.5], [5.0]])), [[0.5], [0.75]])
    with pytest.raises(ValueError, match="draws: must have the shape of truth"):
        diagnostics.ranks(draws, np.zeros(2))


def test_ks_is_the_largest_distance_from_the_diagonal() -> None:
    u = np.sort(np.random.default_rng(1).random(40) ** 1.3)
    steps = np.arange(41) / 40
    plain = max(np.max(steps[1:] - u), np.max(u - steps[:-1]))
    found = diagnostics.ks(u)
    assert found.statistic == pytest.approx(plain)
    with pytest.raises(ValueError, match="u: must be"):
        diagnostics.ks(np.array([0.5, 1.5]))


def test_the_limit_is_the_papers_at_three_hundred_trials() -> None:
    assert diagnostics.ks_limit(300) == pytest.approx(0.0779, abs=2e-4)
    trials = np.random.default_rng(2).random((2000, 50))
    limit = diagnostics.ks_limit(50)
    above = np.mean([diagnostics.ks(u).statistic > limit for u in trials])
    assert abs(above - 0.05) < 0.02  # four standard errors: false alarm below 1e-4


def test_the_band_holds_all_sorted_ranks_at_once() -> None:
    low, high = diagnostics.uniform_band(60, 0.9)
    sorted_u = np.sort(np.random.default_rng(3).random((4000, 60)), axis=1)
    inside = ((sorted_u >= low) & (sorted_u <= high)).all(axis=1).mean()
    assert abs(inside - 0.9) < 0.025  # four standard errors of both simulations
    assert (np.diff(low) > 0).all()
    assert low[0] == pytest.approx(1 - high[-1])


def test_coverage_of_known_intervals() -> None:
    rng = np.random.default_rng(4)
    draws = rng.normal(0, 1, (400, 2000, 2))
    truth = rng.normal(0, 1, (400, 2)) * [1.0, 3.0]
    found = diagnostics.coverage(draws, truth, 0.9)
    low, high = diagnostics.share_band(0.9, 400, 0.9999)
    assert low < found.share[0] < high
    assert found.share[1] < 0.6
    np.testing.assert_allclose(found.width, 2 * stats.norm.isf(0.05), rtol=0.02)
    with pytest.raises(ValueError, match="level"):
        diagnostics.coverage(draws, truth, 1.0)


def test_mmd_is_the_papers_double_sum() -> None:
    rng = np.random.default_rng(5)
    p, q = rng.normal(0, 1, (2, 30, 2)), rng.normal(0.5, 2, (2, 30, 2))

    def kernel(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.exp(-((a - b) ** 2).sum() / 2))

    plain = [
        sum(
            kernel(a[i], a[j]) + kernel(b[i], b[j]) - kernel(a[i], b[j]) - kernel(a[j], b[i])
            for i in range(30)
            for j in range(30)
            if i != j
        )
        / (30 * 29)
        for a, b in zip(p, q, strict=True)
    ]
    np.testing.assert_allclose(diagnostics.mmd2(p, q), plain, rtol=1e-10)


def test_mmd_of_equal_laws_is_zero_on_average_and_grows_with_distance() -> None:
    rng = np.random.default_rng(6)
    p, q = rng.normal(0, 1, (2, 200, 100, 1))
    same = diagnostics.mmd2(p, q)
    assert abs(same.mean()) < 4 * same.std() / np.sqrt(200)
    # Closed form for N(0, 1) and N(2, 1): 2/√3 (1 - exp(-2²/6)).
    far = diagnostics.mmd2(p, q + 2)
    exact = 2 / np.sqrt(3) * (1 - np.exp(-4 / 6))
    assert abs(far.mean() - exact) < 4 * far.std() / np.sqrt(200)


def test_kl_of_tables() -> None:
    p, q = np.array([[0.5, 0.0], [0.25, 0.25]]), np.full((2, 2), 0.25)
    assert diagnostics.kl(p, q) == pytest.approx(0.5 * np.log(2))
    assert diagnostics.kl(q, p) == np.inf
    with pytest.raises(ValueError, match="q: must be probabilities"):
        diagnostics.kl(p, q / 2)


def test_log_predictive_averages_densities_not_logs() -> None:
    density = np.array([[0.1, 0.5], [0.3, 0.5]])
    expected = (np.log(0.2) + np.log(0.5)) / 2
    assert diagnostics.log_predictive(np.log(density)) == pytest.approx(expected)


def test_deciles() -> None:
    target = np.arange(100.0)
    moved = target.copy()
    moved[:10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 55.5]
    table = diagnostics.decile_confusion(moved, target)
    assert table.sum() == 100
    assert (table.sum(axis=1) == 10).all()
    assert (table.sum(axis=0) == 10).all()
    assert diagnostics.outer_deciles_kept(table) == (0.9, 1.0)
    assert diagnostics.mean_absolute_error(moved, target) == pytest.approx(46.5 / 100)


def test_wider_is_the_mean_log_ratio_of_widths() -> None:
    rng = np.random.default_rng(7)
    draws = rng.normal(size=(40, 200, 2)) * rng.uniform(0.5, 2, (40, 1, 1))
    found = diagnostics.wider(draws * [1.1, 0.9], draws)
    np.testing.assert_allclose(found.mean, np.log([1.1, 0.9]))
    np.testing.assert_allclose(found.error, 0, atol=1e-12)
    other = rng.normal(size=draws.shape)
    ratio = [np.log(np.ptp(np.quantile(a, [0.25, 0.75])) / np.ptp(np.quantile(b, [0.25, 0.75])))
             for a, b in zip(draws[:, :, 0], other[:, :, 0], strict=True)]  # fmt: skip
    found = diagnostics.wider(draws, other, 0.5)
    assert found.mean[0] == pytest.approx(np.mean(ratio))
    assert found.error[0] == pytest.approx(np.std(ratio, ddof=1) / np.sqrt(40))
    # A trial whose intervals have no width says nothing.
    other[0, :, 1] = 3.0
    assert np.isfinite(diagnostics.wider(draws, other).mean).all()

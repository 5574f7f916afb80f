"""Calibration, headroom and selection: OpenDP's promises, checked before anything is drawn."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from noisewise.artifact import ArgumentError
from noisewise.artifact.guarantee import zcdp_epsilon
from noisewise.artifact.sensitivity import Sensitivity
from noisewise.privacy.budget import shares
from noisewise.privacy.mechanisms import calibrate, select_least, zcdp_budget


@pytest.mark.parametrize("cost", [1e-3, 0.1, 1 / 3, 0.7, 1.0, 17.3])
@pytest.mark.parametrize("l1", [1, 2, 5726623061, 70281283025])
def test_the_privacy_map_never_exceeds_the_claim(cost: float, l1: int) -> None:
    bound = Sensitivity(l1, l1 * l1 // 2 + 1)
    for mechanism, d_in in (("laplace", bound.l1), ("gaussian", bound.l2)):
        made = calibrate(mechanism, bound, cost)  # type: ignore[arg-type]
        assert Fraction(made.measurement.map(d_in)) <= Fraction(cost)
        # And no more noise than theory needs, up to the nudge.
        theory = d_in / cost if mechanism == "laplace" else d_in / math.sqrt(2 * cost)
        assert made.noise.scale == pytest.approx(theory, rel=1e-12)


def test_noise_has_the_announced_spread() -> None:
    """40,000 draws: the sample variance is within 6 % except with probability below 1e-5."""
    bound = Sensitivity(1000, 1000**2)
    for mechanism, factor in (("laplace", 2.0), ("gaussian", 1.0)):
        made = calibrate(mechanism, bound, 0.5)  # type: ignore[arg-type]
        drawn = made.draw(np.full((2, 20_000), 7, np.int64)) - 7
        assert drawn.shape == (2, 20_000)
        assert np.var(drawn) == pytest.approx(factor * made.noise.scale**2, rel=0.06)
        assert abs(drawn.mean()) < 5 * np.sqrt(np.var(drawn) / drawn.size)


def test_fresh_noise_every_time() -> None:
    made = calibrate("laplace", Sensitivity(10**6, 10**12), 1.0)
    zeros = np.zeros((1, 8), np.int64)
    assert not np.array_equal(made.draw(zeros), made.draw(zeros))


def test_noise_that_would_saturate_is_refused() -> None:
    made = calibrate("laplace", Sensitivity(2**30, 2**60), 1.0)
    with pytest.raises(ArgumentError, match="64-bit"):
        made.draw(np.array([[2**63 - 2**34]]))
    with pytest.raises(ArgumentError, match="epsilon"):
        calibrate("laplace", Sensitivity(2**40, 2**80), 1e-9)


def test_sensitivities_beyond_64_bits_are_refused() -> None:
    calibrate("laplace", Sensitivity(2**63 - 1, 2**126), 1e4)
    with pytest.raises(ArgumentError, match="max_records: so many records"):
        calibrate("laplace", Sensitivity(2**63, 2**126), 1e4)


def test_only_integers_get_noise() -> None:
    made = calibrate("laplace", Sensitivity(1, 1), 1.0)
    with pytest.raises(TypeError, match="integers"):
        made.draw(np.array([[0.5]]))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (4.0, 1e-9), (30, 0.01)])
def test_zcdp_budget_is_as_large_as_allowed(epsilon: float, delta: float) -> None:
    rho = zcdp_budget(epsilon, delta)
    assert zcdp_epsilon(rho, delta) <= epsilon * (1 + 1e-9)
    assert zcdp_epsilon(rho * 1.0001, delta) > epsilon


def test_selection_prefers_small_penalties_and_respects_the_map() -> None:
    penalties = np.array([900, 400, 0, 500, 900])
    for accounting in ("pure", "zcdp"):
        picks = [select_least(penalties, 1, accounting, 1.0) for _ in range(50)]
        assert picks == [2] * 50
    spread = {select_least(np.zeros(5, np.int64), 1, "pure", 1.0) for _ in range(200)}
    assert spread == {0, 1, 2, 3, 4}


def test_shares_add_up_to_no_more_than_the_whole() -> None:
    for cost in (0.1, 1 / 3, 1.0, 7e-5):
        for split in (None, {"gram": 3.0, "monomials": 0.1, "clamped": 1e-3}):
            parts = shares(cost, ("gram", "monomials", "clamped"), split)
            assert sum(Fraction(c) for c in parts.values()) <= Fraction(cost)
            assert sum(parts.values()) == pytest.approx(cost, rel=1e-12)
    even = shares(1.0, ("gram", "monomials"), None)
    assert even == {"gram": 0.5, "monomials": 0.5}

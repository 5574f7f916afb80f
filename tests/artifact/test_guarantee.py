"""What a guarantee claims: zCDP converted as OpenDP converts it, and its limits."""

from __future__ import annotations

import math

import numpy as np
import opendp.prelude as dp
import pytest

from noisewise.artifact import Guarantee, Noise, ReleaseError
from noisewise.artifact.guarantee import zcdp_epsilon

dp.enable_features("contrib")

RHOS = (1e-20, 1e-12, 1e-6, 1e-4, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0)
DELTAS = (1e-300, 1e-20, 1e-12, 1e-9, 1e-6, 1e-3, 0.1)


def opendp_epsilon(rho: float, delta: float) -> float:
    """The conversion that the release side pays by."""
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=dp.f64)
    measurement = dp.m.make_gaussian(*space, scale=math.sqrt(1 / (2 * rho)))
    return float(dp.c.make_zCDP_to_approxDP(measurement).map(1.0).epsilon(delta))


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_conversion_agrees_with_opendp(rho: float, delta: float) -> None:
    assert zcdp_epsilon(rho, delta) == pytest.approx(opendp_epsilon(rho, delta), rel=1e-9)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_conversion_is_no_worse_than_the_simple_bound(rho: float, delta: float) -> None:
    """Bun and Steinke 2016, Prop. 1.3: ρ + 2√(ρ log(1/δ))."""
    simple = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert 0 <= zcdp_epsilon(rho, delta) <= simple


def test_a_larger_rho_costs_more() -> None:
    epsilons = [zcdp_epsilon(rho, 1e-6) for rho in np.geomspace(1e-8, 1e4, 200)]
    assert (np.diff(epsilons) > 0).all()


def test_a_larger_delta_costs_less() -> None:
    epsilons = [zcdp_epsilon(0.5, delta) for delta in np.geomspace(1e-300, 0.1, 200)]
    assert (np.diff(epsilons) < 0).all()


def test_no_budget_is_no_epsilon() -> None:
    assert zcdp_epsilon(1e-300, 1e-6) == 0
    assert zcdp_epsilon(5e-324, 1e-6) == 0


def test_any_failure_allowed_is_no_epsilon() -> None:
    """With δ close to one a small ρ is already (0, δ)-private."""
    assert zcdp_epsilon(0.1, 1 - 1e-12) == 0


def test_epsilon_approaches_rho_where_rho_is_large() -> None:
    assert zcdp_epsilon(1e8, 1e-6) == pytest.approx(1e8, rel=1e-2)


@pytest.mark.parametrize(("rho", "delta"), [(1e308, 5e-324), (5e-324, 5e-324), (1e308, 0.5)])
def test_extreme_claims_convert_without_an_exception(rho: float, delta: float) -> None:
    assert zcdp_epsilon(rho, delta) >= 0


def test_statement_tells_what_is_promised() -> None:
    pure = Guarantee(0.5, "replace-one")
    assert pure.accounting == "pure"
    assert "0.5-differential privacy: replacing any one person's record" in pure.statement()
    zcdp = Guarantee(8.0, "add-remove", 1e-6, 1.0)
    assert zcdp.accounting == "zcdp"
    assert "1-zCDP and (8, 1e-06)-differential privacy" in zcdp.statement()
    assert "adding or removing any one person's record" in zcdp.statement()
    within = Guarantee(0.5, "replace-one", within="tract")
    assert within.relation == "replace-one-within-tract"
    assert "of the same 'tract'" in within.statement()


@pytest.mark.parametrize("cost", [1e-3, 0.1, 1.0, 20.0])
def test_exactly_enough_noise_is_enough_and_less_is_refused(cost: float) -> None:
    for mechanism, enough in (("laplace", 6 / cost), ("gaussian", 6 / math.sqrt(2 * cost))):
        Noise(mechanism, enough, 6, cost)  # type: ignore[arg-type]
        with pytest.raises(ReleaseError, match="too small for sensitivity"):
            Noise(mechanism, enough * 0.999999, 6, cost)  # type: ignore[arg-type]


def test_an_empty_promise_is_called_one() -> None:
    assert "no protection" in Guarantee(1e9, "replace-one").statement()
    assert "no protection" not in Guarantee(8.0, "replace-one").statement()
    assert "fail altogether" in Guarantee(1.0, "add-remove", 0.5, 0.1).statement()
    assert "fail altogether" not in Guarantee(1.0, "add-remove", 1e-6, 0.1).statement()

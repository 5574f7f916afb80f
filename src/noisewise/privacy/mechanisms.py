"""The only caller of OpenDP: every privacy draw of the library is made here, on integers.

Discrete Laplace and discrete Gaussian noise on 64-bit integer vectors, and noisy-max selection.
A mechanism is built and its privacy map checked against the claim *before* anything is drawn; the
scale is nudged up until the map agrees, never the claim until it fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

# Not opendp.prelude: it loads data-frame and learning libraries for seconds.
from opendp import combinators, domains, measurements, measures, metrics, typing
from opendp.mod import Domain, Measurement, OpenDPException, enable_features

from noisewise.artifact import ArgumentError, Mechanism, Noise
from noisewise.artifact.guarantee import MAX_SCALE, MIN_SCALE, gaussian_delta
from noisewise.artifact.sensitivity import Sensitivity

enable_features("contrib")

_HEADROOM = 60
"""Noise beyond this many scales has probability below 1e-26; OpenDP would saturate there."""

_NUDGES = 64
"""Attempts to raise a scale until the privacy map agrees; two or three are enough."""

OWNER_CAUTION = 4.0
"""Rounding errors that a claim by the Gaussian's profile keeps in reserve, so that a reader on a
machine that rounds otherwise agrees (docs/proofs/gaussian.md, section 4)."""


@dataclass(frozen=True)
class Calibrated:
    """A checked measurement: noise of ``noise.scale`` on any vector with that sensitivity."""

    noise: Noise
    measurement: Any

    def draw(self, exact: np.ndarray) -> np.ndarray:
        """Add noise to an integer array of any shape. The one place where secrets become public."""
        if exact.dtype != np.int64:
            raise TypeError("privacy noise is added to 64-bit integers only")
        largest = int(np.abs(exact).max(initial=0))
        if largest + _HEADROOM * self.noise.scale >= 2.0**63:
            raise ArgumentError(
                "epsilon: so small that the noise would not fit 64-bit integers beside the sums"
            )
        noisy = self.measurement(exact.ravel().tolist())
        return np.array(noisy, np.int64).reshape(exact.shape)


def calibrate(
    mechanism: Mechanism, bound: Sensitivity, cost: float, smoothing: int = 0
) -> Calibrated:
    """Return the least noise whose privacy map stays within ``cost``: ε, or ρ for Gaussian.

    Args:
        mechanism: the noise's distribution.
        bound: how far a person can move what is published.
        cost: the share of the budget.
        smoothing: the variance that Gaussian noise must have beyond this (`Guarantee.smoothing`).
    """
    if mechanism == "laplace" and bound.l1 >= 2**63:
        raise ArgumentError(
            "max_records: so many records of a person could move the sums beyond 64-bit "
            "integers; let fewer count, or release fewer columns"
        )
    if mechanism == "laplace":
        return _fit(mechanism, bound, bound.l1 / cost, cost)
    scale = math.hypot(bound.l2 / math.sqrt(2 * cost), math.sqrt(smoothing))
    return _fit(mechanism, bound, scale, cost, smoothing)


def _fit(
    mechanism: Mechanism, bound: Sensitivity, scale: float, cost: float, smoothing: int = 0
) -> Calibrated:
    """Nudge the scale up by single floating-point steps until the map keeps the promise."""
    if not MIN_SCALE <= scale < MAX_SCALE:
        raise ArgumentError(
            f"epsilon: a budget share of {cost!r} needs noise of scale {scale:.3g}, "
            f"outside [{MIN_SCALE:.3g}, {MAX_SCALE:.3g})"
        )
    d_in, make = (bound.l1, _laplace) if mechanism == "laplace" else (bound.l2, _gaussian)
    for _ in range(_NUDGES):
        # OpenDP's privacy map has no types.
        measurement: Any = make(scale)
        noise = Noise(mechanism, scale, float(d_in), cost)
        spent = max(Fraction(measurement.map(d_in)), bound.cost(noise, smoothing))
        if spent <= Fraction(cost):
            return Calibrated(noise, measurement)
        scale *= 1 + 2**-50
    raise AssertionError(f"OpenDP's privacy map exceeds {cost!r} at scale {scale!r}")


def _integers() -> Domain:
    return domains.vector_domain(domains.atom_domain(T=typing.i64))


def _laplace(scale: float) -> Measurement:
    # OpenDP accepts scale 0 and then returns raw data: _fit has refused it.
    return measurements.make_laplace(_integers(), metrics.l1_distance(T=typing.i64), scale=scale)


def _gaussian(scale: float) -> Measurement:
    return measurements.make_gaussian(_integers(), metrics.l2_distance(T=typing.f64), scale=scale)


def zcdp_budget(epsilon: float, delta: float) -> float:
    """Return the largest ρ, in float64 and from below, with ρ-zCDP ⇒ (ε, δ)-DP by OpenDP."""

    def implied(rho: float) -> float:
        measurement = _gaussian(math.sqrt(1 / (2 * rho)))
        try:
            converted: Any = combinators.make_zCDP_to_approxDP(measurement)
            return float(converted.map(1.0).epsilon(delta))
        except OpenDPException:
            # It overflows for large rho. Less than the whole epsilon is then used, never more.
            return math.inf

    rho = _largest(lambda rho: implied(rho) <= epsilon)
    if rho <= 0:
        raise ArgumentError(f"epsilon: {epsilon!r} is too small for delta {delta!r}")
    return rho


def gaussian_budget(epsilon: float, delta: float) -> float:
    """Return the largest ρ, from below, with Gaussian noise of ρ in all ⇒ (ε, δ)-DP; 0 if none.

    By the Gaussian's own privacy profile, which allows more than zCDP does for any noise.
    """
    return _largest(lambda rho: gaussian_delta(epsilon, rho, OWNER_CAUTION) <= delta)


def _largest(holds: Callable[[float], bool]) -> float:
    """Return the largest ρ at which a conversion holds, by bisection; 0 where none is found."""
    low, high = 0.0, 1.0
    while holds(high) and high < 2.0**40:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def select_least(penalties: np.ndarray, change: int, accounting: str, cost: float) -> int:
    """Draw the index of a small penalty: report-noisy-max on integers that move by ``change``."""
    measure = (
        measures.max_divergence()
        if accounting == "pure"
        else measures.zero_concentrated_divergence()
    )
    space = _integers(), metrics.linf_distance(T=typing.i64)
    scale = 2 * change / cost if accounting == "pure" else change / math.sqrt(2 * cost)
    for _ in range(_NUDGES):
        chooser: Any = measurements.make_noisy_max(*space, measure, scale=scale, negate=True)
        if Fraction(chooser.map(change)) <= Fraction(cost):
            return int(chooser(penalties.tolist()))
        scale *= 1 + 2**-50
    raise AssertionError(f"OpenDP's privacy map exceeds {cost!r} for noisy max")

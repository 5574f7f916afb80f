"""Do two releases contradict the claim that they are of the same records?

Where both hold the same statistic of the same records, z₁ - z₂ = η₁ - η₂: the sums cancel, and what
is left has a known law. By Chernoff, for every λ > 0,

    P(|η₁ - η₂| > t) ≤ 2 M₁(λ) M₂(λ) exp(-λ t),

with moment generating functions M(λ) ≤ exp(λ² b²/2) for discrete Gaussian noise of scale b
(Canonne, Kamath and Steinke 2020), and M(λ) ≤ 1/(1 - λ² b²), λ b < 1, for discrete Laplace noise:
exactly it is 1/(1 - r²), r = sinh(λ/2)/sinh(1/2b), and r ≤ λ b since sinh is convex above zero.
Every λ gives a limit that holds; the least is taken. Released numbers only: it costs no privacy.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from noisewise.artifact import ArgumentError, Block, Noise, ProbabilitySums, QuantileSum, Release

FALSE_ALARM = 1e-9
"""Of all comparisons of one call together."""


def check(releases: list[Release]) -> None:
    """Refuse releases whose sums are further apart than both noises can bring them."""
    pairs = [
        (i, j, one, two)
        for (i, first), (j, second) in combinations(enumerate(releases, start=1), 2)
        for one, two in shared(first, second)
    ]
    comparisons = sum(one.values.size for _, _, one, two in pairs)
    for i, j, one, two in pairs:
        # As Python's integers: a difference of two 64-bit numbers need not be one.
        apart = np.abs(one.values.astype(object) - two.values.astype(object)).astype(float)
        component, group = np.unravel_index(apart.argmax(), apart.shape)
        if apart[component, group] > limit(one.noise, two.noise, FALSE_ALARM / comparisons):
            raise ArgumentError(
                f"release: {i} and {j} cannot be releases of the same records: their sums of "
                f"{one.statistic.names[component]!r} are further apart than the noise of both "
                "allows, but for a chance of one in a billion. They are of different tables, or "
                "records changed in between: infer them separately"
            )


def shared(first: Release, second: Release) -> list[tuple[Block, Block]]:
    """Blocks of the same sums; not over partitions, which are drawn anew for every release."""
    return [
        (one, two)
        for one in first.blocks
        for two in second.blocks
        if one.statistic == two.statistic
        and one.values.shape == two.values.shape
        and not isinstance(one.statistic, ProbabilitySums | QuantileSum)
    ]


def limit(one: Noise, two: Noise, chance: float) -> float:
    """The least such t at which the bound on P(|η₁ - η₂| > t) is ``chance``."""
    odds = math.log(2 / chance)
    gaussian = sum(n.scale**2 for n in (one, two) if n.mechanism == "gaussian")
    laplace = max((n.scale for n in (one, two) if n.mechanism == "laplace"), default=0.0)
    # Beyond the best λ of the Gaussian part alone the bound only grows.
    most = min(
        math.sqrt(2 * odds / gaussian) if gaussian else math.inf,
        1 / laplace if laplace else math.inf,
    )
    rate = most * (1 - np.geomspace(1e-6, 0.999, 400))
    return float(np.min((_log_moment(one, rate) + _log_moment(two, rate) + odds) / rate))


def _log_moment(noise: Noise, rate: np.ndarray) -> np.ndarray:
    at = rate * noise.scale
    return at**2 / 2 if noise.mechanism == "gaussian" else -np.log1p(-(at**2))

"""Several releases of one population: may their likelihoods be multiplied?

Releases of the same records share the exact sums s and differ in their noise only, which is drawn
afresh: p(z₁, z₂ | s) = p(z₁ | s) p(z₂ | s). That is wrong for other records (then s differs), for
records changed in between, and for one file given twice (then the noise is the same). A ledger's
dataset is a name the owner gave: two tables can be booked on it. So the sums themselves are
compared as well, whoever vouches for them.

Where both hold the same statistic of the same records, z₁ - z₂ = η₁ - η₂: the sums cancel, and what
is left has a known law. By Chernoff, for every λ > 0,

    P(|η₁ - η₂| > t) ≤ 2 M₁(λ) M₂(λ) exp(-λ t),

with moment generating functions M(λ) ≤ exp(λ² b²/2) for discrete Gaussian noise of scale b
(Canonne, Kamath and Steinke 2020), and M(λ) ≤ 1/(1 - λ² b²), λ b < 1, for discrete Laplace noise:
exactly it is 1/(1 - r²), r = sinh(λ/2)/sinh(1/2b), and r ≤ λ b since sinh is convex above zero.
Every λ gives a limit that holds; the least is taken. Released numbers only: it costs no privacy.

``averaged`` and ``reduced`` pool the observations of releases that may be combined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from noisewise.artifact import (
    ArgumentError,
    Block,
    Level,
    Noise,
    ProbabilitySums,
    QuantileSum,
    Release,
    Statistic,
)

FALSE_ALARM = 1e-9
"""Chance that releases of the same records are refused, all comparisons of one call together
(chosen)."""


def check(releases: Sequence[Release], *, same_population: bool) -> None:
    """Refuse releases that cannot be combined.

    Args:
        releases: at least two, in the order the analyst gave them.
        same_population: whether the analyst says that they are of the same records.

    Raises:
        ArgumentError: naming the first thing that differs, or why they are not of the same records.
    """
    for number, other in enumerate(releases[1:], start=2):
        _alike(releases[0], other, number)
    for (i, one), (j, two) in combinations(enumerate(releases, start=1), 2):
        if _noise_is_shared(one, two):
            raise ArgumentError(
                f"release: {i} and {j} are the same release, whose noise was drawn once; "
                "give it once"
            )
    if not same_population and not _one_account(releases):
        raise ArgumentError(
            "same_population: say that these releases are of the same records, with "
            "same_population=True (--same-population); nothing in them proves it, since they do "
            "not name one dataset of one ledger. Releases of different populations must not be "
            "combined"
        )
    check_agreement(releases)


def _alike(one: Release, other: Release, number: int) -> None:
    """Refuse a release that differs from the first in anything but its noise."""
    for what, first, second in (
        ("family", one.family, other.family),
        ("model", dict(one.model), dict(other.model)),
        ("groups", _groups(one), _groups(other)),
        ("bounds", dict(one.bounds), dict(other.bounds)),
        ("values for missing entries", dict(one.fill), dict(other.fill)),
        ("selection of records", one.where, other.where),
        ("records of a person", one.guarantee.max_records, other.guarantee.max_records),
        ("statistics", _main_statistic(one), _main_statistic(other)),
        ("policy on n (public or noisy)", one.population.policy, other.population.policy),
        ("number of records", one.population.sizes, other.population.sizes),
    ):
        if first != second:
            raise ArgumentError(
                f"release: 1 and {number} differ in their {what}: {_short(first)} and "
                f"{_short(second)}; only releases of the same columns, bounds and records can be "
                "combined"
            )


def _groups(release: Release) -> tuple[str, tuple[Level, ...]] | None:
    """Return the grouping column and its keys, or None."""
    return None if release.groups is None else (release.groups.column, release.groups.keys)


def _main_statistic(release: Release) -> Statistic:
    """Return the statistic that inference reads; other blocks (monomials, clamped) may differ."""
    return release.blocks[0].statistic


def _noise_is_shared(one: Release, two: Release) -> bool:
    """Return whether two releases are one: the same file twice, or two texts of it.

    Two entries of a ledger are two draws, though their sums be equal (a small count often is).
    Without them, equal sums by chance are less likely than a slip.
    """
    if one.receipt is not None and two.receipt is not None:
        return one.receipt == two.receipt
    first, second = one.blocks[0], two.blocks[0]
    return first.noise == second.noise and bool((first.values == second.values).all())


def _one_account(releases: Sequence[Release]) -> bool:
    """Return whether the owner's ledger booked all of them on one dataset."""
    accounts = {
        None if r.receipt is None else (r.receipt.ledger, r.receipt.dataset) for r in releases
    }
    return len(accounts) == 1 and None not in accounts


def _short(value: Any) -> str:
    """Return the value in at most 120 characters, for an error message."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}…"


def check_agreement(releases: Sequence[Release]) -> None:
    """Refuse releases whose sums are further apart than both noises can bring them."""
    pairs = [
        (i, j, one, two)
        for (i, first), (j, second) in combinations(enumerate(releases, start=1), 2)
        for one, two in shared_blocks(first, second)
    ]
    comparisons = sum(one.values.size for _, _, one, two in pairs)
    for i, j, one, two in pairs:
        # As Python's integers: a difference of two 64-bit numbers need not be one.
        apart = np.abs(one.values.astype(object) - two.values.astype(object)).astype(float)
        component, group = np.unravel_index(apart.argmax(), apart.shape)
        if apart[component, group] > difference_limit(
            one.noise, two.noise, FALSE_ALARM / comparisons
        ):
            raise ArgumentError(
                f"release: {i} and {j} cannot be releases of the same records: their sums of "
                f"{one.statistic.names[component]!r} are further apart than the noise of both "
                "allows, but for a chance of one in a billion. They are of different tables, or "
                "records changed in between: infer them separately"
            )


def shared_blocks(first: Release, second: Release) -> list[tuple[Block, Block]]:
    """Return the pairs of blocks that hold the same sums.

    Statistics over partitions are left out: partitions are drawn anew for every release.
    """
    return [
        (one, two)
        for one in first.blocks
        for two in second.blocks
        if one.statistic == two.statistic
        and one.values.shape == two.values.shape
        and not isinstance(one.statistic, ProbabilitySums | QuantileSum)
    ]


def difference_limit(one: Noise, two: Noise, chance: float) -> float:
    """Return the least t at which the bound on P(|η₁ - η₂| > t) is ``chance``."""
    odds = math.log(2 / chance)
    gaussian = sum(n.scale**2 for n in (one, two) if n.mechanism == "gaussian")
    laplace = max((n.scale for n in (one, two) if n.mechanism == "laplace"), default=0.0)
    # Beyond the best λ of the Gaussian part alone the bound only grows.
    largest_rate = min(
        math.sqrt(2 * odds / gaussian) if gaussian else math.inf,
        1 / laplace if laplace else math.inf,
    )
    rate = largest_rate * (1 - np.geomspace(1e-6, 0.999, 400))
    return float(
        np.min(
            (_log_moment_generating(one, rate) + _log_moment_generating(two, rate) + odds) / rate
        )
    )


def _log_moment_generating(noise: Noise, rate: np.ndarray) -> np.ndarray:
    """Return the bound on log M(λ) at every rate λ."""
    at = rate * noise.scale
    return at**2 / 2 if noise.mechanism == "gaussian" else -np.log1p(-(at**2))


@dataclass(frozen=True)
class Observation:
    """Noisy sums (group, component) with the scale and the law of their noise."""

    z: np.ndarray
    noise_scale: float
    mechanism: str


def averaged(observed: Sequence[Observation]) -> Observation:
    """Return the average weighted by precision, as one normal observation.

    Exact where all noise is normal, and a fair guess otherwise:

    Σ (z_i - s)²/σ_i² = (z̄ - s)²/σ² + const,   1/σ² = Σ 1/σ_i²,   z̄ = σ² Σ z_i/σ_i².
    """
    weights = np.array([1 / o.noise_scale**2 for o in observed])
    z = np.tensordot(weights, np.stack([o.z for o in observed]), 1) / weights.sum()
    return Observation(z, float(weights.sum() ** -0.5), "gaussian")


def reduced(observed: Sequence[Observation]) -> list[Observation]:
    """Return as few observations as say the same of s.

    All with normal noise are exactly one, which comes last.
    """
    normal = [o for o in observed if o.mechanism == "gaussian"]
    kept = [o for o in observed if o.mechanism != "gaussian"]
    return [*kept, averaged(normal) if len(normal) > 1 else normal[0]] if normal else kept

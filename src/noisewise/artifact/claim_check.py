"""Whether a release's noise gives what the release claims, to the last bit.

The costs that the file states may not add up to more than the claim, and neither may the costs
that follow from each statistic and the scale of its noise (``sensitivity.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.guarantee import Guarantee, Noise, gaussian_delta, zcdp_epsilon
from noisewise.artifact.sensitivity import Sensitivity, relation_of, sensitivity

if TYPE_CHECKING:
    from noisewise.artifact.release import Block, Release

MAX_FLOAT = Fraction(sys.float_info.max)
"""The largest cost that a message can show as a number."""


def check_claim(release: Release) -> None:
    """Raise a ReleaseError where parts or noise give less than the guarantee claims."""
    _check_cost(release)
    _check_noise(release)


def _check_cost(release: Release) -> None:
    """Require that the parts cost no more than the whole claims, to the last bit."""
    guarantee = release.guarantee
    wanted = "laplace" if guarantee.rho is None else "gaussian"
    noises = [(b.statistic.kind, b.noise) for b in release.blocks]
    noises += [("selection", s.search.noise) for s in release.selections if s.search is not None]
    for what, noise in noises:
        if noise.mechanism != wanted:
            raise ReleaseError(
                f"{what}: {noise.mechanism} noise under a {guarantee.accounting} guarantee"
            )
    spent = total_cost(release.blocks, [s.cost for s in release.selections])
    claim = guarantee.epsilon if guarantee.rho is None else guarantee.rho
    if spent > Fraction(claim):
        raise ReleaseError(
            f"guarantee: the parts cost {float(min(spent, MAX_FLOAT))!r}, "
            f"more than the {claim!r} claimed"
        )
    if guarantee.rho is not None and guarantee.smoothing:
        _check_profile(release, guarantee.rho)


def _check_profile(release: Release, rho: float) -> None:
    """Require (ε, δ) that follow from Gaussian noise of this ρ, and no other noise beside it."""
    guarantee = release.guarantee
    unseen = [s for s in release.selections if s.search is None]
    if unseen or any(b.statistic.extra_cost for b in release.blocks):
        raise ReleaseError(
            f"guarantee: rho {rho!r} and delta {guarantee.delta!r} imply epsilon "
            f"{zcdp_epsilon(rho, guarantee.delta):.6g}, more than the {guarantee.epsilon!r} claimed"
        )
    delta = gaussian_delta(guarantee.epsilon, rho)
    if delta > guarantee.delta:
        raise ReleaseError(
            f"guarantee: Gaussian noise of rho {rho!r} has delta {delta:.6g} at epsilon "
            f"{guarantee.epsilon!r}, more than the {guarantee.delta!r} claimed"
        )


def total_cost(blocks: Sequence[Block], selections: Sequence[float]) -> Fraction:
    """Return the cost of all parts: sequential composition, in exact arithmetic."""
    searches = [b.statistic.extra_cost for b in blocks]
    costs = [b.noise.cost for b in blocks] + list(selections) + searches
    return sum((Fraction(c) for c in costs), Fraction(0))


def _check_noise(release: Release) -> None:
    """Raise a ReleaseError where the noise is worth less than the release claims."""
    guarantee = release.guarantee
    relation = relation_of(guarantee, release.groups is not None)
    records, smoothing = guarantee.max_records or 1, guarantee.smoothing
    bounds = [sensitivity(b.statistic, relation, records) for b in release.blocks]
    costs = [
        bound.cost(b.noise, smoothing) for b, bound in zip(release.blocks, bounds, strict=True)
    ]
    searches = [(s, s.search) for s in release.selections if s.search is not None]
    reaches = [sensitivity(search, relation, records) for _, search in searches]
    chosen = sum((Fraction(s.cost) for s in release.selections if s.search is None), Fraction(0))
    chosen += sum(
        (r.cost(search.noise, smoothing) for (_, search), r in zip(searches, reaches, strict=True)),
        Fraction(0),
    )
    searched = sum((Fraction(b.statistic.extra_cost) for b in release.blocks), Fraction(0))
    worth = sum(costs, Fraction(0)) + chosen + searched
    claim = guarantee.epsilon if guarantee.rho is None else guarantee.rho
    if worth > Fraction(claim):
        raise ReleaseError(f"guarantee: {_worth_in_words(guarantee, worth)}")
    for block, bound in zip(release.blocks, bounds, strict=True):
        _check_statement(block.statistic.kind, block.noise, bound)
    for (selection, search), reach in zip(searches, reaches, strict=True):
        _check_statement(f"selection: {selection.column!r}", search.noise, reach)


def _check_statement(what: str, noise: Noise, bound: Sensitivity) -> None:
    """Raise a ReleaseError where a stated sensitivity or cost is smaller than the noise's."""
    if bound.exceeds(noise):
        largest = float(bound.l1) if noise.mechanism == "laplace" else bound.l2
        raise ReleaseError(
            f"{what}: states sensitivity {noise.sensitivity!r}; one person can move the sums "
            f"by {largest!r}"
        )
    if (cost := bound.cost(noise)) > Fraction(noise.cost):
        raise ReleaseError(f"{what}: states cost {noise.cost!r}; its noise costs {_shown(cost)}")


def _worth_in_words(guarantee: Guarantee, worth: Fraction) -> str:
    if guarantee.rho is None:
        return f"claims epsilon = {guarantee.epsilon!r}; its noise gives epsilon = {_shown(worth)}"
    rho = float(min(worth, MAX_FLOAT))
    epsilon = zcdp_epsilon(rho, guarantee.delta)
    return (
        f"claims rho = {guarantee.rho!r}, epsilon = {guarantee.epsilon!r}; its noise gives "
        f"rho = {_shown(worth)}, by zCDP epsilon = {epsilon:.6g}"
    )


def _shown(cost: Fraction) -> str:
    """Return a cost with six digits, rounded up: a message never shows the claim itself."""
    rounded = Context(prec=6, rounding=ROUND_CEILING)
    return f"{rounded.divide(Decimal(cost.numerator), Decimal(cost.denominator)).normalize():g}"

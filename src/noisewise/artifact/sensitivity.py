"""How far one person can move a statistic, and what the noise of a release is therefore worth.

The relations between neighbouring tables:

* ``replace-one``: one record is exchanged for any other;
* ``add-remove``: one record appears or disappears; then n is secret and counted with noise;
* ``move``: replace-one where the table is split by a secret group column: the record may leave one
  group and enter another (``docs/proofs/sensitivity.md``, section 6).

Where people are protected with several records, of which at most k count, the bounds of one record
give that of a person (``docs/proofs/units.md``).

The owner's half calibrates noise to these bounds, and every reader of a file checks the file
against the same ones. With Δ₁ and Δ₂ in the statistic's integer unit and noise of scale b, a block
costs ε = Δ₁/b (discrete Laplace) or ρ = Δ₂²/(2b²) (discrete Gaussian; Δ₂²/(2(b² - 2)) where the
claim takes the Gaussian's own privacy profile, ``docs/proofs/gaussian.md``). Δ₁ and Δ₂² are
integers, and b is a float64 and hence a rational number: all costs are exact, as fractions. No
tolerance is needed, since the owner's half takes a scale at which OpenDP's privacy map, which
rounds up, does not exceed the block's share, and shares are rounded down.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Protocol

from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.guarantee import MIN_SCALE, Guarantee, Noise, zcdp_epsilon

if TYPE_CHECKING:
    from noisewise.artifact.release import Release

Relation = Literal["replace-one", "add-remove", "move"]
"""What turns a table into its neighbour: ``move`` takes a record from one group to another."""

MAX_FLOAT = Fraction(sys.float_info.max)
"""The largest cost that a message can show as a number."""


@dataclass(frozen=True)
class Sensitivity:
    """L1 and L2 sensitivity in integer units; ``l2_squared`` is exact, L2 itself irrational."""

    l1: int
    l2_squared: int

    @property
    def l2(self) -> float:
        """A float64 that is not below the true root."""
        root = math.isqrt(self.l2_squared)
        if root * root == self.l2_squared and float(root) == root:
            return float(root)
        return math.nextafter(math.sqrt(self.l2_squared), math.inf)

    def cost(self, noise: Noise, smoothing: int = 0) -> Fraction:
        """Return exactly what noise on sums of this sensitivity costs: ε, or ρ if Gaussian.

        Args:
            noise: on the sums.
            smoothing: how much of a Gaussian's variance does not count (`Guarantee.smoothing`).
        """
        scale = Fraction(noise.scale)
        if noise.mechanism == "laplace":
            return self.l1 / scale
        # Where nothing of the variance is left, ρ is one that no claim covers.
        return self.l2_squared / (2 * max(scale**2 - smoothing, Fraction(MIN_SCALE) ** 2))

    def exceeds(self, noise: Noise) -> bool:
        """Return whether a person can move the sums further than the noise states."""
        if noise.mechanism == "laplace":
            # Beyond 2**53 an integer is stated as the float64 next to it.
            return float(self.l1) > noise.sensitivity
        return self.l2_squared > Fraction(noise.sensitivity) ** 2


def relation_of(guarantee: Guarantee, grouped: bool) -> Relation:
    """Return the relation for which a guarantee needs the sensitivities.

    Args:
        guarantee: with its neighbours, and perhaps the column within which they are neighbours.
        grouped: whether the sums are split by a group column.
    """
    if guarantee.neighbours == "add-remove":
        return "add-remove"
    return "move" if grouped and guarantee.within is None else "replace-one"


class Summed(Protocol):
    """What is summed over records: a statistic, or the counts of a search for bounds."""

    def bound(self, replaced: bool) -> Sensitivity:
        """Return how far one record moves the sums, replaced or added."""


def sensitivity(statistic: Summed, relation: Relation, records: int = 1) -> Sensitivity:
    """Return the bound for any statistic under any relation.

    Args:
        statistic: what is published.
        relation: what turns a table into its neighbour.
        records: how many records of the person who changes count at most.
    """
    single = statistic.bound(False)
    if relation == "add-remove":
        return _of_person(single, single, records)
    first = statistic.bound(True)
    if relation == "move":
        # Out of one group and into another, or replaced in place (section 6).
        first = Sensitivity(
            max(first.l1, 2 * single.l1), max(first.l2_squared, 2 * single.l2_squared)
        )
    return _of_person(first, single, records)


def _of_person(first: Sensitivity, single: Sensitivity, records: int) -> Sensitivity:
    """Return the bound of a person with 1 to ``records`` records (``docs/proofs/units.md``).

    One record changes by ``first``; each other one is changed likewise, or comes or goes.
    """
    more = records - 1
    worst = max(first.l2_squared, single.l2_squared)
    cross = 4 * more**2 * first.l2_squared * worst
    root = math.isqrt(cross)
    return Sensitivity(
        first.l1 + more * max(first.l1, single.l1),
        first.l2_squared + more**2 * worst + root + (root * root < cross),
    )


def check_noise(release: Release) -> None:
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

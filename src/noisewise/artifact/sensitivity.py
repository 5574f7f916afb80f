"""How far one person can move a statistic, and what noise on it therefore costs.

The relations between neighbouring tables:

* ``replace-one``: one record is exchanged for any other;
* ``add-remove``: one record appears or disappears; then n is secret and counted with noise;
* ``move``: replace-one where the table is split by a secret group column: the record may leave one
  group and enter another (``docs/proofs/sensitivity.md``, section 6).

Where people are protected with several records, of which at most k count, the bounds of one record
give that of a person (``docs/proofs/units.md``).

The owner's half calibrates noise to these bounds, and every reader of a file checks the file
against the same ones (``claim_check.py``). With Δ₁ and Δ₂ in the statistic's integer unit and
noise of scale b, a block costs ε = Δ₁/b (discrete Laplace) or ρ = Δ₂²/(2b²) (discrete Gaussian;
Δ₂²/(2(b² - 2)) where the claim takes the Gaussian's own privacy profile,
``docs/proofs/gaussian.md``). Δ₁ and Δ₂² are integers, and b is a float64 and hence a rational
number: all costs are exact, as fractions. No tolerance is needed, since the owner's half takes a
scale at which OpenDP's privacy map, which rounds up, does not exceed the block's share, and shares
are rounded down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from noisewise.artifact.guarantee import MIN_SCALE, Guarantee, Noise

Relation = Literal["replace-one", "add-remove", "move"]
"""What turns a table into its neighbour: ``move`` takes a record from one group to another."""


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

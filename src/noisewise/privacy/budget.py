"""The price of a release and how its parts share it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from noisewise.artifact import ArgumentError, Guarantee, Mechanism, Neighbours
from noisewise.artifact.guarantee import LARGE_EPSILON, MAX_RECORDS, worth
from noisewise.artifact.sensitivity import Relation, relation_of
from noisewise.artifact.user_warnings import LargeEpsilonWarning, warn_user
from noisewise.privacy.arguments import mapping, name, number, positive, shown
from noisewise.privacy.mechanisms import gaussian_budget, zcdp_budget
from noisewise.privacy.options import PrivacyOptions
from noisewise.privacy.statistic_privacy import find_privacy

BOUNDS = "bounds"
"""The part of the budget that finds bounds privately."""

BOUNDS_WEIGHT = 0.15
"""Its relative share for every column unless the owner says otherwise; statistics have their own.
Chosen by simulation (docs/evidence.md): noise in the end, with bounds found, changes little between
0.1 and 0.3; below, too much is cut off."""

LEAST_SHARE = 1e-200
"""Below this, noise scales leave float64; no part of a release is of use long before."""


DROWNED = 10
"""Noise so many times the records' own count leaves next to nothing to learn (chosen)."""


@dataclass(frozen=True)
class PrivacyTerms:
    """What the owner promises: mechanism, budget, neighbour relation, what is public about n.

    ``zcdp`` is the same (ε, δ) with the ρ that implies it by zCDP alone, where ``guarantee`` has a
    larger one by the profile of Gaussian noise.
    """

    guarantee: Guarantee
    mechanism: Mechanism
    group: str | None
    zcdp: Guarantee | None = None

    @property
    def relation(self) -> Relation:
        """The relation that sensitivities are computed for."""
        return relation_of(self.guarantee, self.group is not None)

    @property
    def count(self) -> bool:
        """Whether n is a secret and so a noisy statistic (errata E2)."""
        return self.relation != "replace-one" or self.guarantee.hides_size

    @property
    def records(self) -> int:
        """How many records of a person count at most."""
        return self.guarantee.max_records or 1

    @property
    def cost(self) -> float:
        """ε, or ρ for the Gaussian mechanism."""
        return self.guarantee.epsilon if self.guarantee.rho is None else self.guarantee.rho

    def with_least_noise(self, scale: float) -> PrivacyTerms:
        """Return these terms, or those by zCDP alone where noise of a few steps is less by them.

        With ρ by the profile a part's noise has variance v + 2, with ρ' by zCDP vρ/ρ'.

        Args:
            scale: of the part with the least noise by these terms.
        """
        if self.zcdp is None or self.zcdp.rho is None:
            return self
        added = Fraction(self.guarantee.smoothing) / Fraction(scale) ** 2
        saved = 1 - Fraction(self.zcdp.rho) / Fraction(self.cost)
        return self if added <= saved else PrivacyTerms(self.zcdp, self.mechanism, self.group)


def privacy_terms(options: PrivacyOptions, group: str | None = None) -> PrivacyTerms:
    """Check the owner's privacy options, and turn (ε, δ) into ρ where noise is Gaussian.

    Args:
        options: what the owner wrote, unchecked.
        group: the column of the groups, where there are any.
    """
    epsilon, neighbours = positive(options.epsilon, "epsilon"), options.neighbours
    if not isinstance(neighbours, str) or neighbours not in ("replace-one", "add-remove"):
        raise ArgumentError(
            f"neighbours: must be 'replace-one' or 'add-remove', not {shown(neighbours)}"
        )
    if options.where is not None and neighbours == "replace-one":
        raise ArgumentError(
            "where: how many records are selected is a secret, but under replace-one neighbours "
            "that number is made public; use neighbours='add-remove'"
        )
    within = _within(options.sizes, group, neighbours)
    unit, most = _unit(options, group)
    if options.mechanism == "laplace":
        if options.delta is not None:
            raise ArgumentError("delta: goes with mechanism='gaussian'; Laplace noise has none")
        guarantee = Guarantee(epsilon, neighbours, within=within, unit=unit, max_records=most)
        return PrivacyTerms(guarantee, "laplace", group)
    if options.mechanism != "gaussian":
        raise ArgumentError(
            f"mechanism: must be 'laplace' or 'gaussian', not {shown(options.mechanism)}"
        )
    delta = _delta(options.delta)
    rho, profile_rho = zcdp_budget(epsilon, delta), gaussian_budget(epsilon, delta)
    zcdp = Guarantee(epsilon, neighbours, delta, rho, within, unit, most)
    profile = replace(zcdp, rho=max(rho, profile_rho))
    if not profile.smoothing:
        return PrivacyTerms(zcdp, "gaussian", group)
    return PrivacyTerms(profile, "gaussian", group, zcdp)


def warn_of_large_epsilon(terms: PrivacyTerms, options: PrivacyOptions) -> None:
    """Warn before anything is read where ε promises next to nothing, unless that is meant."""
    epsilon = terms.guarantee.epsilon
    if epsilon > LARGE_EPSILON and not options.large_epsilon:
        warn_user(
            f"epsilon: {epsilon:g} is above {LARGE_EPSILON:g} and protects nobody: "
            f"{worth(epsilon)}; if that is meant, say large_epsilon=True",
            LargeEpsilonWarning,
        )


def warn_of_small_epsilon(terms: PrivacyTerms, records: int) -> None:
    """Warn before anything is spent where the noise drowns all records together.

    A count of n records has noise of about 1/ε, which is 1/(n ε) times the count.

    Args:
        terms: what is promised.
        records: the public number of records, of the largest group where there are groups.
    """
    if records * terms.guarantee.epsilon * DROWNED < 1:
        warn_user(
            f"epsilon: {terms.guarantee.epsilon:g} is so small that the noise is more than "
            f"{DROWNED} times all {records} records together; an analyst learns next to nothing "
            "from this release"
        )


def warn_of_large_delta(terms: PrivacyTerms, records: int) -> None:
    """Warn before anything is spent where δ allows to publish somebody's record as it is.

    Publishing each record with probability δ is (0, δ)-differential privacy; of n records, n δ are
    published (C. Dwork and A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014,
    section 2.3).

    Args:
        terms: what is promised.
        records: the public number of records in all.
    """
    delta = terms.guarantee.delta
    if delta * records > 1:
        warn_user(
            f"delta: {delta:g} is above one over the {records} records, a promise that would let "
            "somebody's record be published as it is; it should be far below"
        )


def _delta(given: object) -> float:
    if given is None:
        raise ArgumentError("delta: mechanism='gaussian' needs one, such as delta=1e-6")
    delta = number(given, "delta")
    if not 0 < delta < 1:
        raise ArgumentError(f"delta: must be between 0 and 1, not {shown(given)}")
    return delta


def _within(sizes: object, group: str | None, neighbours: Neighbours) -> str | None:
    if sizes is None:
        return None
    if sizes != "public":
        raise ArgumentError(f"sizes: must be 'public' or None, not {shown(sizes)}")
    if group is None:
        raise ArgumentError("sizes: goes with groups=; without them n is public under replace-one")
    if neighbours != "replace-one":
        raise ArgumentError("sizes: public sizes contradict add-remove neighbours, which hide n")
    return group


def _unit(options: PrivacyOptions, group: str | None) -> tuple[str | None, int | None]:
    """Return the column that says whose a record is, and how many of a person's count at most."""
    most = options.max_records
    if most is not None and (isinstance(most, bool) or not isinstance(most, int)):
        raise ArgumentError(f"max_records: must be a whole number, not {shown(most)}")
    if most is not None and not 1 <= most <= MAX_RECORDS:
        raise ArgumentError(f"max_records: must be in [1, {MAX_RECORDS}], not {most}")
    if options.unit is None:
        if most is not None:
            raise ArgumentError(
                "max_records: goes with unit=, the column that says whose a record is"
            )
        return None, None
    unit = name(options.unit, "unit")
    if unit == group:
        raise ArgumentError(f"unit: {unit!r} is the column of the groups")
    if options.sizes is not None:
        raise ArgumentError(
            "sizes: goes without unit=; a person may have records in several groups"
        )
    return unit, most


def shares(
    cost: float, parts: tuple[str, ...], split: Mapping[str, float] | None, searches: int = 0
) -> dict[str, float]:
    """Divide the cost among the parts by weight, rounding down: the sum never exceeds the whole.

    Args:
        cost: of the whole release.
        parts: their names.
        split: the owner's weights; None for the usual ones.
        searches: the number of columns whose bounds are to be found.
    """
    weights = _usual_weights(parts, searches) if split is None else _weights(parts, split)
    total = sum(Fraction(w) for w in weights.values())
    divided = {p: round_down(Fraction(cost) * Fraction(w) / total) for p, w in weights.items()}
    for part, share in divided.items():
        if share < LEAST_SHARE:
            raise ArgumentError(f"epsilon: next to nothing of {cost:g} is left for {part!r}")
    return divided


def _usual_weights(parts: tuple[str, ...], searches: int) -> dict[str, float]:
    return {p: BOUNDS_WEIGHT * searches if p == BOUNDS else find_privacy(p).weight for p in parts}


def equal_shares(cost: float, parts: int) -> float:
    """Return the cost of one of so many equal parts, rounded down."""
    return round_down(Fraction(cost) / parts)


def _weights(parts: tuple[str, ...], split: object) -> dict[str, float]:
    given = mapping(split, "split", "{part: weight}")
    if set(given) != set(parts):
        raise ArgumentError(
            f"split: must give a share to each of {', '.join(parts)}, and to nothing else; "
            f"it names {', '.join(map(str, given)) or 'nothing'}"
        )
    return {part: positive(weight, f"split[{part!r}]") for part, weight in given.items()}


def round_down(value: Fraction) -> float:
    """Return the largest float64 that is not above the value."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0.0)

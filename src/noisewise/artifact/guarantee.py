"""What is promised to the people in the data, and how much noise keeps the promise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from noisewise.artifact import validation
from noisewise.artifact.errors import ReleaseError

Neighbours = Literal["replace-one", "add-remove"]
"""Which tables are neighbours: one record exchanged, or one more or fewer."""

Mechanism = Literal["laplace", "gaussian"]
"""The distribution of the noise."""

NEIGHBOURS = ("replace-one", "add-remove")
"""The same as words, to check a file against."""

MECHANISMS = ("laplace", "gaussian")
"""The same as words, to check a file against."""

MIN_SCALE, MAX_SCALE = 2.0**-60, 2.0**56
"""Scales of noise at least and at most: a smaller one gives no noise in all of time, and a larger
one does not fit 64-bit integers with a reserve of 60 scales (``privacy/mechanisms.py``)."""

LITTLE_EPSILON = 10.0
"""Above this, a promise says what it is worth in odds (chosen)."""

MEANINGFUL_EPSILON = 20.0
"""About what the United States' census of 2020 spent in all; few have defended more."""

LARGE_EPSILON = 100.0
"""Above this, a release has to be meant; unless that is said, there is a warning (chosen)."""

MEANINGFUL_DELTA = 1e-3
"""A larger chance that the promise fails altogether deserves a word (chosen)."""

MAX_RECORDS = 2**20
"""The largest cap on a person's records (chosen): noise grows with it, and is useless before."""

ROUNDING = 1e-9
"""Of the conversion from zCDP to epsilon, which takes logarithms: above what float64 can be off by
(4e-16 was seen), and below what matters."""

SMOOTHING = 2
"""Variance, in squared steps of the lattice, that discrete Gaussian noise has beyond the continuous
noise that it is as private as (docs/proofs/gaussian.md, section 2)."""

DISCRETENESS = 1e-8
"""What discrete noise adds to epsilon, and to delta as a share, for 2**27 numbers at SMOOTHING
(docs/proofs/gaussian.md, section 2): more than any file holds."""

PROFILE_ERROR = 2.0**-46
"""Relative rounding error of the profile's two terms, times (1 + b)² (docs/proofs/gaussian.md,
section 4)."""


@dataclass(frozen=True)
class Guarantee:
    """The privacy guarantee of a whole release, all its parts composed.

    Pure ε (``rho`` is None, ``delta`` 0), or ρ-zCDP together with (ε, δ). ``within`` names the
    group column where group sizes are public: neighbours then exchange a record inside its group,
    a weaker promise that holds for that column only. ``unit`` names the column that says whose a
    record is, where people are protected with all of their records; at most ``max_records`` of them
    count, or however many there are where a statistic bounds a person by itself.
    """

    epsilon: float
    neighbours: Neighbours
    delta: float = 0.0
    rho: float | None = None
    within: str | None = None
    unit: str | None = None
    max_records: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validation.positive(self.epsilon, "guarantee: epsilon"))
        object.__setattr__(self, "delta", validation.real(self.delta, "guarantee: delta"))
        validation.one_of(self.neighbours, NEIGHBOURS, "guarantee: neighbours")
        if self.rho is None:
            if self.delta != 0:
                raise ReleaseError("guarantee: delta must be 0 where rho is absent (pure epsilon)")
        else:
            object.__setattr__(self, "rho", validation.positive(self.rho, "guarantee: rho"))
            if not 0 < self.delta < 1:
                raise ReleaseError("guarantee: delta must be in (0, 1) where rho is given")
        if self.within is not None:
            validation.text(self.within, "guarantee: within")
            if self.neighbours != "replace-one":
                raise ReleaseError("guarantee: within goes with replace-one neighbours only")
        self._check_unit()

    def _check_unit(self) -> None:
        if self.unit is not None:
            validation.text(self.unit, "guarantee: unit")
            if self.within is not None:
                raise ReleaseError("guarantee: unit goes without within: people may change groups")
        if self.max_records is not None:
            validation.integer(self.max_records, "guarantee: max_records", 1, MAX_RECORDS)
            if self.unit is None:
                raise ReleaseError("guarantee: max_records goes with a unit")

    @property
    def hides_size(self) -> bool:
        """Whether neighbours differ in how many records count: that number is then a secret.

        Of a person who is replaced, 1 to ``max_records`` records count.
        """
        varies = self.unit is not None and self.max_records != 1
        return self.neighbours == "add-remove" or varies

    @property
    def accounting(self) -> Literal["pure", "zcdp"]:
        """The currency in which a ledger counts this release."""
        return "pure" if self.rho is None else "zcdp"

    @property
    def smoothing(self) -> int:
        """The variance that noise must have beyond its continuous counterpart, in lattice steps.

        Zero where ρ-zCDP alone implies (ε, δ); ``SMOOTHING`` where that takes Gaussian noise.
        """
        if self.rho is None:
            return 0
        implied = zcdp_epsilon(self.rho, self.delta)
        return SMOOTHING if self.epsilon < implied * (1 - ROUNDING) else 0

    @property
    def relation(self) -> str:
        """The neighbour relation as one word, for ledgers: unlike relations do not add up."""
        return self.neighbours + ("" if self.within is None else f"-within-{self.within}")

    def statement(self, unit: str | None = None) -> str:
        """Return the promise in words.

        Args:
            unit: the column that says whose a record is, where a statistic weighs people
                (``Release.statement`` knows); by default the guarantee's own.
        """
        person = unit or self.unit
        if person is None:
            change = {
                "replace-one": "replacing any one person's record by any other",
                "add-remove": "adding or removing any one person's record",
            }[self.neighbours]
        else:
            most = self.max_records
            cap = "" if most is None else f", of which at most {most} {_counts(most)}"
            change = {
                "replace-one": "replacing all records of any one person by any others",
                "add-remove": "adding or removing all records of any one person",
            }[self.neighbours] + f" (all rows of one {person!r}{cap})"
        if self.within is not None:
            change += f" of the same {self.within!r} (whose group sizes are public)"
        if self.rho is None:
            promise = (
                f"{self.epsilon:g}-differential privacy: {change} changes the probability of any "
                f"outcome by a factor of at most exp({self.epsilon:g})."
            )
        else:
            promise = (
                f"{self.rho:g}-zCDP and ({self.epsilon:g}, {self.delta:g})-differential "
                f"privacy, under {change}."
            )
        return " ".join([promise, *self._weak])

    @property
    def _weak(self) -> list[str]:
        """Return what to say of a weak promise: a number alone does not tell that it is empty."""
        warnings = []
        if self.epsilon > LITTLE_EPSILON:
            word = (
                "next to no protection"
                if self.epsilon > MEANINGFUL_EPSILON
                else "little protection"
            )
            warnings.append(f"An epsilon of {self.epsilon:g} is {word}: {worth(self.epsilon)}.")
        if self.delta >= MEANINGFUL_DELTA:
            warnings.append(
                f"A delta of {self.delta:g} lets the promise fail altogether with that "
                "probability; it should be far below one over the number of people."
            )
        return warnings


def _counts(records: int) -> str:
    return "counts" if records == 1 else "count"


def worth(epsilon: float) -> str:
    """Return in words what someone may learn of one person at this ε.

    By Bayes' rule the odds of any two claims about a record change by a factor of at most exp(ε):
    even odds become a probability of at most exp(ε) / (1 + exp(ε)).
    """
    digits = int(epsilon / math.log(10))
    odds = f"{math.exp(epsilon):,.0f}" if digits < 9 else f"10^{digits}"
    sure = 1 / (1 + math.exp(-epsilon))
    share = f"{100 * sure:.{max(0, digits - 1)}f} % sure" if digits < 9 else "as good as certain"
    return f"a guess about a person at even odds may become {share} (odds of {odds} to 1)"


@dataclass(frozen=True)
class Noise:
    """Independent noise on every component of one block, in the block's integer unit.

    ``laplace``: discrete Laplace, P(k) ∝ exp(-|k|/scale). ``gaussian``: discrete Gaussian,
    P(k) ∝ exp(-k²/(2 scale²)). ``sensitivity`` is the L1 (Laplace) or L2 (Gaussian) bound used,
    ``cost`` the ε (Laplace) or ρ (Gaussian) this block spends.
    """

    mechanism: Mechanism
    scale: float
    sensitivity: float
    cost: float

    def __post_init__(self) -> None:
        validation.one_of(self.mechanism, MECHANISMS, "noise: mechanism")
        for name in ("scale", "sensitivity", "cost"):
            object.__setattr__(
                self, name, validation.positive(getattr(self, name), f"noise: {name}")
            )
        if not MIN_SCALE <= self.scale <= MAX_SCALE:
            raise ReleaseError(
                f"noise: scale must be in [{MIN_SCALE:.3g}, {MAX_SCALE:.3g}], not {self.scale!r}"
            )
        # What the mechanism must satisfy by theory: a file that claims less noise is refused.
        needed = (
            self.sensitivity / self.cost
            if self.mechanism == "laplace"
            else (self.sensitivity / (2 * self.cost) ** 0.5)
        )
        if self.scale < needed * (1 - 1e-9):
            raise ReleaseError(
                f"noise: scale {self.scale!r} is too small for sensitivity {self.sensitivity!r} "
                f"at cost {self.cost!r}"
            )


def noise_sd(noise: Noise) -> float:
    """Return the standard deviation of the noise, in the block's integer unit.

    Of the discrete distributions, P(k) ∝ exp(-|k|/b) or exp(-k²/2b²): below the continuous √2 b
    and b where the scale is a step or less, as it is for counts at a generous ε.
    """
    if noise.mechanism == "laplace":
        half_step = 1 / (2 * noise.scale)
        return 1 / (math.sqrt(2.0) * math.sinh(half_step)) if half_step < 700 else 0.0
    if noise.scale > 10:
        return noise.scale  # exact in float64: they differ by a factor of 1 - 4π²b² exp(-2π²b²)
    k = np.arange(1, 400)
    weights = 2 * np.exp(-((k / noise.scale) ** 2) / 2)
    return math.sqrt(float(k**2 @ weights) / (1 + float(weights.sum())))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the smallest ε for which ρ-zCDP is known to imply (ε, δ)-DP.

    Canonne, Kamath and Steinke 2020, Prop. 12: the minimum over α > 1 of
    ρα + log(1/(αδ))/(α-1) + log(1 - 1/α), unimodal in log(α-1). Used to check a claim; the release
    side converts with OpenDP.
    """

    def epsilon_at(log_excess: float) -> float:
        alpha = 1 + math.exp(log_excess)
        return rho * alpha - math.log(alpha * delta) / (alpha - 1) + math.log1p(-1 / alpha)

    low, high = -25.0, 60.0
    for _ in range(200):
        third = (high - low) / 3
        if epsilon_at(low + third) < epsilon_at(high - third):
            high -= third
        else:
            low += third
    return max(0.0, epsilon_at((low + high) / 2))


def gaussian_delta(epsilon: float, rho: float, caution: float = 1.0) -> float:
    """Return a number not below the δ at which Gaussian noise of this total ρ is (ε, δ)-private.

    With μ = √(2ρ), a = ε/μ - μ/2 and b = ε/μ + μ/2 it is δ = Φ(-a) - exp(ε) Φ(-b) (B. Balle and
    Y.-X. Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018, Theorem 8),
    with what discrete noise adds and what rounding may take away (docs/proofs/gaussian.md).

    Args:
        epsilon: of the claim.
        rho: the sum of Δ²/(2(σ² - ``SMOOTHING``)) over all parts of the release.
        caution: times the rounding error to add. The owner's half takes more than one, so that a
            reader whose functions round otherwise agrees.
    """
    mu, epsilon = math.sqrt(2 * rho), epsilon - DISCRETENESS
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    error = caution * PROFILE_ERROR * (1 + b) * (1 + b)
    if not (epsilon > 0 and error < 1e-3):
        return 1.0
    beyond = math.erfc(b / math.sqrt(2))
    # Without its second term δ is larger: the safe side where float64 cannot hold that term.
    second = math.exp(epsilon) * beyond / 2 if epsilon < 700 and beyond > 1e-300 else 0.0
    first = math.erfc(a / math.sqrt(2)) / 2 + 1e-300
    return (first * (1 + error) - second * (1 - error)) * (1 + DISCRETENESS)

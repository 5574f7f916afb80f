"""The answer a partition release gives: its noisy sums, post-processed. No data, no more budget.

Normality (thesis 3.10). p̄, the mean over M partitions of Φ(√w (b - β̂_j)/√v), estimates a
probability under a variance that is too large by a factor κ; the answer is Φ(√κ Φ⁻¹(p̄ + η)). w is
the power of the partitions' likelihoods.

* ``corrected``: κ = M (1 + 1/w) - 1. The β̂_j scatter with variance v, around their own mean with
  v(1 - 1/M); so p̄ ≈ Φ((b - β̂)/√(v/w + v(1 - 1/M))), and v = M v*. For w = 1 and large M this is
  errata E16's 2M; for M = 1 it leaves the posterior itself.
* the thesis' formula: κ = M/w.

Noise on a probit scale pulls the answer towards one half: in the mean, Φ(z + noise), noise of
variance ν, is near Φ(z/√(1 + ν)). The corrected answer undoes about half of that, by a factor
c² = 1 + ¾ min(ν, 1) on z²: all of it would be unbiased and less accurate. No noise, no change.

Fisher (thesis 3.16): the upper tail of χ² with 2M degrees of freedom at Σ -2 log p_j + η.

The interval inverts the noise: η is discrete Laplace of known scale, so the exact sum lies within q
of the noisy one with the stated probability, and the maps above are monotone. Of a quantile that is
given the interval the search found: a search that missed is not covered (see below).

`Answer.cautions` say, from public numbers only, when that interval may be the wrong one. The
noise on a sum says nothing about a search that landed elsewhere: every quantile is then clipped
to one end of a wrong interval, and the answer sits there with little noise.

``centred``: one noisy maximum over 33 widths of 65 centres. In nats of its noise, an interval of
the public scale that holds all M quantiles leads an empty one by ¾ · M ε/2; the empty ones together
weigh 65 (1 + 1/(e² - 1) + 1/(e^2.5 - 1)) = 81 (penalties of 2 and 2.5 nats per level). They win
with odds 81 exp(-⅜ M ε): 1 to 22 at M ε = 20, 2 to 1 at 10. Every level by which the scale is off
costs 2 or 2.5 nats, as much as 6 of M ε: the limit is for a good scale, which nobody can check.

``symmetric``: an empty radius is taken with probability near ½ exp(-c M ε/4), c the coverage. Of
ten radii that are too small, one is taken with probability 3 % at c M ε = 20.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact import validation
from noisewise.artifact.errors import AbsentError, ArgumentError
from noisewise.artifact.readable_numbers import probability, probability_range, readable
from noisewise.artifact.release import Release
from noisewise.artifact.statistics import PartitionStatistic, ProbabilitySums, QuantileSum
from noisewise.artifact.user_warnings import warn_user

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.artifact.guarantee import Noise


STRENGTH_NEEDED = 20.0
"""M ε, or c M ε where the search is symmetric; the odds are above."""

EDGE_SHARE = 0.9
"""A mean this far out means that most quantiles were clipped, or nearly so (chosen)."""

USUAL_COVERAGE = 0.5
"""The default of ``posterior_quantile``; the file does not say what was used."""


@dataclass(frozen=True, repr=False)
class Answer:
    """A private posterior probability or quantile, with an interval for the privacy noise."""

    statistic: PartitionStatistic
    noise: Noise
    sums: np.ndarray
    corrected: bool

    @property
    def probability(self) -> float | np.ndarray:
        """Pr(coefficient ≤ b) for each cutoff; a plain number where there is one."""
        if not isinstance(self.statistic, ProbabilitySums):
            raise AbsentError("probability: this release holds a posterior quantile: ask .quantile")
        return _plain(self._read(self.sums, self._stretch))

    def __repr__(self) -> str:
        """Say the answer, and where it would lie without the noise."""
        searched = isinstance(self.statistic, QuantileSum)
        values = np.atleast_1d(self.quantile if searched else self.probability)
        told = []
        for value, (low, high) in zip(values, self.band(0.9), strict=True):
            if searched:
                told.append(f"{readable(value)} ({readable(low)} to {readable(high)})")
            else:
                told.append(f"{probability(value)} ({probability_range(low, high)})")
        what = "quantile" if searched else "probability"
        return (
            f"<Posterior {what} {', '.join(told)}; in brackets where it would be without the "
            "noise, with probability 90 %>"
        )

    @property
    def _stretch(self) -> float:
        """Return c, from the noise's variance in units of the answer's z for p̄ near one half."""
        if not self.corrected:
            return 1.0
        z = self.noise.scale * self.statistic.units[0] * math.sqrt(2 * math.pi) * self._factor
        return math.sqrt(1 + 0.75 * min(2 * z * z, 1.0))

    @property
    def _factor(self) -> float:
        """Return √κ."""
        power = self.statistic.power if isinstance(self.statistic, ProbabilitySums) else 1.0
        count = self.statistic.partitions
        return math.sqrt(count * (1 + 1 / power) - 1 if self.corrected else count / power)

    @property
    def quantile(self) -> float:
        """The b with Pr(coefficient ≤ b) = p."""
        if not isinstance(self.statistic, QuantileSum):
            raise AbsentError("quantile: this release holds probabilities: ask .probability")
        return float(self._read(self.sums)[0])

    def interval(self, level: float = 0.9) -> tuple[float, float] | np.ndarray:
        """Return where the answer would be without the noise on it.

        It is there with the stated probability, for each cutoff. This is not a credible interval
        of the coefficient: what it covers is the noise in the value.
        Of a quantile, it takes for given the interval that the private search found, to which all
        partitions were clipped; a search that missed is not covered. Where that may be, a
        UserWarning says so (see ``cautions``).
        """
        for caution in self.cautions:
            warn_user(caution)
        ends = self.band(level)
        return (float(ends[0, 0]), float(ends[0, 1])) if len(ends) == 1 else ends

    @property
    def cautions(self) -> tuple[str, ...]:
        """Why the answer may be further off than its interval says; empty for probabilities."""
        if not isinstance(self.statistic, QuantileSum):
            return ()
        reach = noise_quantile(self.noise, 0.9)
        possible = (
            weak_search(self.statistic),
            at_the_edge(self.statistic, float(self.sums[0]), reach),
        )
        return tuple(text for text in possible if text is not None)

    def curve(self, level: float = 0.9) -> pd.DataFrame:
        """Return all cutoffs of the release as one distribution function, in increasing order.

        The exact sums are monotone in the cutoff, the noisy ones need not be. ``probability``: the
        nearest monotone sums (least squares; the noise is alike everywhere), then rescaled.
        ``lower`` and ``upper``: a band for the privacy noise that holds for all cutoffs at once,
        narrowed by what monotonicity says.
        """
        import pandas as pd

        if not isinstance(self.statistic, ProbabilitySums):
            raise AbsentError("curve: this release holds a posterior quantile: ask .quantile")
        order = np.argsort(self.statistic.at)
        sign = 1 if self.statistic.floor is None else -1
        monotone = sign * nearest_monotone(sign * self.sums[order].astype(float))
        band = self.band(_level(level) ** (1 / len(order)))[order]
        lower = np.maximum.accumulate(band[:, 0])
        upper = np.minimum.accumulate(band[::-1, 1])[::-1]
        return pd.DataFrame(
            {
                "at": np.array(self.statistic.at)[order],
                "probability": self._read(monotone, self._stretch),
                "lower": lower,
                # They can cross only where the noise left its band.
                "upper": np.maximum(lower, upper),
            }
        )

    def band(self, level: float = 0.9) -> np.ndarray:
        """Return ``interval`` with a row for each cutoff, and without its warnings."""
        reach = noise_quantile(self.noise, _level(level))
        # From the nearest sum that data can have: never empty, and never narrower for it.
        middle = self._possible(self.sums)
        ends = [self._read(middle + side * reach) for side in (-1, 1)]
        return np.sort(np.stack(ends, axis=1), axis=1)

    def _possible(self, sums: np.ndarray) -> np.ndarray:
        """Return sums clamped to what M partitions can add up to."""
        most = self.statistic.partitions * 2.0**self.statistic.bits
        least = -most if isinstance(self.statistic, QuantileSum) else 0.0
        return np.asarray(np.clip(sums.astype(float), least, most))

    def _read(self, sums: np.ndarray, stretch: float = 1.0) -> np.ndarray:
        """Return the answer that sums give; sums that no data can have are clamped first."""
        statistic, count = self.statistic, self.statistic.partitions
        if isinstance(statistic, QuantileSum):
            mean = self._possible(sums) * statistic.units[0]
            return np.asarray(statistic.centre + mean)
        read: Callable[[float], float]
        if statistic.floor is None:
            factor = self._factor * stretch
            half_step = statistic.units[0] / 2
            means = np.clip(sums * statistic.units[0], half_step, 1 - half_step)
            read = lambda mean: _normal_cdf(factor * NormalDist().inv_cdf(mean))  # noqa: E731
        else:
            means = self._possible(sums) * statistic.units[0]
            read = lambda total: chi_square_survival(total, count)  # noqa: E731
        return np.array([read(float(m)) for m in means])


class PartitionRelease(Release):
    """A release that is an answer: what partitions of the table say together."""

    def answer(self, corrected: bool | None = None) -> Answer:
        """Return the answer and what can be said of its noise.

        Args:
            corrected: which rescaling of the normality method; left out, the owner's choice. Both
                read the same noisy sums.
        """
        (block,) = self.blocks
        statistic = block.statistic
        if not isinstance(statistic, PartitionStatistic):
            raise AbsentError(f"a {self.family} release holds sums over partitions")
        chosen = self.model.get("rescaling") != "thesis" if corrected is None else corrected
        return Answer(statistic, block.noise, block.values[:, 0], bool(chosen))

    def interval(self, level: float = 0.9) -> tuple[float, float] | np.ndarray:
        """Return where the answer would lie without the noise on it.

        Of a quantile: given the interval that the private search found, which may have missed.
        """
        return self.answer().interval(level)

    @property
    def probability(self) -> float | np.ndarray:
        """Pr(coefficient ≤ b): a number, or one per cutoff (posterior-probability releases)."""
        return self.answer().probability

    @property
    def quantile(self) -> float:
        """The posterior quantile of the coefficient (posterior-quantile releases)."""
        return self.answer().quantile


def noise_quantile(noise: Noise, level: float) -> int:
    """Return the least q with P(|η| ≤ q) ≥ level.

    P(|η| > q) = 2 a^(q+1)/(1 + a), a = exp(-1/scale).
    """
    a = math.exp(-1 / noise.scale)
    return max(0, math.ceil(noise.scale * math.log(2 / ((1 + a) * (1 - level)))) - 1)


def nearest_monotone(values: np.ndarray) -> np.ndarray:
    """Return, by pooling adjacent violators, the non-decreasing vector nearest in least squares."""
    pools: list[tuple[float, int]] = []
    for value in values:
        total, size = float(value), 1
        while pools and pools[-1][0] / pools[-1][1] > total / size:
            more, count = pools.pop()
            total, size = total + more, size + count
        pools.append((total, size))
    return np.concatenate([np.full(size, total / size) for total, size in pools])


def chi_square_survival(x: float, half: int) -> float:
    """Return P(χ² > x) with 2·half degrees of freedom: a Poisson(x/2) is below ``half``."""
    mean = x / 2
    if mean <= 0:
        return 1.0
    # Terms beyond this many standard deviations do not show in float64.
    reach = 12 * math.sqrt(mean) + 60
    low, high = max(0, math.floor(mean - reach)), min(half - 1, math.ceil(mean + reach))
    if high < low:
        return 0.0
    k = np.arange(low, high + 1)
    factorials = math.lgamma(low + 1) + np.concatenate([[0.0], np.cumsum(np.log(k[1:]))])
    return min(1.0, float(np.exp(k * math.log(mean) - mean - factorials).sum()))


def _normal_cdf(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2


def _level(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise ArgumentError(
            f"level: must be a number between 0 and 1, not {validation.shown(value)}"
        )
    return float(value)


def _plain(values: np.ndarray) -> float | np.ndarray:
    return float(values[0]) if len(values) == 1 else values


# -- when the private interval may be the wrong one ------------------------------------------------


def needed_strength(search: str, coverage: float = USUAL_COVERAGE) -> float:
    """Return the least M ε at which the search misses in no more than about one case in twenty."""
    return STRENGTH_NEEDED if search == "centred" else STRENGTH_NEEDED / coverage


def weak_search(statistic: QuantileSum, coverage: float = USUAL_COVERAGE) -> str | None:
    """Return a caution where the search had too little budget for its number of partitions."""
    strength, least = (
        statistic.partitions * statistic.search_cost,
        needed_strength(statistic.search, coverage),
    )
    if strength >= least:
        return None
    return (
        f"the private search for the interval had partitions x epsilon_bounds = {strength:.3g}, "
        f"and needs about {least:.3g}: it may have missed, and then the answer and its interval "
        "are wrong by far more than they show"
    )


def is_hopeless(statistic: QuantileSum, coverage: float = USUAL_COVERAGE) -> bool:
    """Return whether a search of any good scale misses nine times in ten.

    At M ε = 5 an empty interval wins with odds of 12 to 1 by the formulas above.
    """
    needed = needed_strength(statistic.search, coverage)
    return statistic.partitions * statistic.search_cost < needed / 4


def at_the_edge(statistic: QuantileSum, noisy: float, reach: float) -> str | None:
    """Return a caution where the answer, or what its noise allows, is at an end of the interval."""
    most = statistic.partitions * math.ldexp(1, statistic.bits)
    if abs(noisy) < EDGE_SHARE * most and abs(noisy) + reach < most:
        return None
    low, high = statistic.centre - statistic.radius, statistic.centre + statistic.radius
    return (
        f"the answer, or its interval, lies at the edge of the interval that the search found "
        f"({low:.4g} to {high:.4g}); what lies beyond was clipped to it, so the quantile may be "
        "further out"
    )

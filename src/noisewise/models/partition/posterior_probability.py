"""A posterior probability, Pr(coefficient ≤ b), by partitions.

Thesis chapter 3, with errata E4 and E16.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Unpack

import numpy as np

from noisewise.artifact import ArgumentError, Block, PartitionRelease, ProbabilitySums
from noisewise.artifact.sensitivity import sensitivity
from noisewise.artifact.statistics.partition_sums import MAX_CUTOFFS, METHODS
from noisewise.models.base import Owner, Word
from noisewise.models.partition.conjugate_regression import CoefficientPosteriors
from noisewise.models.partition.sample_and_aggregate import (
    QUESTION_WORDS,
    PartitionQuery,
    RegressionQuestion,
    flag,
    lattice_codes,
    publish_query,
    question_arguments,
    regression_question,
    share,
)
from noisewise.privacy.arguments import number, shown
from noisewise.privacy.mechanisms import Calibrated, calibrate
from noisewise.privacy.options import (
    PrivacyOptions,
    ProbabilityOptions,
    command_line_options,
    with_options,
)

UNFITTED_PROBABILITY = 0.5
"""The answer of a partition that could not be fitted: it says nothing either way."""
DEFAULT_POWER = 2.0
"""Near the best at M ε² ≈ 60 (docs/evidence-partition.md)."""
MAX_POWER = 64
"""Greatest power of a likelihood, and the reciprocal of the least (chosen)."""


@with_options(ProbabilityOptions)
def posterior_probability(
    source: Any,
    *,
    x: str | Iterable[str],
    y: str,
    coefficient: str,
    at: float | Iterable[float],
    partitions: int,
    method: Literal["normality", "fisher"] = "normality",
    corrected: bool = True,
    prior: object = None,
    tempered: bool = True,
    power: float | None = None,
    floor: float = 0.001,
    fill: Mapping[str, float] | None = None,
    **privacy: Unpack[ProbabilityOptions],
) -> PartitionRelease:
    """Release the posterior probability that a regression coefficient is at most ``at``.

    The table is split at random into partitions; each is fitted on its own, and only the sum of
    their answers, with noise, is released. No bounds on the columns are needed: a partition's
    answer is a probability, whatever its data. Read ``release.probability`` and
    ``release.interval(0.9)``; ``release.answer(corrected=False)`` gives the thesis' rescaling.

    Args:
        source: path or glob, database URL with ``#table``, data frame, Arrow or Ibis table.
        x: covariate columns; an intercept is always fitted.
        y: response column.
        coefficient: one of ``x``, or ``"intercept"``.
        at: the cutoff, or several. Several share the budget: K of them have K times the noise.
        partitions: their number M. More means less noise and rougher partitions; a partition needs
            five records per coefficient on average, and around a hundred is a good size: start from
            n/100, and take more only if M ε² is below about 60, where noise rules.
        method: ``"normality"`` (mean of probabilities), or ``"fisher"`` (sum of -2 log).
        corrected: rescale by the true spread (errata E16); False for the thesis' formula.
        prior: ``nw.priors.NormalInverseGamma`` or ``nw.release.Zellner``; default ``Zellner()``.
        tempered: all partitions together carry the prior once; False: each carries it whole.
        power: the partitions' likelihoods are raised to it. Above 1, probabilities are steeper in
            the cutoff: more signal against the same noise, more scatter between partitions. Default
            2, near the best at M ε² ≈ 60; 1 with ``corrected=False`` and with Fisher's method.
        floor: Fisher's method counts smaller probabilities as this one.
        fill: public values for missing numbers; required for columns with NULLs under replace-one.
        **privacy: the privacy options, of which ``epsilon`` must be given (`PrivacyOptions`).

    Returns:
        The release, which is its own answer.

    Example:
        >>> import noisewise as nw
        >>> import pandas as pd
        >>> table = pd.DataFrame({"a": range(200), "b": [i * i % 31 for i in range(200)]})
        >>> release = nw.release.posterior_probability(
        ...     table, x="a", y="b", coefficient="a", at=0.0, partitions=10, epsilon=1.0
        ... )
        >>> 0 <= release.probability <= 1
        True
    """
    options = PrivacyOptions.of(ProbabilityOptions, privacy)
    if method not in METHODS:
        raise ArgumentError(f"method: must be one of {', '.join(METHODS)}, not {shown(method)}")
    flag(corrected, "corrected")
    flag(tempered, "tempered")
    least = share(floor, "floor")
    asked = regression_question(
        x=x, y=y, coefficient=coefficient, partitions=partitions, prior=prior, fill=fill,
        options=options,
    )  # fmt: skip
    statistic = ProbabilitySums(
        asked.columns, asked.coefficient, _cutoffs(at), asked.partitions, method,
        least if method == "fisher" else None, _power(power, method, corrected),
    )  # fmt: skip
    query = _query(asked, statistic, corrected, tempered)
    return publish_query(source, query)


def _cutoffs(at: object) -> tuple[float, ...]:
    """Return the cutoffs: one number, or several distinct ones."""
    if isinstance(at, str | bytes | Mapping) or not isinstance(at, Iterable):
        return (number(at, "at"),)
    given = at.tolist() if isinstance(at, np.ndarray) else at
    several = tuple(number(b, "at") for b in (given if isinstance(given, Iterable) else [given]))
    if not 1 <= len(several) <= MAX_CUTOFFS:
        raise ArgumentError(f"at: must be 1 to {MAX_CUTOFFS} cutoffs, not {len(several)}")
    if len(set(several)) != len(several):
        raise ArgumentError("at: names a cutoff twice")
    return several


def _power(value: object, method: str, corrected: bool) -> float:
    """Return the likelihoods' power, by default the one that suits the method."""
    if value is None:
        return DEFAULT_POWER if corrected and method == "normality" else 1.0
    power = number(value, "power")
    if not 1 / MAX_POWER <= power <= MAX_POWER:
        raise ArgumentError(f"power: must be in [1/{MAX_POWER}, {MAX_POWER}], not {shown(value)}")
    return power


def _query(
    asked: RegressionQuestion, statistic: ProbabilitySums, corrected: bool, tempered: bool
) -> PartitionQuery:
    """Return the query, its noise calibrated before any data are read."""
    noise = calibrate("laplace", sensitivity(statistic, asked.terms.relation), asked.terms.cost)
    entries = {
        "rescaling": "corrected" if corrected else "thesis",
        "tempered": "yes" if tempered else "no",
    }
    return PartitionQuery(
        question=asked,
        family="posterior-probability",
        model_entries=entries,
        power=statistic.power,
        share=statistic.power / (asked.partitions if tempered else 1),
        rehearsal=Block(statistic, noise.noise, np.zeros((len(statistic.at), 1), np.int64)),
        draw=lambda posteriors: draw_probabilities(posteriors, statistic, noise),
    )


def probability_codes(statistic: ProbabilitySums, probabilities: np.ndarray) -> np.ndarray:
    """Return whole numbers in [0, 2**bits], shape (partitions, cutoffs)."""
    known = np.where(np.isnan(probabilities), UNFITTED_PROBABILITY, probabilities)
    if statistic.floor is not None:
        # -2 log p over its range -2 log floor.
        known = np.log(np.clip(known, statistic.floor, 1.0)) / np.log(statistic.floor)
    return lattice_codes(known, 0, statistic.bits)


def draw_probabilities(
    posteriors: CoefficientPosteriors, statistic: ProbabilitySums, noise: Calibrated
) -> Block:
    """Add up whole numbers from every partition and draw noise; return the block to release."""
    codes = probability_codes(statistic, posteriors.probabilities(statistic.at))
    return Block(statistic, noise.noise, noise.draw(codes.sum(axis=0)[:, None]))


OWNER = Owner(
    release=posterior_probability,
    summary="Release Pr(coefficient <= cutoff) of a Bayesian linear regression.",
    words=(
        *QUESTION_WORDS,
        Word("at", "numbers", "cutoff; repeat, and several share the budget", required=True),
        Word(
            "method",
            "text",
            "normality (the mean of the partitions' probabilities) or fisher "
            "(the sum of their logarithms)",
            default="normality",
        ),
        Word(
            "corrected",
            "flag",
            "rescale by how much partitions really scatter, as is right; without, "
            "as the thesis that introduced the method printed it",
            default=True,
        ),
        Word(
            "tempered",
            "flag",
            "count the prior once over all partitions; without, once in each",
            default=True,
        ),
        Word(
            "power",
            "number",
            "power to which each partition's likelihood is raised: above 1, more signal "
            "and more scatter; left out, 2 for normality and else 1",
        ),
        Word(
            "floor",
            "number",
            "with --method fisher: smaller probabilities count as this one",
            default=0.001,
        ),
    ),
    privacy=command_line_options(ProbabilityOptions),
    prepare=question_arguments,
    planned=False,
)
"""The owner's part of the model, for the command line."""

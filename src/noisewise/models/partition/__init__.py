"""Posterior probabilities and quantiles by random partitions (sample and aggregate).

G. Amitai, "Bayesian inference via partitioning under differential privacy" (Duke, 2018), with
errata E4, E5 and E16. A table passes ``partition_moments`` (who goes where, and one pass),
``conjugate_regression`` (all partitions at once) and ``sample_and_aggregate`` (whole numbers, then
noise). ``posterior_probability`` and ``posterior_quantile`` are what an owner calls. Proofs:
``docs/proofs/partition.md``.

The release is the answer: nothing is left to infer.
"""

from __future__ import annotations

from typing import NoReturn

from noisewise.artifact import ArgumentError, PartitionRelease, Release, ReleaseError
from noisewise.artifact.validation import one_of
from noisewise.models.base import Model, register

ANSWERED = "release: a partition release is its own answer; there is no method to choose"
"""Refuses ``infer``, ``check`` and ``plan``."""


class PartitionModel(Model):
    """What the two kinds of answers share."""

    release_type = PartitionRelease

    def check(self, release: Release) -> None:
        """Raise a ReleaseError unless the entries repeat what the one statistic says."""
        (kind,) = self.statistics
        statistic = release.block(kind).statistic
        if len(release.blocks) > 1:
            raise ReleaseError(f"blocks: {kind} stands alone, in a release of its own family")
        if release.groups is not None:
            raise ReleaseError(f"groups: {kind} is over the whole table")
        model = release.model
        x = model.get("x")
        if statistic.columns != (*(x if isinstance(x, tuple) else (x,)), model.get("y")):
            raise ReleaseError(f"model: 'x' and 'y' must be the columns of {kind}")
        if model.get("coefficient") != getattr(statistic, "coefficient", None):
            raise ReleaseError(f"model: 'coefficient' must be that of {kind}")

    def analyst(self) -> NoReturn:
        """Raise an ArgumentError: nothing is left to infer."""
        raise ArgumentError(ANSWERED)

    def simulator(self) -> NoReturn:
        """Raise an ArgumentError: there is no method to check."""
        raise ArgumentError(ANSWERED)


@register
class PosteriorProbability(PartitionModel):
    """Pr(coefficient ≤ cutoff) of a Bayesian linear regression."""

    name = "posterior-probability"
    statistics = ("probability-sums",)
    owner_file = "posterior_probability"

    def check(self, release: Release) -> None:
        """Raise a ReleaseError unless the entries repeat what the statistic says."""
        super().check(release)
        one_of(release.model.get("rescaling"), ("corrected", "thesis"), "model: 'rescaling'")


@register
class PosteriorQuantile(PartitionModel):
    """A posterior quantile of a coefficient of a Bayesian linear regression."""

    name = "posterior-quantile"
    statistics = ("quantile-sum",)
    owner_file = "posterior_quantile"

"""Posterior probabilities by partitions (thesis chapter 3): each version on the same data sets.

Set-up of 3.1.1: n = 100,000, y = 1 + 2x + N(0, 1), partitions of 100, ε = 0.25. x is standard
normal, and cutoffs lie half a full-data posterior deviation apart: the thesis states neither. Fits,
rescaling and the noise's law are the library's; noise and partitions are NumPy's, with a seed: a
simulation. Every cutoff is a release of its own with the whole budget, as in the thesis.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.exponential_families.simulate import discrete_laplace
from experiments.partition_thesis.blocks import in_blocks
from experiments.reproduce.store import TrialStore
from noisewise.artifact.partition_answer import Answer
from noisewise.artifact.sensitivity import sensitivity
from noisewise.models.partition.conjugate_regression import Zellner, fit
from noisewise.models.partition.partition_moments import MomentsAccumulator, PartitionMoments
from noisewise.models.partition.posterior_probability import probability_codes
from noisewise.privacy.mechanisms import calibrate
from tests.reference.partition_simulation import statistic, table, whole

STEPS = np.arange(-7, 8) / 2
"""Cutoffs, in full-data posterior deviations from the true slope."""


@dataclass(frozen=True)
class Version:
    """``power`` of a partition's likelihood, copies of the prior in all partitions together, and
    by how much the noise is smaller than the sensitivity asks for."""

    method: str
    power: float
    copies: float
    corrected: bool
    shrunk: bool = False


@dataclass(frozen=True)
class Found:
    """Answers without and with noise, and the ε that the noise really is good for."""

    plain: np.ndarray
    noisy: np.ndarray
    spent: float


VERSIONS = {
    "normality": {
        "as printed": Version("normality", 1.0, np.inf, False),
        "thesis' formula": Version("normality", 1.0, 1.0, False),
        "corrected": Version("normality", 2.0, 2.0, True),
    },
    "fisher": {
        "as printed": Version("fisher", 1.0, np.inf, False, shrunk=True),
        "thesis' formula": Version("fisher", 1.0, 1.0, False, shrunk=True),
        "corrected": Version("fisher", 1.0, 1.0, False),
    },
}
"""As printed: g = partition size inside partitions (E16), and -2 log p's noise divided by M (E4).
Thesis' formula: the same with the prior carried once. Corrected: E16's rescaling; E4's noise."""


def study(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Data set, cutoff, method, version: full-data probability, and ours without and with noise."""
    return in_blocks(settings, trials, one)


def one(number: int, settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """One data set, every version."""
    rng = np.random.default_rng([settings["seed"], number])
    n, count = settings["n"], settings["n"] // settings["partition_size"]
    columns = table(rng, n, 1.0)
    at = tuple(2 + STEPS / np.sqrt(n))
    full = whole(columns).probabilities(at)[0]
    moments = evenly(columns, count, rng)
    rows: list[Mapping[str, Any]] = []
    for method, versions in VERSIONS.items():
        for name, version in versions.items():
            found = answers(moments, version, at, n, settings["epsilon"], rng)
            rows += [
                {
                    "method": method, "version": name, "data_set": number, "step": float(step),
                    "full": float(f), "plain": float(p), "noisy": float(q), "spent": found.spent,
                }
                for step, f, p, q in zip(STEPS, full, found.plain, found.noisy, strict=True)
            ]  # fmt: skip
    return rows


def evenly(columns: list[np.ndarray], count: int, rng: np.random.Generator) -> PartitionMoments:
    """Partitions of one size, at random."""
    accumulator = MomentsAccumulator(len(columns), count)
    labels = rng.permutation(np.arange(len(columns[0])) % count)
    accumulator.add(columns, labels)
    return accumulator.result()


def answers(
    moments: PartitionMoments, version: Version, at: tuple[float, ...], n: int, epsilon: float,
    rng: np.random.Generator,
) -> Found:  # fmt: skip
    """One number per cutoff."""
    count = len(moments.sizes)
    spec = statistic(at, count, version.method, version.power)
    share = 1.0 if np.isinf(version.copies) else version.copies / count
    posterior = fit(moments, 0, Zellner(float(n)), version.power, share)
    sums = probability_codes(spec, posterior.probabilities(at)).sum(axis=0)
    one_cutoff = dataclasses.replace(spec, at=at[:1])
    noise = calibrate("laplace", sensitivity(one_cutoff, "replace-one"), epsilon).noise
    scale = noise.scale / (count if version.shrunk else 1)
    noisy = sums + discrete_laplace(rng, scale, sums.shape)
    plain, private = (
        np.asarray(Answer(spec, noise, each, version.corrected).probability)
        for each in (sums, noisy)
    )
    # One record can move one partition's answer through the whole of its range.
    return Found(plain, private, 2.0**spec.bits / scale)

"""Exponential families: one exact posterior, ten thousand, and Gibbs against plain NumPy.

Times are medians after compilation. The Gibbs reference is the corrected Algorithm 2 written for
one chain in NumPy (``tests/reference/expfam_reference.py``).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from experiments.exponential_families.simulate import MODELS, simulate
from noisewise.infer.expfam import exact, gibbs, moments
from tests.reference import expfam_reference as reference

FAMILIES = ("bernoulli", "categorical", "exponential", "poisson", "geometric", "gamma")
TRIALS, SWEEPS = 300, 7000


def median(work: Callable[[], object], times: int = 7) -> float:
    work()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def one_release() -> Iterator[str]:
    for name in FAMILIES:
        for outside in ("drop", "clamp"):
            given = simulate(name, 1, 1000, 0.1, outside, 0).problem
            took = median(lambda p=given: exact.run(p, 0, 4, 1000))  # type: ignore[misc]
            yield f"exact, one release, {name} {outside}: {1e3 * took:.0f} ms"


def many_releases(number: int = 10_000) -> Iterator[str]:
    few = simulate("exponential", 100, 1000, 0.1, "clamp", 0).problem
    z = np.random.default_rng(0).choice(few.z[:, 0], number) + np.random.default_rng(1).normal(
        0, few.scale, number
    )
    keys = tuple(range(number))
    given = replace(few, z=z[:, None], n=np.full(number, 1000.0), keys=keys)
    took = median(lambda: exact.run(given, 0, 2, 100), 3)
    yield f"exact, {number} releases in one call: {took:.2f} s ({1e6 * took / number:.0f} µs each)"


def batched_gibbs() -> Iterator[str]:
    given = simulate("exponential", TRIALS, 1000, 0.1, "drop", 0).problem
    group = gibbs.data(given, slice(0, TRIALS))

    def batch() -> object:
        draws, _ = gibbs.sample(
            given.family, moments.joint, "laplace", jax.random.key(0), group, 1, 1000,
            thin=5, burn_in=2000,
        )  # fmt: skip
        return draws

    ours = median(batch, 3) / (TRIALS * SWEEPS)
    prior, ends = MODELS["exponential"].prior, MODELS["exponential"].interval
    assert ends is not None
    sweeps = 3000
    began = time.perf_counter()
    reference.algorithm_2_exponential(
        np.random.default_rng(0), float(given.z[0, 0]), 1000, given.scale, ends, prior.shape,
        prior.rate, sweeps,
    )  # fmt: skip
    theirs = (time.perf_counter() - began) / sweeps
    yield (
        f"gibbs, {TRIALS} trials × {SWEEPS} sweeps in one call: {1e6 * ours:.2f} µs per "
        f"chain-sweep; NumPy, one chain: {1e6 * theirs:.0f} µs; ratio {theirs / ours:.0f}"
    )


def run(folder: Path) -> Iterator[str]:
    yield from one_release()
    yield from many_releases()
    yield from batched_gibbs()

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
from typing import Any

import jax
import numpy as np
import pandas as pd

import noisewise as nw
from experiments.exponential_families.simulate import MODELS, simulate
from noisewise.models.exponential_family import exact, gibbs, truncation
from tests.reference import expfam_reference as reference

ROWS, RELEASES = 1000, 8
TRIALS, SWEEPS = 300, 7000


def median(work: Callable[[], object], times: int = 7) -> float:
    work()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def columns() -> Iterator[tuple[str, np.ndarray, dict[str, Any]]]:
    """A family, a column of it, and what its owner says of it."""
    rng = np.random.default_rng(0)
    yield "bernoulli", rng.random(ROWS) < 0.3, {}
    yield "binomial", rng.binomial(5, 0.4, ROWS), {"trials": 5}
    yield "categorical", rng.choice(list("abc"), ROWS), {"levels": list("abc")}
    for outside in ("drop", "clamp"):
        for family, x, words in (
            ("exponential", rng.exponential(1, ROWS), {"bounds": (0.025, 5.46)}),
            ("poisson", rng.poisson(4, ROWS), {"bounds": (0, 10)}),
            ("geometric", rng.geometric(0.3, ROWS), {"bounds": (1, 13)}),
            ("gamma", rng.gamma(2.5, 0.5, ROWS), {"bounds": (0.2, 4.3), "shape": 2.5}),
            ("normal", rng.normal(0, 1.4, ROWS), {"bounds": (-4, 4)}),
        ):
            yield family, x, {**words, "outside": outside}


def one_release(epsilon: float = 0.1) -> Iterator[str]:
    """The public way; every timed release has noise that was not seen before."""
    for family, x, words in columns():
        frame = pd.DataFrame({"x": x})
        releases = [
            nw.release.exponential_family(
                frame, column="x", family=family, epsilon=epsilon, **words
            )
            for _ in range(RELEASES + 1)
        ]
        nw.infer(releases[0])
        found, busy = [], []
        for release in releases[1:]:
            began, cpu = time.perf_counter(), time.process_time()
            nw.infer(release)
            found.append(1e3 * (time.perf_counter() - began))
            busy.append(1e3 * (time.process_time() - cpu))
        yield (
            f"infer, one release, {family} {words.get('outside', '')}: median "
            f"{statistics.median(found):.0f} ms, best {min(found):.0f}, worst {max(found):.0f}; "
            f"CPU {statistics.median(busy):.0f} ms"
        )


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
    group = gibbs.group_data(given, slice(0, TRIALS))

    def batch() -> object:
        draws, _ = gibbs.sample(
            given.family, truncation.joint_moments, "laplace", jax.random.key(0), group, 1, 1000,
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

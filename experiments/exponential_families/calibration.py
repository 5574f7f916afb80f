"""Calibration of posteriors (thesis 4.4.2, after Cook et al. 2006): are the truth's ranks uniform?

``python -m experiments.exponential_families.calibration [trials [seed [part…]]]`` prints a line per
cell: Kolmogorov-Smirnov distance per parameter (5 % point at 300 trials: 0.0785) and coverage of
95 % intervals. Parts: thesis, others, corrected, baselines.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from experiments.exponential_families.baselines import (
    SATISFIES,
    one_posterior_sampling,
    untruncated,
)
from experiments.exponential_families.simulate import Trials, simulate
from noisewise.models.exponential_family import gibbs, truncation
from noisewise.models.exponential_family.analyst import ANALYST
from noisewise.models.exponential_family.family import Family
from noisewise.models.exponential_family.gibbs import MomentsFunction
from noisewise.models.exponential_family.truncation import Interval, JointMoments

CHAINS, DRAWS = 4, 500


def judged(draws: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """KS distance and 95 % coverage per parameter; draws (trial, draw, parameter)."""
    ranks = (draws < truth[:, None]).mean(axis=1)
    distance = np.array([stats.kstest(r, "uniform").statistic for r in ranks.T])
    return distance, ((ranks > 0.025) & (ranks < 0.975)).mean(axis=0)


def infer(method: str, given: Trials, seed: int) -> np.ndarray:
    """Draws (trial, draw, parameter) by one of the library's methods."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        post = ANALYST.methods[method](given.problem, seed, CHAINS, DRAWS, None)
    flat = [v.reshape(len(v), -1) for v in post.draws.values()]
    return np.stack(flat, axis=-1)


def line(label: str, draws: np.ndarray, truth: np.ndarray, began: float) -> tuple[float, ...]:
    """Print and return the distances."""
    distance, covered = judged(draws, truth)
    print(
        f"{label:45s} KS {np.round(distance, 4)} coverage {np.round(covered, 3)} "
        f"({time.time() - began:.1f} s)",
        flush=True,
    )
    return tuple(distance)


def cell(name: str, n: int, epsilon: float, outside: str, trials: int, seed: int) -> None:
    """One model at one size and budget, every method."""
    given = simulate(name, trials, n, epsilon, outside, seed)
    for method in ANALYST.methods:
        began = time.time()
        line(
            f"{name} {outside} n={n} eps={epsilon} {method}",
            infer(method, given, seed),
            given.truth,
            began,
        )


def independent(family: Family, interval: Interval, eta: jax.Array) -> JointMoments:
    """Algorithm 2's own moments: three regions, taken for independent (what E14 corrects)."""
    low, high = jnp.asarray(interval.lower), jnp.asarray(interval.upper)
    every = truncation.untruncated_moments(family, eta)
    left = truncation.region_moments(family, eta, lambda e: family.cdf(low, e))
    upto = truncation.region_moments(family, eta, lambda e: family.cdf(high, e))
    spread = []
    for a, b in ((left, None), (upto, left), (every, upto)):
        first = a.first - (0 if b is None else b.first)
        second = a.second - (0 if b is None else b.second)
        spread.append(second - jnp.outer(first, first))
    mean = jnp.concatenate([upto.first - left.first, every.first])
    whole = spread[0] + spread[1] + spread[2]
    return JointMoments(mean, jnp.block([[spread[1], spread[1]], [spread[1], whole]]))


def corrected(
    trials: int, seed: int, n: int = 200, epsilon: float = 5.0
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Joint against independent regions, where they differ: half of the records cut off."""
    given = simulate("exponential-cut", trials, n, epsilon, "drop", seed)
    laws: dict[str, MomentsFunction] = {
        "joint": truncation.joint_moments,
        "independent": independent,
    }
    found = {}
    for label, law in laws.items():
        began = time.time()
        problem = given.problem
        draws, _ = gibbs.sample(
            problem.family, law, "laplace", jax.random.key(seed),
            gibbs.group_data(problem, slice(0, trials)), 2, 200, thin=5, burn_in=500,
        )  # fmt: skip
        flat = draws.reshape(trials, -1, 1)
        line(f"exponential-cut n={n} eps={epsilon} regions {label}", flat, given.truth, began)
        found[label] = judged(flat, given.truth)
    return found


def baselines(trials: int, seed: int) -> None:
    """Methods that are expected to fail, and the non-private posterior, which is not."""
    for n in (10, 100, 1000):
        for epsilon in (0.01, 0.1):
            given = simulate("bernoulli", trials, n, epsilon, "drop", seed)
            rng = np.random.default_rng([seed, n, round(1000 * epsilon)])
            s = given.sums[:, 0]
            began = time.time()
            ops = one_posterior_sampling(rng, s, n, epsilon)
            line(f"bernoulli n={n} eps={epsilon} one-posterior", ops[..., None], given.truth, began)
            truth = rng.beta(1 + s[:, None], 1 + n - s[:, None], (trials, 2000))
            line(f"bernoulli n={n} non-private", truth[..., None], given.truth, began)
            given = simulate("exponential", trials, n, epsilon, "drop", seed)
            began = time.time()
            line(
                f"exponential n={n} eps={epsilon} naive untruncated",
                infer("naive", untruncated(given, rng), seed),
                given.truth,
                began,
            )


def main(trials: int = 300, seed: int = 11, *parts: str) -> None:
    """All parts, or the named ones."""
    for label, what in SATISFIES.items():
        print(f"{label}: {what}")
    if not parts or "thesis" in parts:
        for name, outside in (
            ("bernoulli", "drop"),
            ("categorical", "drop"),
            ("exponential", "drop"),
            ("exponential", "clamp"),
        ):
            for n in (10, 100, 1000):
                for epsilon in (0.01, 0.1):
                    cell(name, n, epsilon, outside, trials, seed)
    if not parts or "others" in parts:
        for name in ("binomial", "poisson", "geometric", "gamma", "normal"):
            for outside in ("drop",) if name == "binomial" else ("drop", "clamp"):
                for epsilon in (0.01, 0.1):
                    cell(name, 1000, epsilon, outside, trials, seed)
    if not parts or "corrected" in parts:
        corrected(trials, seed)
    if not parts or "baselines" in parts:
        baselines(trials, seed)


if __name__ == "__main__":
    numbers: list[Any] = [int(a) for a in sys.argv[1:3]]
    main(*numbers, *sys.argv[3:])

"""Regression: what a draw costs, as ratios in one run.

- `gibbs-update`, a batch of 512 groups, against Algorithm 1 in plain NumPy, per chain and sweep;
- effective draws per CPU-second of `exact`, `gibbs-update` and `mcmc-individual`, warm-up included,
  compilation not (for `mcmc-individual` it is); batches of 256 groups, 16 with five covariates;
- `exact` at n = 1,000 and n = 100,000,000.

The slowest parameter counts; CPU-seconds are of the whole process, since XLA may use all cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.regression_paper.simulate import simulate
from noisewise.inference.results import Posterior
from noisewise.models.linear_regression import exact, gibbs, gibbs_methods, individual_mcmc
from noisewise.models.linear_regression.problem import RegressionProblem
from tests.reference import regression_reference as reference

CELLS = [(1, 10, 1.0), (1, 100, 1.0), (1, 1000, 0.1), (1, 10_000, 1.0), (5, 1000, 1.0)]
Method = Callable[[RegressionProblem, int, int, int], Posterior]


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def sweeps() -> Iterator[str]:
    problem, _ = simulate(512, 1000, 1.0, 1, 1)
    count = 2 * 512 * (gibbs.BURN_IN + 1000 * gibbs.THIN)
    gibbs_methods.run_update(problem, 0, 2, 1000)
    times = [timed(lambda: gibbs_methods.run_update(problem, 0, 2, 1000)) for _ in range(2)]
    ours = min(times) / count
    p = reference.paper_priors()
    plain = timed(
        lambda: reference.algorithm_1(
            problem.z[0], 1000, problem.noise_scale, p, iterations=400, burn_in=0
        )
    )
    yield (
        f"gibbs-update, 512 groups × 2 chains: {1e6 * ours:.2f} µs per chain and sweep (aim: 4); "
        f"plain NumPy {1e6 * plain / 400:.0f} µs: {plain / 400 / ours:.0f} × (aim: 30)"
    )


def rate(method: Method, problem: RegressionProblem, draws: int, *, cold: bool = False) -> float:
    """Effective draws of the slowest parameter, per group and CPU-second."""
    if not cold:
        # The same seed: second tries are of the same sizes, so that nothing is left to compile.
        method(problem, 1, 4, draws)
    began = time.process_time()
    post = method(problem, 1, 4, draws)
    spent = time.process_time() - began
    least = np.min([np.atleast_1d(e) for e in post.ess.values()], axis=0)
    return float(np.median(least) * len(problem.n) / spent)


def effective() -> Iterator[str]:
    for d, n, epsilon in CELLS:
        problem, _ = simulate(256 if d == 1 else 16, n, epsilon, d, 1)
        ours, theirs = rate(exact.run, problem, 1000), rate(gibbs_methods.run_update, problem, 1000)
        yield (
            f"d={d} n={n:,} eps={epsilon:g}: exact {ours:,.0f} effective draws per CPU-second, "
            f"gibbs-update {theirs:,.0f}: {ours / theirs:.0f} × (aim: 50)"
        )
    problem, _ = simulate(1, 1000, 1.0, 1, 1)
    # Its compilation, some ten seconds, is counted: running it twice would take many minutes.
    ours, theirs = (
        rate(exact.run, problem, 1000),
        rate(individual_mcmc.run, problem, 300, cold=True),
    )
    yield (
        f"n=1,000, one release: exact {ours:,.0f}, mcmc-individual {theirs:,.1f}: "
        f"{ours / theirs:.0f} × (aim: 5)"
    )


def size() -> Iterator[str]:
    """The same records a hundred thousand times, with the same noise: only n differs."""
    quiet, _ = simulate(256, 1000, 1e9, 1, 1)
    scale = 16 / 3
    noise = np.random.default_rng(1).laplace(0, scale, quiet.z.shape)
    few = replace(quiet, z=quiet.z + noise, noise_scale=scale)
    many = replace(few, z=1e5 * quiet.z + noise, n=1e5 * quiet.n)
    exact.run(few, 0, 4, 500)
    exact.run(many, 0, 4, 500)
    pairs = [
        (timed(lambda: exact.run(few, 1, 4, 500)), timed(lambda: exact.run(many, 1, 4, 500)))
        for _ in range(3)
    ]
    small, large = np.median(pairs, axis=0)
    yield (
        f"256 groups of 1,000 records: {small:.2f} s; of 100,000,000: {large:.2f} s; "
        f"ratio {large / small:.2f} (aim: at most 1.2)"
    )


def run(folder: Path) -> Iterator[str]:
    yield from sweeps()
    yield from effective()
    yield from size()

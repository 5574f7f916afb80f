"""Many small regressions at once: groups of 20 to 446 people, one covariate, ε = 4.

Parameters and records are drawn from the model (the paper's synthetic priors), noise from NumPy's
Laplace: a simulation, without the owner's half, so that it runs on a bare GPU image. Reports
groups per second after compilation, convergence, and coverage of 95 % intervals over all groups.
``scale-free`` on the command line takes the default prior of `exact` in place of the simulation's.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import jax
import numpy as np

from noisewise.models.linear_regression import batching, exact
from noisewise.models.linear_regression.problem import RegressionProblem, Units, subset
from noisewise.priors import NormalInverseGamma, NormalInverseWishart

RESPONSE = NormalInverseGamma([0, 0], np.diag([0.5 / 19] * 2), 20, 0.5)
COVARIATES = NormalInverseWishart([0], 1, [[1]], 50)
EPSILON, SENSITIVITY = 4.0, 16 / 3


def simulate(groups: int, seed: int) -> tuple[RegressionProblem, np.ndarray]:
    """A problem of that many groups and the true (slope, intercept, σ²) of each."""
    rng = np.random.default_rng(seed)
    n = np.clip(np.rint(rng.lognormal(4.3, 0.6, groups)), 20, 446).astype(int)
    variance = RESPONSE.rate / rng.standard_gamma(RESPONSE.shape, groups)
    spread = np.sqrt(variance / RESPONSE.precision[0, 0])
    theta = spread[:, None] * rng.standard_normal((groups, 2))
    x_variance = 0.5 / rng.standard_gamma(25, groups)
    x_mean = np.sqrt(x_variance) * rng.standard_normal(groups)
    owner = np.repeat(np.arange(groups), n)
    x = x_mean[owner] + np.sqrt(x_variance)[owner] * rng.standard_normal(len(owner))
    y = theta[owner, 0] * x + theta[owner, 1]
    y += np.sqrt(variance)[owner] * rng.standard_normal(len(owner))
    sums = [np.bincount(owner, w, groups) for w in (x * x, x * y, y * y, x, y)]
    scale = SENSITIVITY / EPSILON
    z = np.stack(sums, axis=1) + rng.laplace(0, scale, (groups, 5))
    units = Units(np.zeros(2), np.ones(2))
    problem = RegressionProblem(
        ("x",), "y", z, n.astype(float), False, scale, "laplace", RESPONSE, COVARIATES, units,
        tuple(range(groups)),
    )  # fmt: skip
    return problem, np.column_stack([theta, variance])


def run(
    groups: int = 2_000, seed: int = 1, chains: int = 4, draws: int = 500, *,
    scale_free: bool = False,
) -> list[str]:  # fmt: skip
    """Return lines about one run, by the priors of the simulation or by the default one."""
    problem, truth = simulate(groups, seed)
    problem = replace(problem, scale_free=scale_free)
    lines = []
    # Every batch size once, so that the second clock sees no compilation.
    start = time.perf_counter()
    most = batching.largest_batch(2, chains * draws)
    for size in {
        len(batching.padded(np.arange(min(s, groups, most)))) for s in batching.batch_sizes()
    }:
        rows = batching.padded(np.arange(min(size, groups)))
        exact.sample(jax.random.key(0), subset(problem, rows), chains, draws)
    lines.append(f"compilation and first runs: {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    post = exact.run(problem, seed, chains, draws)
    took = time.perf_counter() - start
    lines.append(
        f"{groups:,} groups, {chains} chains × {draws} draws on {jax.devices()[0].device_kind}: "
        f"{took:.1f} s, {groups / took:,.0f} groups/s; not converged: {len(post.unconverged)}; "
        f"tries: {np.bincount(post.details['tries']).tolist()[1:]}"
    )
    for i, name in enumerate(("x", "intercept", "sigma2")):
        low, high = np.quantile(post.draws[name], [0.025, 0.975], axis=(1, 2))
        covered = np.mean((low <= truth[:, i]) & (truth[:, i] <= high))
        lines.append(f"95 % intervals of {name} cover {covered:.4f}")
    return lines


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    for line in run(*numbers, scale_free="scale-free" in sys.argv):
        print(f"many: {line}", flush=True)

"""Many covariates: does `exact` converge by default, and how long does it take, all included?

``python -m benchmarks.large D [scale-free] [N,EPSILON ...]``. Half of the covariates are binary,
all are mixed, y is noisy. Priors are the conjugate ones that are made from the bounds or, if asked
for, the default of `exact`, which knows no units. Noise comes from NumPy: a simulation.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np

from noisewise.models.linear_regression import exact
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    Units,
    default_covariates,
    default_response,
)

GRID = [(n, e) for n in (100, 10_000, 1_000_000) for e in (0.1, 1.0, 10.0)]
CHUNK = 100_000


def simulate(d: int, n: int, epsilon: float, seed: int = 1) -> RegressionProblem:
    """One release of d covariates."""
    rng = np.random.default_rng(seed)
    k = d + 1
    theta = rng.normal(0, 1 / np.sqrt(d), d)
    mix = rng.normal(0, 0.3, (d, d)) / np.sqrt(d) + np.eye(d)
    gram, sums = np.zeros((k, k)), np.zeros(k)
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        x = np.clip(rng.normal(0, 0.4, (size, d)) @ mix, -1, 1)
        x[:, d // 2 :] = np.where(x[:, d // 2 :] > 0.3, 1.0, -1.0)
        y = np.clip(0.3 * x @ theta + 0.1 + rng.normal(0, 0.2, size), -1, 1)
        w = np.column_stack([x, y])
        gram += w.T @ w
        sums += w.sum(axis=0)
    scale = k * (k + 2) ** 2 / (2 * (k + 1)) / epsilon
    z = np.concatenate([gram[np.triu_indices(k)], sums])
    z = z + rng.laplace(0, scale, len(z))
    units = Units(np.zeros(k), np.ones(k))
    names = tuple(f"x{i}" for i in range(d))
    return RegressionProblem(
        names, "y", z[None], np.array([float(n)]), False, scale, "laplace",
        default_response(units), default_covariates(units), units, None,
    )  # fmt: skip


def run(d: int, grid: list[tuple[int, float]], *, scale_free: bool = False) -> None:
    """Print one line for every n and ε."""
    prior = "scale-free" if scale_free else "conjugate"
    for n, epsilon in grid:
        problem = replace(simulate(d, n, epsilon), scale_free=scale_free)
        start, worked = time.perf_counter(), time.process_time()
        post = exact.run(problem, 1, 4, 1000)
        took, worked = time.perf_counter() - start, time.process_time() - worked
        worst = max(float(np.max(r)) for r in post.rhat.values())
        least = min(float(np.min(e)) for e in post.ess.values())
        print(
            f"large: d={d} n={n:,} eps={epsilon:g}, {prior} prior: {took:.0f} s "
            f"({worked:.0f} s of CPU), tries {post.details['tries'][0]}, R-hat {worst:.4f}, "
            f"least ESS {least:.0f}, converged {post.converged}",
            flush=True,
        )


if __name__ == "__main__":
    cells = [(int(float(n)), float(e)) for n, e in (a.split(",") for a in sys.argv[2:] if "," in a)]
    run(int(sys.argv[1]), cells or GRID, scale_free="scale-free" in sys.argv)

"""How well posteriors cover the truth of simulated releases (``regression_paper.simulate``).

``python -m tests.inference.calibration TRIALS SEED [paper beside robust secret clamped]`` prints
every cell; all trials of a cell are one batch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from experiments.regression_paper.simulate import (
    binary,
    simulate,
    skewed,
    uniform,
    vague_covariates,
)
from noisewise import diagnostics
from noisewise.inference import methods
from noisewise.inference.results import Posterior
from noisewise.models.linear_regression import exact


def judged(post: Posterior, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per parameter: KS distance of the truth's ranks from uniform, coverage of 95 % intervals."""
    draws = np.stack([v.reshape(len(v), -1) for v in post.draws.values()], axis=-1)
    ranks = diagnostics.ranks(draws, truth)
    distance = np.array([diagnostics.ks(r).statistic for r in ranks.T])
    return distance, ((ranks > 0.025) & (ranks < 0.975)).mean(axis=0)


PAPER = [(n, e, 1) for n in (10, 100, 1000) for e in (0.1, 1.0)] + [(500, 1.0, 3)]
ROBUST = [(100, 1.0), (400, 4.0), (5000, 1.0)]
SHAPES = {
    "uniform": uniform,
    "binary 0.3": binary(0.3),
    "binary 0.05": binary(0.05),
    "beta(1,6)": skewed,
}


def line(name: str, post: Posterior, truth: np.ndarray) -> str:
    distance, covered = judged(post, truth)
    ess = np.min(list(post.ess.values()), axis=0)
    tries = ""
    if "tries" in post.details:
        tries = f", tries {np.bincount(post.details['tries'])[1:].tolist()}"
    return (
        f"{name} [{post.method}]: KS {np.round(distance, 3)}, coverage {np.round(covered, 3)}, "
        f"not converged {len(post.unconverged)}, ESS least {ess.min():.0f} "
        f"median {np.median(ess):.0f}{tries}"
    )


BESIDE = ("gibbs-update", "gibbs-prior", "gibbs-noisy", "naive")


def cells(trials: int, seed: int, chosen: Sequence[str]) -> Iterator[str]:
    for n, epsilon, d in PAPER:
        for method in ("exact", *BESIDE) if "beside" in chosen else ("exact",):
            if "paper" in chosen or method != "exact":
                powers = method == "gibbs-noisy"
                problem, truth = simulate(trials, n, epsilon, d, seed, monomials=powers)
                post: Any = methods("linear-regression")[method](problem, seed, 4, 1000, None)
                yield line(f"paper n={n} eps={epsilon} d={d}", post, truth)
    for shape, draw in SHAPES.items() if "robust" in chosen else ():
        for n, epsilon in ROBUST:
            problem, truth = simulate(trials, n, epsilon, 1, seed, draw, vague_covariates(1))
            yield line(f"{shape} n={n} eps={epsilon}", exact.run(problem, seed, 4, 1000), truth)
    for n, epsilon in [(100, 1.0), (1000, 0.1), (1000, 1.0)] if "secret" in chosen else ():
        problem, truth = simulate(trials, n, epsilon, 1, seed, secret_n=True)
        yield line(f"secret n={n} eps={epsilon}", exact.run(problem, seed, 4, 1000), truth)
    for share in (0.01, 0.05, 0.15, 0.33) if "clamped" in chosen else ():
        problem, truth = simulate(trials, 1000, 1.0, 1, seed, outside=share)
        name = f"clamped {share:.0%} of y, n=1000 eps=1.0"
        yield line(name, exact.run(problem, seed, 4, 1000), truth)


def main(trials: str = "300", seed: str = "8", *chosen: str) -> None:
    for told in cells(int(trials), int(seed), chosen or ("paper", "robust")):
        print(told, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""``bayes``: KL(truth‖model) against hindsight, and how often 95 % intervals cover the truth.

    python -m experiments.graphical_models.coverage --out FILE [--graphs chain …] [--sizes 10000]

One JSON line per trial: coverage over all cells of the clique marginals, and of single columns.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from experiments.graphical_models import baselines, simulate
from experiments.graphical_models.accuracy import GRAPHS
from noisewise.infer.graphical import bayes, cgm
from noisewise.infer.graphical.model import GraphicalModel
from noisewise.infer.graphical.posterior import GraphicalPosterior

CHAINS, DRAWS = 2, 250


def main() -> None:
    """Trials outside, so that an interrupted run has a little of everything."""
    parse = argparse.ArgumentParser()
    parse.add_argument("--out", required=True)
    parse.add_argument("--graphs", nargs="+", default=GRAPHS)
    parse.add_argument("--sizes", nargs="+", type=int, default=[10_000])
    parse.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0])
    parse.add_argument("--trials", type=int, default=5)
    parse.add_argument("--seed", type=int, default=2026)
    parse.add_argument("--law", default="log-gamma")
    words = parse.parse_args()
    with open(words.out, "a", encoding="utf-8") as out:
        for kind in words.graphs:
            for trial in range(words.trials):
                for n in words.sizes:
                    for epsilon in words.epsilons:
                        line = one(kind, trial, n, epsilon, words.seed, words.law)
                        out.write(json.dumps(line) + "\n")
                        out.flush()


def one(kind: str, trial: int, n: int, epsilon: float, seed: int, law: str) -> dict[str, Any]:
    """One truth, one release, one posterior. The truths are those of ``accuracy``."""
    rng = np.random.default_rng([seed, GRAPHS.index(kind), trial])
    true = simulate.truth(simulate.graph(kind, rng), rng)
    noise = np.random.default_rng([seed, GRAPHS.index(kind), trial, n, int(1000 * epsilon)])
    exact = simulate.counts(true, n, seed=int(noise.integers(2**31)))
    problem = simulate.noisy(true, exact, n, epsilon, noise)
    start = time.perf_counter()
    posterior = bayes.run(problem, seed=trial, chains=CHAINS, draws=DRAWS, law=law)
    seconds = time.perf_counter() - start
    best, lam = baselines.hindsight(problem, true)
    return {
        "graph": kind, "trial": trial, "n": n, "epsilon": epsilon, "seed": seed, "law": law,
        "uniform": true.kl(baselines.uniform(true)), "hindsight": best, "lambda": lam,
        "cgm": true.kl(cgm.run(problem)), "bayes": true.kl(posterior.model),
        "coverage": float(np.mean(covered(true, posterior))),
        "coverage_single": float(np.mean([single(true, posterior, v) for v in true.columns])),
        "tau": float(posterior.tau.mean()), "rhat": posterior.rhat, "ess": posterior.ess,
        "leapfrog_steps": posterior.details["leapfrog_steps"], "seconds": seconds,
        "divergences": posterior.details["divergences"],
    }  # fmt: skip


def covered(true: GraphicalModel, posterior: GraphicalPosterior) -> np.ndarray:
    """Cell by cell of the clique marginals."""
    found = []
    for clique, mu in true.clique_marginals().items():
        low, high = posterior.interval(clique)
        found.append(((low <= mu) & (mu <= high)).ravel())
    return np.concatenate(found)


def single(true: GraphicalModel, posterior: GraphicalPosterior, column: str) -> float:
    """The same for one column's own marginal."""
    low, high = posterior.interval(column)
    mu = true.marginal(column)
    return float(np.mean((low <= mu) & (mu <= high)))


if __name__ == "__main__":
    main()

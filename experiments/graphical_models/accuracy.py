"""KL(truth‖model) of every point method, over graphs, n and ε (thesis figure 3.4, with hindsight).

    python -m experiments.graphical_models.accuracy --out FILE [--graphs chain …] [--trials 5]

One JSON line per trial: divergences, marginal calls, and seconds of a second, compiled run.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.graphical_models import baselines, simulate
from noisewise.models.graphical_model import collective_em, maximum_likelihood
from noisewise.models.graphical_model.fitted_model import GraphicalModel
from noisewise.models.graphical_model.problem import TablesProblem

GRAPHS = ("chain", "third-order", "erdos-renyi")
SIZES = (1_000, 10_000, 100_000, 1_000_000)
EPSILONS = (0.1, 0.5, 1.0)


def options(out: bool = True) -> argparse.ArgumentParser:
    """What every experiment over this grid may be told."""
    parse = argparse.ArgumentParser()
    if out:
        parse.add_argument("--out", required=True)
    parse.add_argument("--graphs", nargs="+", default=GRAPHS)
    parse.add_argument("--sizes", nargs="+", type=int, default=SIZES, choices=SIZES)
    parse.add_argument("--trials", type=int, default=5)
    parse.add_argument("--seed", type=int, default=2026)
    return parse


def main() -> None:
    """Run the grid."""
    parse = options()
    parse.add_argument("--quick", action="store_true", help="cgm and naive only")
    words = parse.parse_args()
    with open(words.out, "a", encoding="utf-8") as out:
        for kind in words.graphs:
            for trial in range(words.trials):
                for line in trials(kind, trial, words.seed, words.sizes, words.quick):
                    out.write(json.dumps(line) + "\n")
                    out.flush()


class Cell(NamedTuple):
    """One release of the grid, with the truth behind it."""

    graph: str
    trial: int
    n: int
    epsilon: float
    true: GraphicalModel
    problem: TablesProblem


def releases(kind: str, trial: int, seed: int, sizes: Sequence[int] = SIZES) -> Iterator[Cell]:
    """One truth; every ε at the sizes asked. What is drawn does not depend on which are asked."""
    rng = np.random.default_rng([seed, GRAPHS.index(kind), trial])
    true = simulate.truth(simulate.graph(kind, rng), rng)
    for n in SIZES[: 1 + max(SIZES.index(n) for n in sizes)]:
        exact = simulate.counts(true, n, seed=int(rng.integers(2**31)))
        for epsilon in EPSILONS:
            problem = simulate.noisy(true, exact, n, epsilon, rng)
            if n in sizes:
                yield Cell(kind, trial, n, epsilon, true, problem)


def trials(
    kind: str, trial: int, seed: int, sizes: Sequence[int], quick: bool = False
) -> list[dict[str, Any]]:
    """Every release of one truth."""
    lines = []
    for cell in releases(kind, trial, seed, sizes):
        true, problem = cell.true, cell.problem
        line: dict[str, Any] = {
            "graph": kind, "trial": trial, "n": cell.n, "epsilon": cell.epsilon, "seed": seed,
            "cliques": len(true.cliques), "cells": true.structure.cells,
            "uniform": true.kl(baselines.uniform(true)),
        }  # fmt: skip
        if not quick:
            line["hindsight"], line["lambda"] = baselines.hindsight(problem, true)
            line["mbi"] = true.kl(baselines.mirror_descent(problem))
        for name, fit in (("naive", maximum_likelihood.run), ("cgm", collective_em.run)):
            made, line[f"{name}_seconds"] = timed(fit, problem)
            line[name] = true.kl(made)
            line[f"{name}_calls"] = made.details["marginal_calls"]
        for word in ("em_steps", "last_gap", "last_calls"):
            line[word] = made.details[word]
        lines.append(line)
        print(json.dumps(line), flush=True)
    return lines


def timed(fit: Callable[[TablesProblem], Any], problem: TablesProblem) -> tuple[Any, float]:
    """The second of two runs: the first one compiles."""
    fit(problem)
    start = time.perf_counter()
    made = fit(problem)
    return made, time.perf_counter() - start


if __name__ == "__main__":
    main()

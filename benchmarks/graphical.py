"""Graphical models: ``cgm`` against one naive fit in one run, and a long chain of many states."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.graphical_models import simulate
from noisewise.models.graphical_model import collective_em, maximum_likelihood
from noisewise.models.graphical_model.problem import TablesProblem


def run(folder: Path) -> Iterator[str]:
    """Ratios first; ``folder`` is not needed."""
    for kind in ("chain", "third-order", "erdos-renyi"):
        for n in (10_000, 1_000_000):
            problem = made(kind, n, 1.0)
            plain, noisy = (
                seconds(maximum_likelihood.run, problem),
                seconds(collective_em.run, problem),
            )
            yield f"{kind}, n={n}, epsilon=1: cgm takes {noisy / plain:.2f} x one naive fit"
    long = made("chain", 100_000, 1.0, nodes=50, states=50)
    start = time.perf_counter()
    found = collective_em.run(long)
    first = time.perf_counter() - start
    yield (
        f"chain of 50 columns with 50 states ({found.details['size']}): {first:.1f} s with "
        f"compilation, {found.details['marginal_calls']} marginal calls"
    )


def made(kind: str, n: int, epsilon: float, nodes: int = 10, states: int = 10) -> TablesProblem:
    rng = np.random.default_rng(0)
    true = simulate.truth(simulate.graph(kind, rng, nodes, states), rng)
    return simulate.noisy(true, simulate.counts(true, n, 0), n, epsilon, rng)


def seconds(fit: Callable[[TablesProblem], Any], problem: TablesProblem) -> float:
    """The best of three after one that compiles."""
    fit(problem)
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        fit(problem)
        taken.append(time.perf_counter() - start)
    return min(taken)

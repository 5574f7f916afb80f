"""Ranks of truths from the default prior itself: uniform if posteriors are right.

python -m experiments.real_tables.ranks [--trials 400] [--out FILE] [D,N,EPSILON ...]

Cells are given as covariates, records and ε; without any, one and three covariates in all nine.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from noisewise import diagnostics
from noisewise.models.linear_regression import exact
from noisewise.models.linear_regression.simulate import from_prior
from tests.inference.regressions import problem, sensitivity, table

CELLS = [(d, n, e) for d in (1, 3) for n in (10, 100, 1000) for e in (0.1, 1.0, 10.0)]


@dataclass(frozen=True)
class RankCell:
    """One cell; lists are slopes, intercept, σ². ``tries``: groups by the try they ended with."""

    d: int
    n: int
    epsilon: float
    trials: int
    distance: list[float]
    coverage: list[float]
    unconverged: int
    tries: list[int]
    seconds: list[float]

    def __str__(self) -> str:
        return (
            f"d {self.d} n {self.n} epsilon {self.epsilon:g}: KS {np.round(self.distance, 3)} "
            f"(5 % point {1.358 / np.sqrt(self.trials):.3f}) coverage {np.round(self.coverage, 3)} "
            f"not converged {self.unconverged}, tries {self.tries}, seconds {self.seconds}"
        )


def cell(d: int, n: int, epsilon: float, trials: int = 400) -> RankCell:
    """Return how the ranks of that many truths lie."""
    tables = [table(np.random.default_rng(1), n, d)]
    given = replace(problem(tables, sensitivity(d + 1) / epsilon), scale_free=True)
    made = from_prior(np.random.default_rng([n, d]), given, trials)
    post = exact.run(made.problem, 5, 4, 500)
    draws = np.stack([v.reshape(trials, -1) for v in post.draws.values()], axis=-1)
    found = diagnostics.ranks(draws, made.truth)
    distance = [float(diagnostics.ks(r).statistic) for r in found.T]
    covered = ((found > 0.025) & (found < 0.975)).mean(axis=0)
    tries = np.bincount(post.details["tries"], minlength=4)[1:]
    return RankCell(
        d, n, epsilon, trials, distance, covered.tolist(), len(post.unconverged),
        tries.tolist(), list(post.details["seconds"]),
    )  # fmt: skip


def main() -> None:
    """Run the cells."""
    parser = argparse.ArgumentParser(prog="python -m experiments.real_tables.ranks")
    parser.add_argument("cells", nargs="*")
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--out", type=Path, help="also write all cells as JSON")
    given = parser.parse_args()
    cells = [(int(d), int(n), float(e)) for d, n, e in (c.split(",") for c in given.cells)]
    done = []
    for d, n, epsilon in cells or CELLS:
        done.append(cell(d, n, epsilon, given.trials))
        print(done[-1], flush=True)
        if given.out:
            given.out.write_text(json.dumps([asdict(c) for c in done]))


if __name__ == "__main__":
    main()

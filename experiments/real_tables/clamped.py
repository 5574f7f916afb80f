"""Normal records of which bounds cut a share off: coverage where the cuts are declared.

python -m experiments.real_tables.clamped [--tables 400] [--out FILE] SHARE,…,SHARE [N,EPSILON ...]

Shares are of covariates and, last, of the response; 0 is a column with natural bounds.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from scipy.stats import norm

from noisewise.models.linear_regression import exact
from noisewise.models.linear_regression.censoring import Cuts
from tests.inference.regressions import problem, sensitivity

CELLS = [(1000, 1.0), (1000, 5.0), (10_000, 1.0), (10_000, 5.0)]
"""n and ε."""
SEED = 18


@dataclass(frozen=True)
class ClampedCell:
    """One cell; coverage of slopes, intercept, σ²."""

    outside: tuple[float, ...]
    n: int
    epsilon: float
    tables: int
    coverage: list[float]
    converged: float

    def __str__(self) -> str:
        return (
            f"outside {self.outside}, n {self.n}, epsilon {self.epsilon:g}: "
            f"{np.round(self.coverage, 3)}, converged {self.converged:.3f}"
        )


def clamped_table(
    rng: np.random.Generator, n: int, d: int, outside: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return n clamped normal records of columns with such shares outside, and (θ, σ²) behind."""
    deviation = np.array([1 / norm.isf(share / 2) if share else 0.28 for share in outside])
    slopes = deviation[-1] * np.sqrt(0.5 / d) / deviation[:-1]
    x = rng.standard_normal((n, d)) * deviation[:-1]
    sigma = deviation[-1] * np.sqrt(0.5)
    y = x @ slopes + sigma * rng.standard_normal(n)
    return np.clip(np.column_stack([x, y]), -1, 1), np.append(slopes, [0.0, sigma**2])


def cell(outside: tuple[float, ...], n: int, epsilon: float, tables: int = 400) -> ClampedCell:
    """Return how often intervals hold the law behind the clamped records."""
    rng, d = np.random.default_rng(SEED), len(outside) - 1
    made = [clamped_table(rng, n, d, outside) for _ in range(tables)]
    posed = problem([t for t, _ in made], sensitivity(d + 1) / epsilon)
    flags = np.array(outside) > 0
    post = exact.run(replace(posed, scale_free=True, cuts=Cuts(flags, flags)), SEED, 4, 500)
    draws = np.stack([v.reshape(tables, -1) for v in post.draws.values()])
    low, high = np.quantile(draws, [0.025, 0.975], axis=-1)
    truth = made[0][1][:, None]
    held = ((low <= truth) & (truth <= high)).mean(axis=1)
    converged = 1 - len(post.unconverged) / tables
    return ClampedCell(outside, n, epsilon, tables, held.tolist(), converged)


def main() -> None:
    """Run the cells of one set of shares."""
    parser = argparse.ArgumentParser(prog="python -m experiments.real_tables.clamped")
    parser.add_argument("outside")
    parser.add_argument("cells", nargs="*")
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--out", type=Path, help="also write all cells as JSON")
    given = parser.parse_args()
    outside = tuple(float(share) for share in given.outside.split(","))
    cells = [(int(n), float(e)) for n, e in (c.split(",") for c in given.cells)]
    done = []
    for n, epsilon in cells or CELLS:
        done.append(cell(outside, n, epsilon, given.tables))
        print(done[-1], flush=True)
        if given.out:
            given.out.write_text(json.dumps([asdict(c) for c in done]))


if __name__ == "__main__":
    main()

"""Do 95 % intervals of a regression with factors cover, and how wide are they?

python -m experiments.factors.calibration [--what fixed prior rare widths] [--trials 400]
                                          [--cell 0] [--processes 2] [--seed 0] [--out FILE]

``fixed``: one truth, x skewed and errors not normal; ``prior``: truths from the prior of the
analysis; both with two numeric columns, factors of two and five levels and an interaction, at three
(n, ε). ``rare``: a level with three records. ``widths``: median width of intervals over that of
least squares, on the data of ``tables.two_factors``. Trials run in parallel processes, each
compiled once. Noise is NumPy's, of the scale that a release with pure ε would have: a simulation.
Needs NumPy, SciPy and JAX only.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from experiments.factors.tables import A_EFFECTS, B_EFFECTS, B_SHARES, Table, two_factors
from noisewise.artifact import Bounds
from noisewise.artifact.statistics.cell_sums import product_bounds, replace_one_bounds
from noisewise.models.linear_regression.design_matrix import codes, design_matrix
from noisewise.models.linear_regression.factor_problem import FactorProblem
from noisewise.models.linear_regression.factor_records import boxed_columns, sums_within_cells
from noisewise.models.linear_regression.factor_structure import structure_of
from noisewise.models.linear_regression.required_sums import required_sums

CELLS = ((2000, 1.0), (20_000, 0.3), (500, 5.0))
"""(n, ε) at which coverage is measured."""
INTERACTION = "y ~ x + C(A) + C(B) + x:C(A)"
SLOPES = (0.5, 0.9)
"""Slopes of x within the levels of A."""
RARE_RECORDS = 3
"""Records of the rarest level, in ``rare``."""
SAMPLES_PER_TASK = 5
"""Trials that a process does before it takes the next (chosen)."""
CHAINS, DRAWS = 4, 1000
"""As ``infer`` has by default."""


@dataclass(frozen=True)
class Cell:
    """What one process is to do: trials ``first`` to ``last`` of a cell."""

    what: str
    n: int
    epsilon: float
    seed: int
    first: int = 0
    last: int = 0


def skewed_table(rng: np.random.Generator, n: int, rare: int | None = None) -> Table:
    """Make y on x, A, B and x within A; x is skewed, errors are those of a centred gamma.

    Args:
        rng: of the records.
        n: how many.
        rare: how many have the last level of B; as the shares say unless given.
    """
    table = two_factors(rng, n)
    x = 2 * rng.beta(1.5, 4.0, n) - 1
    a = codes(table.columns["A"].tolist(), table.levels["A"], "A")
    b = codes(table.columns["B"].tolist(), table.levels["B"], "B")
    if rare is not None:
        b = rng.choice(4, n, p=np.array(B_SHARES[:4]) / sum(B_SHARES[:4]))
        b[rng.permutation(n)[:rare]] = 4
    error = 0.8 * (rng.gamma(4.0, 1.0, n) - 4.0) / 2
    y = np.array(SLOPES)[a] * x + np.array(A_EFFECTS)[a] + np.array(B_EFFECTS)[b] + error
    columns = {"x": x, "A": np.array(table.levels["A"])[a], "B": np.array(table.levels["B"])[b]}
    return replace(table, columns={**columns, "y": y}, formula=INTERACTION)


def skewed_truth() -> np.ndarray:
    """Return the coefficients behind ``skewed_table`` in the order of its design, and σ²."""
    slopes = (SLOPES[0], A_EFFECTS[1], *B_EFFECTS[1:], SLOPES[1] - SLOPES[0], 0.0)
    return np.array([*slopes, 0.8**2])


def problem_of(table: Table, epsilon: float, rng: np.random.Generator) -> FactorProblem:
    """Return the problem of one release with pure ε, under replaced records."""
    formula, levels = table.parsed, dict(table.levels)
    statistic = required_sums(formula, levels, count=False)
    limits = {c: Bounds(*ends) for c, ends in table.bounds.items()}
    bounds = tuple(product_bounds(c, limits) for c in statistic.numeric)
    columns = {
        c: (np.clip(v, *table.bounds[c]) if c in limits else codes(v.tolist(), levels[c], c))[None]
        for c, v in table.columns.items()
    }
    sums = sums_within_cells(statistic, boxed_columns(statistic, bounds, columns), columns)
    sensitivity = replace_one_bounds(statistic.blocks, len(statistic.numeric), len(levels))[0]
    scale = float(sensitivity) / epsilon
    return FactorProblem(
        statistic, structure_of(statistic, False), sums + rng.laplace(0, scale, sums.shape),
        np.array([float(len(table))]), False, scale, "laplace", bounds, formula,
        formula.design(levels), None,
    )  # fmt: skip


def least_squares_widths(table: Table) -> np.ndarray:
    """Return the widths of 95 % intervals of all coefficients without privacy.

    They are not numbers where some level has no record.
    """
    design = table.parsed.design(table.levels)
    columns = {
        c: codes(v.tolist(), table.levels[c], c) if c in table.levels else v
        for c, v in table.columns.items()
    }
    x, y = design_matrix(design, columns, len(table)), table.columns["y"]
    theta, rest, rank, _ = np.linalg.lstsq(x, y, rcond=None)
    if rank < x.shape[1]:
        return np.full(x.shape[1] + 1, np.nan)
    error = np.sqrt(rest[0] / (len(y) - len(theta)) * np.diag(np.linalg.inv(x.T @ x)))
    return np.append(2 * 1.96 * error, np.nan)


def _fixed(rng: np.random.Generator, cell: Cell) -> tuple[FactorProblem, np.ndarray, np.ndarray]:
    table = skewed_table(rng, cell.n, RARE_RECORDS if cell.what == "rare" else None)
    return problem_of(table, cell.epsilon, rng), skewed_truth(), least_squares_widths(table)


def _widths(rng: np.random.Generator, cell: Cell) -> tuple[FactorProblem, np.ndarray, np.ndarray]:
    table = two_factors(rng, cell.n)
    truth = np.array([0.5, A_EFFECTS[1], *B_EFFECTS[1:], 0.0, 1.0])
    return problem_of(table, cell.epsilon, rng), truth, least_squares_widths(table)


def _prior(rng: np.random.Generator, cell: Cell) -> tuple[FactorProblem, np.ndarray, np.ndarray]:
    """Draw a truth from the prior, and sums and noise given it."""
    from noisewise.models.linear_regression.factor_simulate import from_prior

    like = problem_of(skewed_table(rng, cell.n), cell.epsilon, rng)
    trial = from_prior(rng, like, 1)
    return trial.problem, trial.truth[0], np.full(len(trial.truth[0]), np.nan)


MAKERS: dict[
    str, Callable[[np.random.Generator, Cell], tuple[FactorProblem, np.ndarray, np.ndarray]]
] = {"fixed": _fixed, "rare": _fixed, "prior": _prior, "widths": _widths}


def run_some(cell: Cell) -> list[dict[str, list[float]]]:
    """Return, for some trials of a cell, the truth's rank, intervals, and least squares' widths."""
    from noisewise.models.linear_regression import factor_exact

    results = []
    for trial in range(cell.first, cell.last):
        rng = np.random.default_rng([cell.seed, cell.n, round(100 * cell.epsilon), trial])
        problem, truth, plain = MAKERS[cell.what](rng, cell)
        post = factor_exact.run(replace(problem, keys=None), trial, CHAINS, DRAWS)
        draws = np.stack([post.draws[name].ravel() for name in post.draws])
        low, high = np.quantile(draws, [0.025, 0.975], axis=1)
        results.append({
            "rank": (draws < truth[:, None]).mean(axis=1).tolist(),
            "held": ((low <= truth) & (truth <= high)).astype(float).tolist(),
            "width": (high - low).tolist(),
            "least squares": plain.tolist(),
            "rhat": [float(np.max(v)) for v in post.rhat.values()],
        })  # fmt: skip
    return results


def names_of(what: str) -> list[str]:
    """Return the parameters of a cell's formula."""
    maker = two_factors if what == "widths" else skewed_table
    table = maker(np.random.default_rng(0), 50)
    return [*(c.name for c in table.parsed.design(table.levels)), "sigma2"]


def summary(cell: Cell, results: list[dict[str, list[float]]]) -> str:
    """Return coverage, median width, and width over least squares', for every parameter."""
    table = {k: np.array([r[k] for r in results]) for k in results[0]}
    ratio = np.nanmedian(table["width"] / table["least squares"], axis=0)
    lines = [f"{cell.what}: n {cell.n}, epsilon {cell.epsilon:g}, {len(results)} trials, R-hat "
             f"above 1.05 in {(table['rhat'] > 1.05).any(axis=1).mean():.3f}"]  # fmt: skip
    for i, name in enumerate(names_of(cell.what)):
        lines.append(
            f"  {name:16} coverage {table['held'][:, i].mean():.3f}  median width "
            f"{np.median(table['width'][:, i]):.4g}  over least squares' {ratio[i]:.3g}"
        )
    coefficients = table["held"][:, :-1]
    lines.append(f"  all coefficients {coefficients.mean():.3f}, least "
                 f"{coefficients.mean(axis=0).min():.3f}")  # fmt: skip
    return "\n".join(lines)


def cells_of(what: str, seed: int) -> list[Cell]:
    """Return the cells of a part of the study."""
    pairs = {"rare": ((2000, 5.0),), "widths": ((2000, 1.0), (20_000, 1.0))}.get(what, CELLS)
    return [Cell(what, n, epsilon, seed) for n, epsilon in pairs]


def main() -> None:
    """Run all cells asked for."""
    parser = argparse.ArgumentParser("python -m experiments.factors.calibration")
    parser.add_argument("--what", nargs="*", choices=sorted(MAKERS), default=sorted(MAKERS))
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cell", type=int, help="only this one of each part's (n, epsilon)")
    parser.add_argument("--out", type=Path, help="written after every few trials")
    parser.add_argument("--read", type=Path, help="only summarise such a file")
    given = parser.parse_args()
    if given.read:
        for part in json.loads(given.read.read_text()):
            print(summary(Cell(**part["cell"]), part["results"]))
        return
    chosen = slice(None) if given.cell is None else slice(given.cell, given.cell + 1)
    kept: list[dict[str, Any]] = []
    # Spawned, not forked: JAX runs threads.
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        for cell in (c for what in given.what for c in cells_of(what, given.seed)[chosen]):
            share = max(1, min(SAMPLES_PER_TASK, given.trials // given.processes))
            tasks = [
                replace(cell, first=first, last=min(first + share, given.trials))
                for first in range(0, given.trials, share)
            ]
            results: list[dict[str, list[float]]] = []
            kept.append({"cell": asdict(cell), "names": names_of(cell.what), "results": results})
            for some in pool.map(run_some, tasks):
                results += some
                if given.out:
                    given.out.write_text(json.dumps(kept))
            print(summary(cell, results), flush=True)


if __name__ == "__main__":
    main()

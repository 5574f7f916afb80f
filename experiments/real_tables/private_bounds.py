"""Bounds found privately, from limits ten and a thousand times too wide: coverage and width.

python -m experiments.real_tables.private_bounds [--samples 200] [--seed 7] [--data FOLDER]

Each sample of 5,000 records is released once with ε = 1, bounds included, by ``nw.release`` itself;
beside it the same sample with bounds that fit. All samples of one shape are inferred together.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

import noisewise as nw
from experiments.real_tables.study import fit
from experiments.real_tables.tables import Question, questions, study_arguments
from noisewise.models.linear_regression import exact
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    Units,
    default_covariates,
    default_response,
    regression_problem,
)

WIDER = (1, 10, 1000)
"""How many times too wide the limits are; 1 stands for bounds that fit, given by the owner."""
RECORDS, EPSILON = 5000, 1.0


@dataclass(frozen=True)
class PrivateRow:
    """One regression; lists are slopes, intercept, σ². ``ratio``: width over that of bounds that
    fit. ``found``: median width of the found bounds over that of bounds that fit, by column."""

    name: str
    wider: int
    coverage: list[float]
    ratio: list[float]
    found: list[float]
    converged: float


def released(rng: np.random.Generator, question: Question, wider: int) -> RegressionProblem:
    """Return the problem of one release of one sample."""
    some = question.records[rng.integers(0, len(question.records), RECORDS)]
    names = [f"x{i + 1}" for i in range(some.shape[1] - 1)] + ["y"]
    bounds: dict[str, nw.Bounds | nw.release.PrivateBounds | tuple[float, float]] = {}
    for name, (low, high) in zip(names, question.bounds.tolist(), strict=True):
        centre, half = (low + high) / 2, wider * (high - low) / 2
        # Limits that are wider on both sides, but for zero where nothing lies below it.
        lower = 0.0 if low >= 0 and centre - half < 0 else centre - half
        limits = (lower, centre + half)
        bounds[name] = (low, high) if wider == 1 else nw.release.PrivateBounds(limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = nw.release.linear_regression(
            pd.DataFrame(some, columns=names), x=names[:-1], y="y", bounds=bounds, epsilon=EPSILON
        )
    return regression_problem(release, None)


def inferred(problems: Sequence[RegressionProblem], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return draws (problem, parameter, draw) in the users' units, and which did not converge."""
    q = len(problems[0].x) + 1
    draws: list[np.ndarray | None] = [None] * len(problems)
    bad = np.zeros(len(problems), bool)
    kinds: dict[object, list[int]] = {}
    for i, p in enumerate(problems):
        cut = None if p.cuts is None else (*p.cuts.lower.tolist(), *p.cuts.upper.tolist())
        kinds.setdefault((cut, round(p.noise_scale, 9)), []).append(i)
    box = Units(np.zeros(q), np.ones(q))
    for rows in kinds.values():
        first = problems[rows[0]]
        joint = replace(
            first, z=np.concatenate([problems[i].z for i in rows]), keys=tuple(range(len(rows))),
            n=np.concatenate([problems[i].n for i in rows]), units=box,
            response=default_response(box), covariates=default_covariates(box),
        )  # fmt: skip
        post = exact.run(joint, seed, 4, 500)
        bad[[rows[k] for k in post.unconverged if isinstance(k, int)]] = True
        stacked = np.stack([v.reshape(len(rows), -1) for v in post.draws.values()], axis=-1)
        for i, own in zip(rows, stacked, strict=True):
            draws[i] = problems[i].units.to_user(own).T
    return np.stack([d for d in draws if d is not None]), bad


def study(some: Sequence[Question], samples: int, seed: int) -> list[PrivateRow]:
    """Return a row for every regression and limit; all have the same number of covariates."""
    asked = [(question, wider) for question in some for wider in WIDER]
    problems = []
    for question, wider in asked:
        rng = np.random.default_rng([seed, question.records.shape[1], len(question.records)])
        problems += [released(rng, question, wider) for _ in range(samples)]
    draws, bad = inferred(problems, seed)
    low, high = np.quantile(draws, [0.025, 0.975], axis=-1)
    table, fitting = [], np.zeros(0)
    for k, (question, wider) in enumerate(asked):
        at = slice(k * samples, (k + 1) * samples)
        truth = fit(question.records)[0]
        held = (low[at] <= truth) & (truth <= high[at])
        width = np.median((high - low)[at], axis=0)
        fitting = width if wider == 1 else fitting
        half = np.median([p.units.half for p in problems[at]], axis=0)
        guessed = (question.bounds[:, 1] - question.bounds[:, 0]) / 2
        table.append(
            PrivateRow(
                question.name, wider, held.mean(axis=0).tolist(), (width / fitting).tolist(),
                (half / guessed).tolist(), float(1 - bad[at].mean()),
            )
        )  # fmt: skip
    return table


def line(row: PrivateRow) -> str:
    """Return a row of the printed table."""
    shown = [f"{c:.3f} ({r:.2f})" for c, r in zip(row.coverage, row.ratio, strict=True)]
    found = " ".join(f"{f:.2f}" for f in row.found)
    return (
        f"{row.name:12} limits x {row.wider:4} {'  '.join(shown)}  bounds {found}  "
        f"converged {row.converged:.2f}"
    )


def main() -> None:
    """Run all regressions."""
    given = study_arguments("python -m experiments.real_tables.private_bounds").parse_args()
    rows: list[PrivateRow] = []
    for d in given.covariates:
        some = [q for q in questions(given.data) if q.records.shape[1] == d + 1]
        for question in some:
            fresh = study([question], given.samples, given.seed)
            print(*map(line, fresh), sep="\n", flush=True)
            rows += fresh
            if given.out:
                given.out.write_text(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    main()

"""Test error on incomes: posterior means from Gaussian and Laplace releases, AdaSSP, least squares.

python -m experiments.factors [--seed 0] [--splits 5] [--noise gaussian laplace] [--out FILE]

Every split holds back a fifth of the records. Error is the mean squared error on these, incomes
clamped to their bounds as everywhere; excess is over least squares without privacy. AdaSSP has what
helps it: the response centred and scaled to [-1, 1], both usual codings of factors (reference left
out beside an intercept, ‖x‖² ≤ 1 + factors; or all levels, ‖x‖² = factors), the better at every ε
by its mean test error, which no one could know; and neighbours by an added or removed record,
where ours may be replaced.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import noisewise as nw
from experiments.factors.adassp import adassp, noise_scales
from experiments.factors.tables import Table, acs_income
from noisewise.models.linear_regression.design_matrix import codes, design_matrix

EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0)
DELTA = 1e-5
HELD_OUT = 0.2
"""Share of the records that errors are measured on."""

Fit = Callable[[Table, Table, float, int], np.ndarray]
"""Table to learn from, table to predict, ε and seed in; predictions out."""


def _codes(table: Table) -> dict[str, np.ndarray]:
    """Return the columns with levels as indices."""
    return {
        name: codes(column.tolist(), table.levels[name], name) if name in table.levels else column
        for name, column in table.columns.items()
    }


def design(table: Table) -> np.ndarray:
    """Return the design of the table's formula, references left out, the intercept last."""
    return design_matrix(table.parsed.design(table.levels), _codes(table), len(table))


def all_levels(table: Table) -> np.ndarray:
    """Return an indicator column for every level of every factor."""
    codes = _codes(table)
    return np.concatenate(
        [np.eye(len(levels))[codes[f]] for f, levels in table.levels.items()], axis=1
    )


def least_squares(train: Table, test: Table, epsilon: float, seed: int) -> np.ndarray:
    """Predict without any privacy."""
    found = np.linalg.lstsq(design(train), train.columns[train.response], rcond=None)[0]
    return design(test) @ found


def posterior_mean(noise: str) -> Fit:
    """Return predictions by the posterior mean of a release with that noise."""
    words: dict[str, Any] = {"mechanism": "gaussian", "delta": DELTA} if noise == "gaussian" else {}

    def fit(train: Table, test: Table, epsilon: float, seed: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = nw.release.linear_regression(
                pd.DataFrame(train.columns), formula=train.formula, bounds=train.bounds,
                levels=train.levels, epsilon=epsilon, **words,
            )  # fmt: skip
            post = nw.infer(release, seed=seed)
        names = [c.name for c in train.parsed.design(train.levels)]
        return design(test) @ np.array([post.draws[name].mean() for name in names])

    return fit


def by_adassp(coded: Callable[[Table], np.ndarray], squared_norm: Callable[[Table], int]) -> Fit:
    """Return predictions by AdaSSP with one coding of the factors."""

    def fit(train: Table, test: Table, epsilon: float, seed: int) -> np.ndarray:
        lower, upper = train.bounds[train.response]
        centre, half = (lower + upper) / 2, (upper - lower) / 2
        x = coded(train)
        scales = noise_scales(epsilon, DELTA, x.shape[1], np.sqrt(squared_norm(train)), 1.0)
        y = (train.columns[train.response] - centre) / half
        found = adassp(np.random.default_rng([seed, 3]), x, y, scales)
        return centre + half * (coded(test) @ found)

    return fit


NOISES = ("gaussian", "laplace")
"""Noise of the releases whose posterior means predict; Laplace noise has delta = 0."""

METHODS: dict[str, Fit] = {
    "least squares": least_squares,
    "posterior mean, gaussian": posterior_mean("gaussian"),
    "posterior mean, laplace": posterior_mean("laplace"),
    "AdaSSP, reference left out": by_adassp(design, lambda t: 1 + len(t.levels)),
    "AdaSSP, all levels": by_adassp(all_levels, lambda t: len(t.levels)),
}


def errors(
    splits: int, seed: int, methods: dict[str, Fit] = METHODS
) -> dict[str, dict[float, list[float]]]:
    """Return mean squared test errors by method, ε and split."""
    table = acs_income(seed=seed)
    found: dict[str, dict[float, list[float]]] = {m: {e: [] for e in EPSILONS} for m in methods}
    for split in range(splits):
        order = np.random.default_rng([seed, 4, split]).permutation(len(table))
        held = round(HELD_OUT * len(table))
        test, train = table.some(order[:held]), table.some(order[held:])
        for method, fit in methods.items():
            for epsilon in EPSILONS:
                error = fit(train, test, epsilon, split) - test.columns[test.response]
                found[method][epsilon].append(float(np.mean(error**2)))
                print(f"{split} {method} epsilon {epsilon:g}: {found[method][epsilon][-1]:.1f}",
                      flush=True)  # fmt: skip
    return found


def verdict(found: dict[str, dict[float, list[float]]]) -> str:
    """Return mean errors as a table, and ours over AdaSSP's excess at every ε."""
    mean = {m: {e: float(np.mean(v)) for e, v in by.items()} for m, by in found.items()}
    rows = [f"{'':36}" + "".join(f"{e:>9g}" for e in EPSILONS)]
    rows += [f"{m:36}" + "".join(f"{mean[m][e]:9.1f}" for e in EPSILONS) for m in mean]
    best = {e: min(v[e] for m, v in mean.items() if m.startswith("AdaSSP")) for e in EPSILONS}
    without = mean["least squares"]
    for method in (m for m in mean if m.startswith("posterior")):
        ratio = [(mean[method][e] - without[e]) / (best[e] - without[e]) for e in EPSILONS]
        rows.append(f"{'excess over AdaSSPs, ' + method[16:]:36}"
                    + "".join(f"{r:9.2f}" for r in ratio))  # fmt: skip
    return "\n".join(rows)


def main() -> None:
    """Run all splits."""
    parser = argparse.ArgumentParser("python -m experiments.factors")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--noise", nargs="*", default=list(NOISES), choices=NOISES)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    left_out = {f"posterior mean, {noise}" for noise in NOISES if noise not in given.noise}
    methods = {name: fit for name, fit in METHODS.items() if name not in left_out}
    found = errors(given.splits, given.seed, methods)
    print(verdict(found))
    if given.out:
        given.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()

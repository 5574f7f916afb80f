"""Releases by a formula with factors: how often intervals hold maximum likelihood.

From insurance.csv (see ``experiments.real_tables.tables``) n records are drawn with replacement;
every sample is released by nw.release.linear_regression and inferred by both methods. Prints a row
of JSON per method, and each sample's estimates to a file if asked:

python -m experiments.generalized_linear.factors --data FOLDER --epsilon 1 --trials 50
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd

import noisewise as nw
from experiments.generalized_linear.tables import auc, maximum_likelihood
from noisewise.formula import parse
from noisewise.models.linear_regression.design_matrix import codes, design_matrix

LEVELS = {
    "sex": ("female", "male"),
    "region": ("northeast", "northwest", "southeast", "southwest"),
}
BOUNDS = {"age": (18, 65), "bmi": (10, 60), "smokes": (0, 1), "expensive": (0, 1)}
FORMULAS = {
    "smokes": "smokes ~ age + bmi + C(sex) + C(region)",
    "expensive": "expensive ~ age + bmi + C(sex) + C(region)",
}
"""Whether people smoke, and whether their charges are above 10,000."""


def design_of(table: pd.DataFrame, formula: str) -> tuple[tuple[str, ...], np.ndarray]:
    """Return names and values (record, column) of a formula's design, the intercept last."""
    columns = parse(formula, LEVELS).design(LEVELS)
    known = {
        c: codes(table[c].to_numpy(), LEVELS[c], c) if c in LEVELS else table[c].to_numpy(float)
        for column in columns
        for c in (*column.numeric, *(f for f, _ in column.levels))
    }
    return tuple(c.name for c in columns), design_matrix(columns, known, len(table))


def best(design: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return maximum-likelihood coefficients of a design whose last column is the constant."""
    mean, sd = design[:, :-1].mean(axis=0), design[:, :-1].std(axis=0)
    theta = maximum_likelihood((design[:, :-1] - mean) / sd, y)
    slopes = theta[:-1] / sd
    return np.append(slopes, theta[-1] - slopes @ mean)


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m experiments.generalized_linear.factors")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--response", default="smokes", choices=FORMULAS)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--draws", type=int, default=250)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    table = pd.read_csv(args.data / "insurance.csv")
    table = table.assign(smokes=(table.smoker == "yes") * 1.0,
                         expensive=(table.charges > 10_000) * 1.0)  # fmt: skip
    formula = FORMULAS[args.response]
    names, design = design_of(table, formula)
    y = table[args.response].to_numpy()
    truth = best(design, y)
    whole = auc(design @ truth, y)
    rng = np.random.default_rng(args.seed)
    limits = {c: BOUNDS[c] for c in ("age", "bmi", args.response)}
    held: dict[str, list[np.ndarray]] = {"clt": [], "naive": []}
    lost: dict[str, list[float]] = {"clt": [], "naive": []}
    bad, begin = 0, time.process_time()
    for trial in range(args.trials):
        sample = table.iloc[rng.integers(0, len(table), args.n)]
        release = nw.release.linear_regression(
            sample, formula=formula, bounds=limits, levels=LEVELS, epsilon=args.epsilon
        )
        for method in held:
            post = nw.infer(release, model="logistic", method=method, draws=args.draws, seed=trial)
            drawn = np.stack([post.draws[c].ravel() for c in names])
            low, high = np.quantile(drawn, [0.025, 0.975], axis=1)
            held[method].append((low <= truth) & (truth <= high))
            lost[method].append(whole - auc(design @ np.median(drawn, axis=1), y))
            bad += method == "clt" and not post.converged
        row = {"trials": trial + 1, "cpu_seconds": round(time.process_time() - begin)}
        rows = {
            method: {"coverage": np.mean(held[method], axis=0).round(3).tolist(),
                     "auc_lost": round(float(np.mean(lost[method])), 4)}
            for method in held
        }  # fmt: skip
        if trial + 1 == args.trials or (trial + 1) % 10 == 0:
            print(json.dumps({
                "response": args.response, "n": args.n, "epsilon": args.epsilon,
                "seed": args.seed, "draws": args.draws, "names": names, "auc": round(whole, 3),
                **row, "unconverged": bad, **rows,
            }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

"""Run a study of generalized linear models; every cell is a line of JSON.

python -m experiments.generalized_linear normal --link logistic --d 1 --n 200 --epsilon 1
python -m experiments.generalized_linear shapes --shape uniform --slope 1 --n 2000 --epsilon 1
python -m experiments.generalized_linear tables --data FOLDER --epsilon 1 --trials 50
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from experiments.generalized_linear import rivals, simulate
from noisewise.models.generalized_linear import clt, naive
from noisewise.models.generalized_linear.posterior import GeneralizedPosterior
from noisewise.models.generalized_linear.problem import GeneralizedProblem

METHODS: dict[str, Callable[..., Any]] = {
    "clt": clt.run,
    "naive": naive.run,
    "polynomial": rivals.run_by(rivals.polynomial),
    "rescaled": rivals.run_by(rivals.rescaled),
}


def scores(post: GeneralizedPosterior, truth: np.ndarray) -> dict[str, Any]:
    """Return coverage, ranks' distance from uniform and convergence; truth (trial, parameter)."""
    names = (*post.x, "intercept")
    coverage, ks, width = [], [], []
    for j, name in enumerate(names):
        flat = post.draws[name].reshape(len(truth), -1)
        low, high = np.quantile(flat, [0.025, 0.975], axis=1)
        coverage.append(round(float(np.mean((low <= truth[:, j]) & (truth[:, j] <= high))), 3))
        ranks = np.mean(flat < truth[:, j, None], axis=1)
        ks.append(round(float(stats.kstest(ranks, "uniform").statistic), 3))
        width.append(round(float(np.median(high - low)), 4))
    bad = set(post.unconverged)
    shift = np.stack([np.atleast_1d(v) for v in post.shape_shift.values()], axis=1)[:, :-1] \
        if post.shape_shift else np.zeros((len(truth), 1))  # fmt: skip
    return {
        "coverage": coverage, "ks": ks, "ks_5_percent": round(1.358 / np.sqrt(len(truth)), 3),
        "width": width, "unconverged": len(bad), "shift_above_1": float((shift.max(1) > 1).mean()),
        "tries": round(float(np.mean(post.details.get("tries", 1))), 2),
    }  # fmt: skip


def normal_study(args: argparse.Namespace, rng: np.random.Generator) -> dict[str, Any]:
    """Covariates normal, truths from the prior."""
    problem = simulate.empty_problem(
        args.link, args.d, np.full(args.trials, args.n), args.epsilon, args.law
    )
    sums, response, truth = [], [], []
    for _ in range(args.trials):
        x = simulate.normal_records(rng, args.n, args.d)
        mean, sd = x.mean(axis=0), x.std(axis=0)
        slopes = problem.slope_sd * rng.standard_normal(args.d) / sd
        level = problem.level + problem.level_sd * rng.standard_normal()
        y = simulate.respond(rng, args.link, level + (x - mean) @ slopes)
        upper = simulate.COUNT_BOUND if args.link == "poisson" else 1.0
        first, second = simulate.sums_of(x, y, upper)
        sums.append(first)
        response.append(second)
        truth.append([*slopes, level - slopes @ mean])
    return _scored(args, rng, problem, np.array(sums), np.array(response), np.array(truth))


def shapes_study(args: argparse.Namespace, rng: np.random.Generator) -> dict[str, Any]:
    """Covariates of another shape, one fixed slope per standard deviation."""
    many = simulate.SHAPES[args.shape](rng, 200_000)
    d, sd = many.shape[1], many.std(axis=0)
    slopes = args.slope / sd * np.array([1.0, -0.7, 0.5])[:d]
    intercept = -0.5 - slopes @ many.mean(axis=0)
    problem = simulate.empty_problem("logistic", d, np.full(args.trials, args.n), args.epsilon,
                                     args.law)  # fmt: skip
    if args.shape in ("binary .3", "four levels"):
        problem = replace(problem, indicators=np.ones(d, bool))
    sums, response = [], []
    for _ in range(args.trials):
        x = simulate.SHAPES[args.shape](rng, args.n)
        y = simulate.respond(rng, "logistic", intercept + x @ slopes)
        first, second = simulate.sums_of(x, y, 1.0)
        sums.append(first)
        response.append(second)
    truth = np.tile([*slopes, intercept], (args.trials, 1))
    return _scored(args, rng, problem, np.array(sums), np.array(response), truth)


def _scored(
    args: argparse.Namespace, rng: np.random.Generator, problem: GeneralizedProblem,
    sums: np.ndarray, response: np.ndarray, truth: np.ndarray,
) -> dict[str, Any]:  # fmt: skip
    noise = problem.noise_scale
    problem = replace(
        problem, covariates=sums + rng.laplace(0, noise, sums.shape),
        response=response + rng.laplace(0, noise, response.shape),
    )  # fmt: skip
    begin = time.perf_counter()
    post = METHODS[args.method](problem, args.seed, 4, args.draws)
    return {**scores(post, truth), "seconds": round(time.perf_counter() - begin, 1)}


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m experiments.generalized_linear")
    parser.add_argument("study", choices=("normal", "shapes", "tables"))
    parser.add_argument("--link", default="logistic")
    parser.add_argument("--d", type=int, default=1)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--shape", default="uniform")
    parser.add_argument("--slope", type=float, default=1.0)
    parser.add_argument("--law", default="box")
    parser.add_argument("--method", default="clt", choices=METHODS)
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", help="Part of a table's name.")
    parser.add_argument("--both", action="store_true", help="Normal covariates beside the box.")
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    asked = {k: v for k, v in vars(args).items() if v is not None and k != "data"}
    if args.study == "tables":
        from experiments.generalized_linear import tables

        for row in tables.study(args, METHODS):
            print(json.dumps(row), flush=True)
        return
    study = {"normal": normal_study, "shapes": shapes_study}[args.study]
    print(json.dumps({**asked, **study(args, rng)}), flush=True)


if __name__ == "__main__":
    main()

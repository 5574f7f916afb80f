"""Real tables with a response that is 0 or 1, and how often intervals hold their coefficients.

From each table n records are drawn with replacement; every sample is released once (Laplace noise,
public n; the noise is NumPy's) and inferred. Held against the maximum-likelihood coefficients of
the whole table. scikit-learn brings breast cancer, diabetes and iris; diamonds and insurance are
read from a folder (see ``experiments.real_tables.tables``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata

from experiments.generalized_linear import simulate
from noisewise.models.base import Progress
from noisewise.models.generalized_linear.covariate_nodes import order_of
from noisewise.models.generalized_linear.problem import GeneralizedProblem

Limits = tuple[float, float]
Run = Callable[[GeneralizedProblem, int, int, int, "Progress | None"], Any]
QUESTIONS: Mapping[str, tuple[str, Callable[[Any], Any], Mapping[str, Limits]]] = {
    "diamonds: ideal cut": (
        "diamonds", lambda t: t["cut"] == "Ideal",
        {"carat": (0, 5), "depth": (40, 80), "table": (40, 100)},
    ),
    "insurance: smoker": (
        "insurance", lambda t: t["smoker"] == "yes",
        {"age": (18, 65), "bmi": (10, 60), "children": (0, 5)},
    ),
    "insurance: charges above 10,000": (
        "insurance", lambda t: t["charges"] > 10_000,
        {"age": (18, 65), "male": (0, 1), "bmi": (10, 60)},
    ),
    "cancer: malignant": (
        "breast_cancer", lambda t: t["target"] == 0,
        {"mean texture": (5, 40), "mean smoothness": (0, 0.2), "mean symmetry": (0, 0.4)},
    ),
    "diabetes: above median": (
        "diabetes", lambda t: t["target"] > 140,
        {"age": (18, 80), "second sex": (0, 1), "bmi": (15, 45), "bp": (50, 150)},
    ),
}  # fmt: skip
"""Questions by name: table, response, covariates and bounds that someone who knows would guess."""


@dataclass(frozen=True, eq=False)
class Question:
    """Records (record, covariate) in the box, the response, and maximum likelihood there."""

    name: str
    x: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    indicators: np.ndarray


def maximum_likelihood(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return slopes and intercept of a logistic regression."""
    design = np.column_stack([x, np.ones(len(x))])

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        t = design @ theta
        value = np.logaddexp(0, t).sum() - t @ y
        return float(value / len(y)), design.T @ (expit(t) - y) / len(y)

    return np.asarray(minimize(loss, np.zeros(design.shape[1]), jac=True, method="BFGS",
                               options={"gtol": 1e-9}).x)  # fmt: skip


def questions(folder: Path | None) -> list[Question]:
    """Return the questions whose tables are at hand."""
    import pandas as pd
    from sklearn import datasets

    known = []
    for name, (table, response, limits) in QUESTIONS.items():
        if table in ("diamonds", "insurance"):
            if folder is None or not (folder / f"{table}.csv").exists():
                continue
            frame = pd.read_csv(folder / f"{table}.csv")
        else:
            unscaled = {"scaled": False} if table == "diabetes" else {}
            frame = getattr(datasets, f"load_{table}")(as_frame=True, **unscaled).frame
        frame = frame.assign(**{"male": frame["sex"] == "male"} if table == "insurance" else {})
        if table == "diabetes":
            frame = frame.assign(**{"second sex": frame["sex"] - 1})
        low, high = np.array(list(limits.values()), float).T
        x = np.clip((2 * frame[list(limits)].to_numpy(float) - low - high) / (high - low), -1, 1)
        y = response(frame).to_numpy(float)
        indicators = (np.abs(x) == 1).all(axis=0)
        known.append(Question(name, x, y, maximum_likelihood(x, y), indicators))
    return known


def released(
    rng: np.random.Generator, question: Question, n: int, epsilon: float, trials: int, law: str
) -> GeneralizedProblem:
    """Return a problem whose groups are releases of samples of a table."""
    d = question.x.shape[1]
    order = order_of(question.indicators)
    problem = simulate.empty_problem("logistic", d, np.full(trials, n), epsilon, law)
    sums, response = [], []
    for _ in range(trials):
        rows = rng.integers(0, len(question.y), n)
        first, second = simulate.sums_of(question.x[rows][:, order], question.y[rows], 1.0)
        sums.append(first + rng.laplace(0, problem.noise_scale, len(first)))
        response.append(second + rng.laplace(0, problem.noise_scale, len(second)))
    return replace(
        problem, order=order, indicators=question.indicators[order], covariates=np.array(sums),
        response=np.array(response),
    )  # fmt: skip


def auc(score: np.ndarray, y: np.ndarray) -> float:
    """Return the area under the receiver's curve."""
    place, positive = rankdata(score), y > 0
    many, rest = positive.sum(), (~positive).sum()
    return float((place[positive].sum() - many * (many + 1) / 2) / (many * rest))


def _log_loss(t: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, t) - y * t))


def study(args: argparse.Namespace, methods: Mapping[str, Run]) -> Iterator[dict[str, Any]]:
    """Yield a row per question and law, then one of the draws of both laws together."""
    for question in questions(args.data):
        if args.only and args.only not in question.name:
            continue
        drawn, shifted = {}, np.zeros(args.trials)
        laws = ("box", "normal") if args.both and args.method == "clt" else ("box",)
        for law in laws:
            rng = np.random.default_rng(args.seed)
            problem = released(rng, question, args.n, args.epsilon, args.trials, law)
            begin = time.perf_counter()
            post = methods[args.method](problem, args.seed, 4, args.draws, None)
            names = (*post.x, "intercept")
            drawn[law] = np.stack([post.draws[c].reshape(args.trials, -1) for c in names])
            if post.shape_shift:
                shifted = np.max([post.shape_shift[c] for c in post.x], axis=0)
            yield _row(args, question, law, drawn[law], {
                "unconverged": len(post.unconverged), "shift_above_1": float((shifted > 1).mean()),
                "cautions": list(post.cautions), "seconds": round(time.perf_counter() - begin, 1),
            })  # fmt: skip
        if len(laws) > 1:
            yield _row(args, question, "both", np.concatenate(list(drawn.values()), axis=2), {})


def _row(
    args: argparse.Namespace, question: Question, law: str, draws: np.ndarray,
    more: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    low, high = np.quantile(draws, [0.025, 0.975], axis=2)
    truth = question.truth[:, None]
    mean = np.median(draws, axis=2)
    best = auc(question.x @ question.truth[:-1], question.y)
    whole = np.column_stack([question.x, np.ones(len(question.y))])
    loss = [_log_loss(whole @ m, question.y) for m in mean.T]
    lost = [best - auc(question.x @ m[:-1], question.y) for m in mean.T]
    least = _log_loss(whole @ question.truth, question.y)
    return {
        "table": question.name, "n": args.n, "epsilon": args.epsilon, "law": law,
        "method": args.method, "trials": args.trials, "seed": args.seed,
        "coverage": np.mean((low <= truth) & (truth <= high), axis=1).round(3).tolist(),
        "bias_in_sd": np.mean((mean - truth) / draws.std(axis=2), axis=1).round(2).tolist(),
        "slopes_per_sd": (question.truth[:-1] * question.x.std(axis=0)).round(2).tolist(),
        "auc": round(best, 4), "auc_lost": round(float(np.mean(lost)), 4),
        "log_loss": round(least, 4), "log_loss_more": round(float(np.mean(loss)) - least, 4),
        **more,
    }  # fmt: skip

"""Fig. 4 (thesis 5.9): predictive coverage on real data, wine drinking and cirrhosis deaths.

46 states scaled to [0, 1] (by the data's own extremes, as in the paper, which notes that this step
is not private), 36 to learn from and 10 to predict, many random splits. The text prints no ε.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.regression_paper.pictures import SENSITIVITIES, style
from experiments.regression_paper.tables import WAYS, release, sums
from experiments.reproduce.canvas import grid, legend_beside
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore
from noisewise import datasets, diagnostics
from noisewise.inference import methods
from noisewise.models.linear_regression.problem import default_covariates
from noisewise.priors import NormalInverseGamma

PRIOR = NormalInverseGamma([1, 0], np.diag([0.25, 0.25]), 20, 0.5)
LEVELS = (0.5, 0.9)
SHOWN = ("non-private", "naive", "gibbs-noisy", "gibbs-update", "exact")
LEARN = 36


def scaled() -> tuple[np.ndarray, np.ndarray]:
    """Wine and death rate, each from 0 to 1."""
    table = datasets.cirrhosis()
    columns = (np.asarray(table[c], float) for c in ("wine_per_capita", "cirrhosis_death_rate"))
    x, y = ((c - c.min()) / (c.max() - c.min()) for c in columns)
    return x, y


def predicted(
    method: str, sensitivity: str, epsilon: float, settings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Coverage of the held-out points, all splits in one batch."""
    x, y = scaled()
    splits, seed = settings["splits"], settings["seed"]
    rng = np.random.default_rng([seed, 0])
    order = np.stack([rng.permutation(len(x)) for _ in range(splits)])
    learn, held = order[:, :LEARN], order[:, LEARN:]
    way = WAYS[sensitivity]
    group = np.repeat(np.arange(splits), LEARN)
    exact = sums(way.boxed(x[learn].ravel()), way.boxed(y[learn].ravel()), group, splits)
    noise = np.random.default_rng([seed, round(1000 * epsilon), *sensitivity.encode()])
    problem = release(
        noise, way, exact, epsilon, PRIOR, default_covariates(WAYS["ours"].units),
        monomials=method == "gibbs-noisy", private=method != "non-private",
    )  # fmt: skip
    run = methods("linear-regression")["naive" if method == "non-private" else method]
    post: Any = run(problem, seed, settings["chains"], settings["draws"], None)
    slope, intercept, variance = (
        post.draws[c].reshape(splits, 1, -1) for c in ("x", "intercept", "sigma2")
    )
    white = np.random.default_rng([seed, 1]).standard_normal((*held.shape, slope.shape[2]))
    line = slope * x[held][..., None] + intercept
    draws = line + np.sqrt(variance) * white
    flat, truth = draws.reshape(-1, draws.shape[2]), y[held].ravel()
    rows = []
    for level in LEVELS:
        found = diagnostics.coverage(flat, truth, level)
        rows.append({"level": level, "coverage": found.share, "width": found.width})
    ess = float(np.median(np.min(list(post.ess.values()), axis=0)))
    log_density = -0.5 * (
        np.log(2 * np.pi * variance) + (y[held][..., None] - line) ** 2 / variance
    )
    score = diagnostics.log_predictive(log_density.reshape(-1, draws.shape[2]).T)
    return [{**row, "ess": ess, "log_predictive": score, "points": len(truth)} for row in rows]


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """One row per method, sensitivity, ε and level."""
    rows = []
    for sensitivity in WAYS:
        for epsilon in settings["epsilons"]:
            for method in SHOWN:
                key = {"method": method, "sensitivity": sensitivity, "epsilon": epsilon}
                rows += trials.cell(
                    key, lambda m=method, s=sensitivity, e=epsilon: predicted(m, s, e, settings)
                )
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame) -> Any:
    """Coverage against ε, by level and sensitivity."""
    points = int(table["points"].iloc[0])
    caption = (
        f"{points} held-out points over random splits of 46 states, {LEARN} to learn from; prior "
        "NIG([1, 0], diag(.25, .25), 20, .5). Non-private sees the exact sums."
    )
    title = "Predictive coverage: wine drinking and cirrhosis deaths"
    figure, axes = grid(2, 2, title, caption, width=3.6, sharey="row")
    for line, level in zip(axes, LEVELS, strict=True):
        for axis, noise in zip(line, SENSITIVITIES, strict=True):
            some = table[(table["level"] == level) & (table["sensitivity"] == noise)]
            axis.axhline(level, color="grey", ls="--", lw=1)
            for method in SHOWN:
                one = some[some["method"] == method]
                axis.plot(one["epsilon"], one["coverage"], **style(method))
            axis.set(xscale="log", ylim=(0, 1.03))
            axis.set_xlabel("privacy budget ε", fontsize=9)
            axis.set_title(SENSITIVITIES[noise], fontsize=8.5)
        line[0].set_ylabel(f"share of {level:.0%} predictive\nintervals that cover", fontsize=9)
    legend_beside(figure)
    return figure


def measure(table: pd.DataFrame) -> dict[str, float]:
    """How far coverage is from its level, on average over ε and levels."""
    found: dict[str, float] = {}
    off = table.assign(off=(table["coverage"] - table["level"]).abs())
    for (method, noise), some in off.groupby(["method", "sensitivity"]):
        told = f"{method}, {noise}"
        found[f"off level: {told}"] = float(some["off"].mean())
        found[f"furthest off level: {told}"] = float(some["off"].max())
        honest = off[(off["method"] == "non-private") & (off["sensitivity"] == noise)]
        both = some.merge(honest, on=["epsilon", "level"])
        apart = (both["coverage_x"] - both["coverage_y"]).abs()
        found[f"coverage apart from non-private: {told}"] = float(apart.mean())
        found[f"furthest from non-private: {told}"] = float(apart.max())
        for epsilon, at in apart.groupby(both["epsilon"]):
            found[f"apart from non-private at ε = {epsilon:g}: {told}"] = float(at.max())
        found[f"least coverage above level: {told}"] = float(
            (some["coverage"] - some["level"]).min()
        )
        score = some["log_predictive"].mean()
        naive = off[(off["method"] == "naive") & (off["sensitivity"] == noise)]
        found[f"log predictive: {told}"] = float(score)
        found[f"log predictive above naive's: {told}"] = float(
            score - naive["log_predictive"].mean()
        )
    return found


FIGURE = Figure(
    "regression-4", "regression paper", "Predictive coverage on the cirrhosis table", run, draw,
    measure,
)  # fmt: skip

"""Figure B.1: the first 500 sweeps of the Gibbs sampler at n = 1000, ε = 0.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy import stats

from experiments.exponential_families.simulate import MODELS, Trials, simulate
from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore
from experiments.thesis_families.cells import WORDS
from noisewise.models.exponential_family import exact, gibbs, truncation
from noisewise.models.exponential_family.gibbs import GibbsState

SHOWN = ("bernoulli", "exponential")
ENDS = (0.01, 0.99)
"""Chains start at these quantiles of the prior (the thesis does not say where)."""
VICINITY = 4.0
"""Deviations of the exact posterior (half its middle 68 %) around the truth."""


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Model, chain, sweep: the parameter; beside it the truth and the exact posterior's sd."""
    rows: list[Mapping[str, Any]] = []
    for model in SHOWN:
        rows += trials.cell({"model": model}, lambda m=model: traced(settings, m))
    return pd.DataFrame(rows)


def traced(settings: Mapping[str, Any], model: str) -> list[Mapping[str, Any]]:
    """One release, its chains from far apart."""
    given = simulate(model, 1, settings["n"], settings["epsilon"], "drop", settings["seed"])
    spread = exact.run(given.problem, settings["seed"], 4, 1000)
    low, high = np.quantile(next(iter(spread.draws.values())), [0.16, 0.84])
    theta = chains(given, model, settings)
    return [
        {
            "model": WORDS[model],
            "chain": c,
            "sweep": t,
            "value": float(v),
            "truth": float(given.truth[0, 0]),
            "sd": float(high - low) / 2,
        }
        for c, line in enumerate(theta)
        for t, v in enumerate(line)
    ]


def chains(given: Trials, model: str, settings: Mapping[str, Any]) -> np.ndarray:
    """θ (chain, sweep), the start included."""
    problem, count = given.problem, settings["chains"]
    first = np.resize(quantiles(problem.prior, model), count)
    law = problem.scale**2 * jnp.ones((1, count, 1))
    none = jnp.zeros((1, count))
    state = GibbsState(jnp.asarray(first)[None, :, None], 2 * law, none, none)
    group, key = gibbs.group_data(problem, slice(None)), jax.random.key(settings["seed"])
    found = [first[:, None]]
    for block in range(-(-settings["sweeps"] // gibbs.DRAWS_PER_CALL)):
        state, theta = gibbs.advance(
            MODELS[model].family, truncation.joint_moments, problem.mechanism,
            jax.random.fold_in(key, block), state, group, jnp.asarray(1),
        )  # fmt: skip
        found.append(np.asarray(theta)[:, 0, :, 0].T)
    return np.concatenate(found, axis=1)[:, : settings["sweeps"] + 1]


def quantiles(prior: Any, model: str) -> np.ndarray:
    """Of the prior, where chains start."""
    if model == "bernoulli":
        return np.asarray(stats.beta(prior.alpha, prior.beta).ppf(ENDS))
    return np.asarray(stats.gamma(prior.shape, scale=1 / prior.rate).ppf(ENDS))


def measure(table: pd.DataFrame) -> dict[str, float]:
    """When each chain first comes near the truth, and how much of the rest it stays there."""
    near = (table["value"] - table["truth"]).abs() <= VICINITY * table["sd"]
    marked = table.assign(near=near)
    first, stays = [], []
    for _, chain in marked.groupby(["model", "chain"]):
        inside = chain["near"].to_numpy()
        arrived = int(inside.argmax()) if inside.any() else len(inside)
        first.append(arrived)
        stays.append(float(inside[arrived:].mean()) if inside.any() else 0.0)
    return {"sweeps_until_near_worst": float(max(first)), "share_near_after_least": min(stays)}


def draw(table: pd.DataFrame) -> Any:
    """One panel per model; the truth dashed."""
    caption = (
        "n = 1000, ε = 0.1; one release each; chains start at the 1 % and 99 % points of the prior."
        f" Dashed: the truth; grey: ± {VICINITY:g} standard deviations of the exact posterior."
    )
    title = "The Gibbs sampler's first sweeps (thesis Fig. B.1)"
    figure, axes = grid(1, 2, title, caption, width=4.4)
    for axis, (model, own) in zip(axes[0], table.groupby("model", sort=False), strict=True):
        truth, sd = own["truth"].iloc[0], own["sd"].iloc[0]
        axis.axhspan(truth - VICINITY * sd, truth + VICINITY * sd, color="#dddddd", lw=0)
        for number, (_, chain) in enumerate(own.groupby("chain"), start=1):
            axis.plot(chain["sweep"], chain["value"], lw=0.9, label=f"chain {number}")
        axis.axhline(truth, color="black", ls="--", lw=1.2)
        name = "probability" if model == "binomial" else "rate"
        axis.set(title=str(model), xlabel="sweep", ylabel=f"sampled {name}")
    return figure


FIGURE = Figure(
    "families-b.1", "thesis_families", "First sweeps of the Gibbs sampler", run, draw, measure
)

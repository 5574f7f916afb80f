"""Figure 3.1: mean squared error of learned marginals by population size, naive MLE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.graphical_models import dpsgd
from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.reproduce.looks import legend
from experiments.reproduce.store import TrialStore
from experiments.thesis_graphical import setups
from noisewise.models.graphical_model import maximum_likelihood
from noisewise.models.graphical_model.structure import Structure

COLOURS = ("#a33b3b", "#d1793b", "#1f6f8b", "#5b8c5a")
LAMBDA = 1e-7
"""So small that at N = 10⁷ it does not show."""
SENSITIVITIES = {1: "noise as printed, |C|/ε", 2: "noise 2|C|/ε (E3)"}


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """N, epsilon, sensitivity, trial: squared error of y/N, of the learnt model, and predicted."""
    return setups.every(settings, trials, errors)


def errors(settings: Mapping[str, Any], n: int, trial: int) -> list[dict[str, Any]]:
    """One population, every ε."""
    setup = setups.of(settings, "chain", trial, n)
    mu = np.concatenate([m.ravel() for m in setup.true.clique_marginals().values()])
    replaced = moved_by_replacing(setup.true.structure)
    found = []
    for epsilon in settings["epsilons"]:
        for moved in SENSITIVITIES:
            problem = setup.released(epsilon, moved)
            found.append(
                {
                    "epsilon": epsilon,
                    "moved": moved,
                    "moved_by_replacing": replaced,
                    "released": float(np.mean((problem.y / n - mu) ** 2)),
                    "learnt": setup.mse(maximum_likelihood.run(problem, LAMBDA)),
                    "predicted": float(np.mean(mu * (1 - mu)) / n + 2 * (problem.scale / n) ** 2),
                    "sampling": float(np.mean(mu * (1 - mu)) / n),
                }
            )
    return found


def moved_by_replacing(model: Structure) -> float:
    """L1 distance of all tables when one record is replaced, as a multiple of |C|."""
    two = dpsgd.features(model, {v: np.array([0, 1]) for v in model.variables}).toarray()
    return float(np.abs(two[0] - two[1]).sum()) / len(model.cliques)


def slope(table: pd.DataFrame, column: str) -> pd.Series:
    """On log axes, between neighbouring sizes; indexed by the larger one."""
    mean = table.groupby("n")[column].mean()
    return np.log(mean).diff() / np.log(mean.index.to_series()).diff()


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Slopes for the thesis' noise; where the privacy term is the larger one at the largest N."""
    printed = table[table["moved"] == 1]
    low, high = printed["epsilon"].min(), printed["epsilon"].max()
    quiet, loud = printed[printed["epsilon"] == high], printed[printed["epsilon"] == low]
    last = loud[loud["n"] == loud["n"].max()]
    ratio = (printed["released"] / printed["predicted"]).groupby([printed["n"], printed["epsilon"]])
    both = table.pivot_table(index=["n", "epsilon"], columns="moved", values="released")
    at_loudest = both.xs(low, level="epsilon")
    learnt = printed.groupby(["n", "epsilon"])[["learnt", "predicted"]].mean()
    off: Any = np.log(learnt["learnt"] / learnt["predicted"])
    return {
        "learnt_over_predicted_worst": float(np.exp(off.iloc[off.abs().argmax()])),
        "learnt_over_predicted_last": float(np.exp(off.iloc[-1])),
        "printed_epsilon_ratio": float(table["moved_by_replacing"].max()),
        "prediction_off_most": float((ratio.mean() - 1).abs().max()),
        "loud_released_slope_last": float(slope(loud, "released").iloc[-1]),
        "loud_learnt_slope_last": float(slope(loud, "learnt").iloc[-1]),
        "quiet_learnt_slope_last": float(slope(quiet, "learnt").iloc[-1]),
        "loud_privacy_share_last": float(1 - (last["sampling"] / last["predicted"]).mean()),
        "error_of_e3_noise_ratio": float((at_loudest[2] / at_loudest[1]).mean()),
    }


def draw(table: pd.DataFrame) -> Any:
    """One panel for each sensitivity."""
    caption = (
        "First-order chain, 10 nodes of 10 states. Lines: marginals of the model learnt by naive "
        "MLE; dotted: predicted error of the noisy tables themselves (eq. 3.4); black: slopes of "
        "1/N and 1/N². Learning cannot do worse than the simplex allows, so errors level off."
    )
    title = "Squared error of learned marginals by population size (thesis Fig. 3.1)"
    figure, axes = grid(1, 2, title, caption, sharey=True, width=4.0, height=3.4)
    for axis, (moved, words) in zip(axes[0], SENSITIVITIES.items(), strict=True):
        own = table[table["moved"] == moved]
        for colour, (epsilon, group) in zip(COLOURS, own.groupby("epsilon"), strict=False):
            mean = group.groupby("n")[["learnt", "predicted"]].mean()
            axis.plot(
                mean.index, mean["learnt"], "o-", ms=4, color=colour, label=f"ε = {epsilon:g}"
            )
            axis.plot(mean.index, mean["predicted"], ":", color=colour)
        ends = np.array([mean.index.min() * 3, mean.index.max()], float)
        for power, start in ((1, 2e-6), (2, 4e-4)):
            axis.plot(ends, start * (ends / ends[0]) ** -power, "k--", lw=1)
            axis.annotate(
                f"1/N{'²' if power == 2 else ''}", (1.1 * ends[0], 1.1 * start), fontsize=8
            )
        axis.set(xscale="log", yscale="log", title=words, xlabel="population size N")
    axes[0, 0].set_ylabel("mean squared error")
    legend(figure, axes)
    return figure


FIGURE = Figure(
    "graphical-3.1", "thesis_graphical", "Error of naive MLE by population size", run, draw, measure
)

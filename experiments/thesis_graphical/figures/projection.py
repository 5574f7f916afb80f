"""Figure 3.2: what projecting noisy tables onto the simplex does for naive MLE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from experiments.graphical_models import baselines
from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.reproduce.looks import legend
from experiments.reproduce.store import TrialStore
from experiments.thesis_graphical import setups
from noisewise.models.graphical_model import maximum_likelihood

LOOKS = {"projected": ("#8a5a83", "^-"), "as released": ("#a33b3b", "x--")}


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """N, trial, tables: KL(truth‖model)."""
    return setups.every(settings, trials, compared)


def compared(settings: Mapping[str, Any], n: int, trial: int) -> list[dict[str, Any]]:
    """One release, learnt from both ways."""
    setup = setups.of(settings, "erdos-renyi", trial, n)
    problem = setup.released(settings["epsilon"])
    raw = baselines.matched(problem, problem.y / n, settings["lam"])
    return [
        {"tables": name, "kl": setup.true.kl(model), "mse": setup.mse(model), **_words(settings)}
        for name, model in (
            ("projected", maximum_likelihood.run(problem, settings["lam"])),
            ("as released", raw),
        )
    ]


def _words(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: settings[key] for key in ("epsilon", "lam", "states")}


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Divergence without over with projection, cell by cell."""
    both = table.pivot_table(index=["n", "trial"], columns="tables", values="kl")
    ratio = (both["as released"] / both["projected"]).groupby("n").median()
    return {
        "gain_least": float(ratio.min()),
        "gain_median": float(ratio.median()),
        "gain_at_smallest": float(ratio.iloc[0]),
    }


def draw(table: pd.DataFrame) -> Any:
    """Two lines."""
    first = table.iloc[0]
    caption = (
        f"Erdős–Rényi graphs, 10 nodes of {first['states']} states, ε = {first['epsilon']:g}, "
        f"λ = {first['lam']:g}; points: {table['trial'].nunique()} trials, line: their median. "
        "Noise 2|C|/ε (E3)."
    )
    title = "Naive MLE with and without projection (thesis Fig. 3.2)"
    figure, axes = grid(1, 1, title, caption, width=7.0, height=3.4)
    axis = axes[0, 0]
    for name, (colour, line) in LOOKS.items():
        own = table[table["tables"] == name]
        median = own.groupby("n")["kl"].median()
        axis.plot(median.index, median, line, color=colour, label=name)
        axis.plot(own["n"], own["kl"], ".", color=colour, ms=4, alpha=0.6)
    axis.set(xscale="log", yscale="log", xlabel="population size N", ylabel="KL(truth‖model), nats")
    legend(figure, axes)
    return figure


FIGURE = Figure(
    "graphical-3.2", "thesis_graphical", "Projection of noisy tables", run, draw, measure
)

"""Figure 4.4: MMD² between each private posterior and the non-private one, by n and ε."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.reproduce.figure import Figure
from experiments.reproduce.looks import named, panels, style
from experiments.reproduce.store import TrialStore
from experiments.thesis_families.cells import COMPARED, SHOWN, study


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Model, n, epsilon, method: mean MMD² over trials, with its standard error."""
    table = pd.DataFrame(study(settings, trials))
    shown = table[table["method"].isin(COMPARED) & table["model"].isin(SHOWN)]
    return shown[["model", "n", "epsilon", "method", "trials", "mmd2", "error"]]


def measure(table: pd.DataFrame) -> dict[str, float]:
    """The largest excess over naive, in standard errors of the difference (taken as independent).

    The comparison is over cells: at most 3 standard errors, a false alarm in 1 of 100 runs.
    """
    bounded = table[table["model"] != "exponential"]
    cells = bounded.pivot_table(
        index=["model", "n", "epsilon"], columns="method", values=["mmd2", "error"]
    )

    def excess(method: str) -> pd.Series:
        error = np.hypot(cells["error"][method], cells["error"]["naive"])
        return (cells["mmd2"][method] - cells["mmd2"]["naive"]) / error

    other = table[table["model"] == "exponential"].pivot_table(
        index=["n", "epsilon"], columns="method", values="mmd2"
    )
    wins = (other["gibbs"] < other["naive, untruncated"]).mean()
    ratio = cells["mmd2"]["gibbs"] / cells["mmd2"]["naive"]
    return {
        "gibbs_excess_worst": float(excess("gibbs").max()),
        "exact_excess_worst": float(excess("exact").max()),
        "gibbs_ratio_median": float(ratio.median()),
        "cheating_naive_loses": float(wins),
    }


def draw(table: pd.DataFrame) -> Any:
    """A panel for each model and ε, lower is better."""
    caption = (
        f"Mean over {int(table['trials'].iloc[0])} trials, bars of two standard errors; standard "
        "normal kernel. The exponential panels (which the thesis does not show) compare with a "
        "naive method that sees the untruncated sum and is not private."
    )

    def plot(axis: Any, method: str, own: pd.DataFrame) -> None:
        axis.errorbar(own["n"], own["mmd2"], 2 * own["error"], capsize=2, **style(method))

    figure, axes = panels(
        table, ("epsilon", sorted(table["epsilon"].unique())), ("model", SHOWN), plot,
        lambda epsilon, model: f"{model}, ε = {epsilon:g}",
        "Distance to the non-private posterior, MMD² (thesis Fig. 4.4)", caption, sharex=True,
    )  # fmt: skip
    for axis in axes.flat:
        axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
    named(axes, "number of records n", "MMD² (lower is better)")
    return figure


FIGURE = Figure(
    "families-4.4", "thesis_families", "Utility by number of records", run, draw, measure,
    study="families",
)  # fmt: skip

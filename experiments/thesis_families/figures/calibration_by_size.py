"""Figure 4.2: Kolmogorov-Smirnov distance of the truth's ranks, by n, ε and model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.reproduce.figure import Figure
from experiments.reproduce.looks import named, panels, style
from experiments.reproduce.store import TrialStore
from experiments.thesis_families.cells import HALF_CUT, INFORMED_OPS, OPS, SHOWN, study
from noisewise.diagnostics import ks, ks_limit

FEW = 10
"""Records: too few for a central limit theorem."""


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Model, n, epsilon, method: KS distance and 95 % coverage of the first parameter."""
    table = pd.DataFrame(study(settings, trials))
    table["ks"] = [ks(np.array(r)).statistic for r in table["rank"]]
    shown = table[table["method"] != INFORMED_OPS]
    return shown[["model", "n", "epsilon", "method", "trials", "ks", "coverage"]]


def measure(table: pd.DataFrame) -> dict[str, float]:
    """√M times the distance has one law for every number of trials M (1.36 at 5 %, 2.0 at 1/2000).

    So the largest of 24 cells is compared with 2.07: a false alarm in 1 of 100 runs.
    """
    table = table.assign(root=np.sqrt(table["trials"]) * table["ks"])
    cut = table[table["model"] == HALF_CUT].set_index("method")["coverage"]
    table = table[table["model"] != HALF_CUT]
    few = table["n"] == FEW
    loud = (table["n"] <= 100) & (table["epsilon"] == table["epsilon"].min())
    naive = table["method"].str.startswith("naive")
    quiet = (table["n"] == table["n"].max()) & (table["epsilon"] == table["epsilon"].max())

    def largest(method: str, where: Any = True) -> float:
        return float(table.loc[(table["method"] == method) & where, "root"].max())

    return {
        "exact_worst": largest("exact"),
        "gibbs_worst": largest("gibbs"),
        "gibbs_enough_records_worst": largest("gibbs", ~few),
        "gibbs_few_records_coverage": float(
            table.loc[(table["method"] == "gibbs") & few, "coverage"].min()
        ),
        "exact_few_records_coverage": float(
            table.loc[(table["method"] == "exact") & few, "coverage"].min()
        ),
        "printed_worst": largest("gibbs as printed"),
        "printed_half_cut_coverage": float(cut["gibbs as printed"]),
        "corrected_half_cut_coverage": float(cut["gibbs"]),
        "non_private_worst": largest("non-private"),
        "naive_loud_least": float(table.loc[naive & loud, "ks"].min()),
        "naive_binomial_quiet": float(
            table.loc[naive & quiet & (table["model"] == "binomial"), "root"].max()
        ),
        "naive_gain": float(table.loc[naive & loud, "ks"].min())
        - float(table.loc[naive & quiet, "ks"].mean()),
        "ops_coverage_most": float(table.loc[table["method"] == OPS, "coverage"].max()),
    }


def draw(table: pd.DataFrame) -> Any:
    """A panel for each model and ε."""
    table = table[table["model"] != HALF_CUT]
    count = int(table["trials"].iloc[0])
    caption = (
        f"{count} trials per point; truths from the prior. Grey: where a calibrated method stays "
        "in 95 % of cells. Exponential: middle 95 % of records kept; the naive method sees the "
        "untruncated sum (not private)."
    )

    def plot(axis: Any, method: str, own: pd.DataFrame) -> None:
        axis.plot(own["n"], own["ks"], **style(method))

    figure, axes = panels(
        table, ("epsilon", sorted(table["epsilon"].unique())), ("model", SHOWN), plot,
        lambda epsilon, model: f"{model}, ε = {epsilon:g}",
        "Calibration: distance of the truth's ranks from uniform (thesis Fig. 4.2)", caption,
        sharey=True,
    )  # fmt: skip
    for axis in axes.flat:
        axis.axhspan(0, ks_limit(count), color="#dddddd", lw=0, zorder=0)
        axis.set(ylim=(0, 0.62))
    named(axes, "number of records n", "Kolmogorov-Smirnov distance")
    return figure


FIGURE = Figure(
    "families-4.2", "thesis_families", "Calibration by number of records", run, draw, measure,
    study="families",
)  # fmt: skip

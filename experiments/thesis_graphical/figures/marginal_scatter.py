"""Figure 3.5: true against inferred edge marginals of one random graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.graphical_models import baselines
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore
from experiments.sheet import sheet
from experiments.thesis_graphical import setups
from noisewise.infer.graphical import cgm, naive


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Method, cell: true and inferred probability."""
    return pd.DataFrame(trials.cell({"graph": "erdos-renyi"}, lambda: inferred(settings)))


def inferred(settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """One population, one release."""
    n, epsilon = settings["n"], settings["epsilon"]
    setup = setups.of(settings, "erdos-renyi", 0, n)
    problem = setup.released(epsilon)
    models = {
        "non-private": baselines.matched(problem, setup.exact / n, naive.LAMBDA),
        "cgm": cgm.run(problem),
        "naive": naive.run(problem),
    }
    truth = setup.true.clique_marginals()
    return [
        {
            "method": method, "true": float(t), "inferred": float(v), "n": n, "epsilon": epsilon,
            "states": settings["states"],
        }
        for method, model in models.items()
        for clique, table in model.clique_marginals().items()
        for t, v in zip(truth[clique].ravel(), table.ravel(), strict=True)
    ]  # fmt: skip


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Mean absolute errors of all cells, and of naive's zeros."""
    error = (table["inferred"] - table["true"]).abs().groupby(table["method"]).mean()
    cells = {m: own["inferred"].to_numpy() for m, own in table.groupby("method")}
    to_private = {
        m: float(np.abs(cells[m] - cells["non-private"]).mean()) for m in ("cgm", "naive")
    }
    gone = table[(table["method"] == "naive") & (table["inferred"] < 1e-6)]
    return {
        "cgm_error_over_naive": float(error["cgm"] / error["naive"]),
        "cgm_to_non_private_over_naive": to_private["cgm"] / to_private["naive"],
        "naive_vanished_share": len(gone) / len(cells["naive"]),
        "cgm_vanished_share": float((cells["cgm"] < 1e-6).mean()),
    }


def draw(table: pd.DataFrame) -> Any:
    """A panel for each method, on the scale of fourth roots: rare cells show."""
    first = table.iloc[0]
    caption = (
        f"An Erdős–Rényi graph of 10 nodes, {first['states']} states; N = {int(first['n']):,}, "
        f"ε = {first['epsilon']:g}, noise 2|C|/ε (E3), naive λ = 1e-5. A dot is one cell of one "
        "edge's table; axes by fourth roots, so that rare cells can be seen."
    )
    title = "True and inferred edge marginals (thesis Fig. 3.5)"
    names = list(table["method"].unique())
    figure, axes = sheet(1, len(names), title, caption, sharey=True, sharex=True, height=3.4)
    top = float(table[["true", "inferred"]].to_numpy().max()) * 1.05
    for axis, (method, own) in zip(axes[0], table.groupby("method", sort=False), strict=True):
        axis.plot(own["true"] ** 0.25, own["inferred"].clip(0) ** 0.25, ".", ms=2, color="#1f6f8b")
        axis.plot([0, top**0.25], [0, top**0.25], "k--", lw=1)
        ticks = [t for t in (0, 1e-4, 1e-3, 1e-2, 0.1) if t < top]
        axis.set(xlabel="true probability", title=str(method))
        axis.set_xticks([t**0.25 for t in ticks], [f"{t:g}" for t in ticks], fontsize=8)
        axis.set_yticks([t**0.25 for t in ticks], [f"{t:g}" for t in ticks], fontsize=8)
    axes[0, 0].set_ylabel("inferred probability")
    return figure


FIGURE = Figure(
    "graphical-3.5", "thesis_graphical", "True and inferred marginals", run, draw, measure
)

"""Figure 3.5: true against inferred edge marginals of one random graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.graphical_models import baselines
from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore
from experiments.thesis_graphical import setups
from noisewise.models.graphical_model import collective_em, maximum_likelihood

GONE = 1e-6
"""A probability that has vanished."""
TICKS = (0.0, 1e-4, 1e-3, 1e-2, 0.1)
DOTS = {"ms": 2, "color": "#1f6f8b"}


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Method, cell: true and inferred probability."""
    rows: list[Mapping[str, Any]] = []
    for n in settings["sizes"]:
        rows += trials.cell({"n": n}, lambda n=n: inferred(settings, n))
    return pd.DataFrame(rows)


def inferred(settings: Mapping[str, Any], n: int) -> list[Mapping[str, Any]]:
    """One population, one release."""
    epsilon = settings["epsilon"]
    setup = setups.of(settings, "erdos-renyi", 0, n)
    problem = setup.released(epsilon)
    models = {
        "non-private": baselines.matched(
            problem, setup.exact / n, maximum_likelihood.DEFAULT_LAMBDA
        ),
        "cgm": collective_em.run(problem),
        "naive": maximum_likelihood.run(problem),
    }
    truth = setup.true.clique_marginals()
    return [
        {
            "method": method, "true": float(t), "inferred": float(v), "epsilon": epsilon,
            "states": settings["states"],
        }
        for method, model in models.items()
        for clique, table in model.clique_marginals().items()
        for t, v in zip(truth[clique].ravel(), table.ravel(), strict=True)
    ]  # fmt: skip


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Mean absolute errors of all cells at the smallest and the largest N, and naive's zeros."""
    found: dict[str, float] = {}
    for n, name in ((table["n"].min(), "small"), (table["n"].max(), "large")):
        own = table[table["n"] == n]
        error = (own["inferred"] - own["true"]).abs().groupby(own["method"]).mean()
        cells = {m: group["inferred"].to_numpy() for m, group in own.groupby("method")}
        apart = {m: float(np.abs(cells[m] - cells["non-private"]).mean()) for m in ("cgm", "naive")}
        found |= {
            f"{name}_cgm_error_over_naive": float(error["cgm"] / error["naive"]),
            f"{name}_cgm_to_non_private_over_naive": apart["cgm"] / apart["naive"],
            f"{name}_naive_vanished_share": float((cells["naive"] < GONE).mean()),
            f"{name}_cgm_vanished_share": float((cells["cgm"] < GONE).mean()),
        }
    return found


def draw(table: pd.DataFrame) -> Any:
    """A row for each N, a panel for each method."""
    first = table.iloc[0]
    caption = (
        f"An Erdős–Rényi graph of 10 nodes, {first['states']} states; ε = {first['epsilon']:g}, "
        "noise 2|C|/ε (E3), naive λ = 1e-5. A dot is one cell of one edge's table; axes by fourth "
        "roots, so that rare cells can be seen."
    )
    title = "True and inferred edge marginals (thesis Fig. 3.5)"
    names, sizes = list(table["method"].unique()), sorted(table["n"].unique())
    figure, axes = grid(len(sizes), len(names), title, caption, sharey=True, sharex=True)
    top = float(table[["true", "inferred"]].to_numpy().max()) * 1.05
    ticks = [t for t in TICKS if t < top]
    for line, n in zip(axes, sizes, strict=True):
        own = table[table["n"] == n].groupby("method", sort=False)
        for axis, (method, cells) in zip(line, own, strict=True):
            axis.plot(*(cells[c].clip(0) ** 0.25 for c in ("true", "inferred")), ".", **DOTS)
            axis.plot([0, top**0.25], [0, top**0.25], "k--", lw=1)
            axis.set(title=f"{method}, N = {n:,}")
            axis.set_xticks([t**0.25 for t in ticks], [f"{t:g}" for t in ticks], fontsize=8)
            axis.set_yticks([t**0.25 for t in ticks], [f"{t:g}" for t in ticks], fontsize=8)
        line[0].set_ylabel("inferred probability")
    for axis in axes[-1]:
        axis.set_xlabel("true probability")
    return figure


FIGURE = Figure(
    "graphical-3.5", "thesis_graphical", "True and inferred marginals", run, draw, measure
)

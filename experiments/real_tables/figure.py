"""The study as one figure of ``noisewise reproduce``: coverage on real tables, by both priors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.real_tables.study import FACTORS, Row, cell
from experiments.real_tables.tables import questions
from experiments.reproduce.canvas import grid, legend_beside
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Coverage of 95 % intervals on real tables"
COLOURS = {"scale-free": "#1f6f8b", "conjugate": "#d1793b"}
LABELS = {"scale-free": "default", "conjugate": "default of 0.1"}


def long_rows(row: Row) -> list[dict[str, Any]]:
    """Return a row of the study as one row per parameter."""
    q = len(row.visible)
    names = [*(f"slope {i + 1}" for i in range(q - 1)), "intercept", "sigma2"]
    # The intercept needs every covariate, and σ² the response.
    visible = [*row.visible[:-1], all(row.visible[:-1]), row.visible[-1]]
    return [
        {
            "table": row.name, "f": row.f, "prior": row.prior, "parameter": names[i],
            "coverage": row.coverage[i], "width": row.width[i],
            "width over least squares'": row.width[i] / row.least_squares_width[i],
            "visible": bool(visible[i]), "converged": row.converged,
        }
        for i in range(q + 1)
    ]  # fmt: skip


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """All tables that scikit-learn brings, cell by cell."""
    # Loaded here, so that the study runs where pandas is missing.
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for covariates in settings["covariates"]:
        some = [q for q in questions(None) if q.records.shape[1] == covariates + 1]
        for n, epsilon in settings["cells"]:

            def compute(some: Any = some, n: int = n, epsilon: float = epsilon) -> list[Any]:
                made = cell(some, n, epsilon, settings["samples"], settings["seed"])
                return [entry for row in made for entry in long_rows(row)]

            rows += trials.cell({"covariates": covariates, "n": n, "epsilon": epsilon}, compute)
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame) -> Any:
    """A panel for every n and ε: a dot for every coefficient of every table."""
    cells = list(dict.fromkeys(zip(table["n"], table["epsilon"], strict=True)))
    caption = (
        "A dot is one coefficient (or error variance, right) of one table: how often its interval "
        "held the table's own least squares. Upper bounds are f times what an expert would guess."
    )
    figure, axes = grid(len(cells), 2, TITLE, caption, width=3.6, sharey=True)
    for line, (n, epsilon) in zip(axes, cells, strict=True):
        own = table[(table["n"] == n) & (table["epsilon"] == epsilon)]
        variance = own["parameter"] == "sigma2"
        for axis, what, some in ((line[0], "coefficients", own[~variance]),
                                 (line[1], "error variance", own[variance])):  # fmt: skip
            for shift, (prior, colour) in zip((-0.12, 0.12), COLOURS.items(), strict=True):
                dots = some[some["prior"] == prior]
                at = dots["f"].map(dict(zip(FACTORS, range(3), strict=True))) + shift
                axis.plot(at, dots["coverage"], "o", ms=4, alpha=0.6, color=colour,
                          label=LABELS[prior])  # fmt: skip
            axis.axhline(0.95, color="grey", ls=":", lw=1)
            axis.set_xticks(range(3), [f"f = {f}" for f in FACTORS])
            axis.set(ylim=(-0.03, 1.03))
            axis.set_title(f"{what}, n = {n:,}, ε = {epsilon:g}", fontsize=9)
    legend_beside(figure)
    return figure


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Least and mean coverage over cells, convergence, and what the default costs."""
    measures = {}
    for prior in COLOURS:
        own = table[table["prior"] == prior]
        variance = own["parameter"] == "sigma2"
        for what, some in (("coefficients", own[~variance]), ("sigma2", own[variance])):
            measures[f"least coverage of {what}, {prior}"] = float(some["coverage"].min())
            measures[f"mean coverage of {what}, {prior}"] = float(some["coverage"].mean())
        measures[f"converged, {prior}"] = float(own["converged"].mean())
    keys = ["table", "n", "epsilon", "parameter"]
    fitting = table[(table["f"] == 1) & (table["parameter"] != "sigma2")].set_index(keys)
    new, old = (fitting[fitting["prior"] == prior] for prior in COLOURS)
    fair = new["visible"] & (old["coverage"].reindex(new.index) >= 0.9)
    ratio = (new["width"] / old["width"].reindex(new.index))[fair]
    measures["largest width over the default before"] = float(ratio.max() if len(ratio) else np.nan)
    return measures


FIGURE = Figure("real-tables", "ours", TITLE, run, draw, measure)

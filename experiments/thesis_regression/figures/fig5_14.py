"""Fig. 5.14: mean absolute error against the non-private estimate, by ε."""

from __future__ import annotations

from typing import Any

import pandas as pd

from experiments.regression_paper.pictures import SENSITIVITIES
from experiments.regression_paper.study import pick
from experiments.reproduce.canvas import grid, legend_beside
from experiments.reproduce.figure import Figure
from experiments.thesis_regression.casestudy import STUDY, table
from experiments.thesis_regression.figures.shared import PAPER, caption, methods, style
from noisewise.diagnostics import mean_absolute_error

TITLE = "Mean absolute error against the non-private estimate"


def errors(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per method, sensitivity and ε."""
    found = [
        {"method": method, "sensitivity": noise, "epsilon": epsilon,
         "error": mean_absolute_error(some["point"].to_numpy(), some["reference"].to_numpy())}
        for (method, noise, epsilon), some in rows.groupby(["method", "sensitivity", "epsilon"])
    ]  # fmt: skip
    return pd.DataFrame(found)


def draw(rows: pd.DataFrame) -> Any:
    """Low is good."""
    found = errors(rows)
    noises = [s for s in SENSITIVITIES if (found["sensitivity"] == s).any()]
    more = "OI reads its sensitivity from the data: it is not differentially private."
    figure, axes = grid(1, len(noises), TITLE, caption(rows, more), width=3.8, sharey=True)
    for axis, noise in zip(axes[0], noises, strict=True):
        for method in methods(found)[1:]:
            one = pick(found, sensitivity=noise, method=method)
            if len(one):
                axis.plot(one["epsilon"], one["error"], **style(method))
        axis.set(xscale="log", yscale="log", xticks=[1, 2, 4, 8], xlabel="privacy budget ε")
        axis.set_xticklabels(["1", "2", "4", "8"])
        axis.minorticks_off()
        axis.set_title(SENSITIVITIES[noise], fontsize=9)
    axes[0, 0].set_ylabel("mean absolute error of kir", fontsize=9)
    legend_beside(figure)
    return figure


def measure(rows: pd.DataFrame) -> dict[str, float]:
    """Errors at ε = 4, and the largest ratio to naive's and to OI's over ε."""
    found = {}
    every = errors(rows).set_index(["method", "sensitivity", "epsilon"])["error"]
    oi = every[every.index.get_level_values("method").str.startswith("OI")]
    for method, noise in {(m, s) for m, s, _ in every.index}:
        told = f"{method}, {noise}"
        mine = every[method, noise]
        found[f"error at ε = 4: {told}"] = float(mine[4])
        found[f"largest error over naive's: {told}"] = float((mine / every["naive", noise]).max())
        found[f"error at ε = 4 over naive's: {told}"] = float(mine[4] / every["naive", noise][4])
        found[f"error falls by: {told}"] = float(mine.iloc[0] / max(mine.iloc[-1], 1e-12))
        if len(oi):
            found[f"error at ε = 4 over OI's: {told}"] = float(mine[4] / oi.xs(4, level=2).iloc[0])
    return found


FIGURE = Figure("case-study-5.14", PAPER, TITLE, table, draw, measure, STUDY)

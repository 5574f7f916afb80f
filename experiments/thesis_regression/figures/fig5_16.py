"""Fig. 5.16: deciles by private estimate against deciles by the non-private one, at ε = 4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.regression_paper.study import pick
from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore
from experiments.thesis_regression.casestudy import STUDY, table
from experiments.thesis_regression.figures.shared import PAPER, caption
from noisewise.diagnostics import decile_confusion, outer_deciles_kept

TITLE = "Deciles of tracts, private against non-private, ε = 4"
SHOWN = (("naive", "as printed"), ("gibbs-update", "as printed"), ("exact", "as printed"),
         ("exact", "ours"))  # fmt: skip


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Only the budget at which Opportunity Insights releases."""
    return pick(table(settings, trials), epsilon=4)


def confusion(rows: pd.DataFrame, method: str, noise: str) -> np.ndarray:
    """Counts (non-private decile, private decile)."""
    some = pick(rows, method=method, sensitivity=noise)
    return decile_confusion(some["point"].to_numpy(), some["reference"].to_numpy())


def draw(rows: pd.DataFrame) -> Any:
    """Shares of each non-private decile, dark where many are."""
    more = "Each row adds up to 100 %; a perfect ranking has 100 on the diagonal."
    figure, axes = grid(2, 2, TITLE, caption(rows, more), width=4.2, height=3.9)
    for axis, (method, noise) in zip(axes.flat, SHOWN, strict=True):
        counts = confusion(rows, method, noise)
        shares = counts / counts.sum(axis=1, keepdims=True)
        axis.imshow(shares, cmap="Blues", vmin=0, vmax=1, origin="lower")
        for (i, j), share in np.ndenumerate(shares):
            if share >= 0.005:
                look = {"color": "white" if share > 0.55 else "black", "fontsize": 7}
                axis.text(j, i, f"{100 * share:.0f}", ha="center", va="center", **look)
        axis.set_xticks(range(10), labels=range(1, 11))
        axis.set_yticks(range(10), labels=range(1, 11))
        axis.set_title(f"{method}, noise {noise}", fontsize=9)
        axis.set_xlabel("decile by the private estimate", fontsize=8.5)
        axis.set_ylabel("decile by the non-private estimate", fontsize=8.5)
    return figure


def measure(rows: pd.DataFrame) -> dict[str, float]:
    """Shares kept: on the diagonal, and of the outer deciles within the outer two."""
    found = {}
    pairs = rows[["method", "sensitivity"]].drop_duplicates().itertuples(index=False)
    for method, noise in pairs:
        counts = confusion(rows, method, noise)
        low, high = outer_deciles_kept(counts)
        told = f"{method}, {noise}"
        found[f"bottom decile in the bottom two: {told}"] = low
        found[f"top decile in the top two: {told}"] = high
        found[f"fewer of both: {told}"] = min(low, high)
        found[f"on the diagonal: {told}"] = float(np.trace(counts) / counts.sum())
    base = found.get("fewer of both: gibbs-update, as printed")
    if base:
        for told in [k.removeprefix("fewer of both: ") for k in found if k.startswith("fewer")]:
            found[f"fewer of both over gibbs-update's: {told}"] = (
                found[f"fewer of both: {told}"] / base
            )
    return found


FIGURE = Figure("case-study-5.16", PAPER, TITLE, run, draw, measure, STUDY)

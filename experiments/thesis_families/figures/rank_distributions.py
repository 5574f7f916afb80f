"""Figure 4.3: empirical distribution of the truth's ranks at n = 1000, ε = 0.01."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.reproduce.looks import legend, style
from experiments.reproduce.store import TrialStore
from experiments.thesis_families.cells import INFORMED_OPS, OPS, SHOWN, study
from noisewise.diagnostics import ks, uniform_band

N, EPSILON = 1000, 0.01
TAILS = 0.05
EDGE = 0.1
"""One-posterior sampling confines the binomial's p to [0.1, 0.9]."""


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Model, method, trial: the rank of the first parameter, and its true value."""
    table = pd.DataFrame(study(settings, trials))
    own = table[(table["n"] == N) & (table["epsilon"] == EPSILON)]
    kept = own[["model", "method", "rank", "truth", "ks_worst"]]
    return kept.explode(["rank", "truth"], ignore_index=True)


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Calibrated: √M KS at most 1.95 for the largest of three models (false alarm 1 in 1000 each).

    Overconfident: the share of truths in the outer 5 % on either side. Too diffuse: the share in
    the middle half, of truths that the method's support allows.
    """

    def own(method: str) -> Any:
        return table[table["method"] == method].groupby("model")["rank"]

    def largest(method: str) -> float:
        return float(
            own(method).apply(lambda u: np.sqrt(len(u)) * ks(u.to_numpy(float)).statistic).max()
        )

    def in_middle(method: str) -> float:
        allowed = table["truth"].astype(float).between(EDGE, 1 - EDGE)
        u = table.loc[(table["method"] == method) & allowed, "rank"].astype(float)
        return float(u.between(0.25, 0.75).mean())

    categories = table[(table["model"] == "multinomial") & (table["method"] == "gibbs")]
    naive = table[table["method"].str.startswith("naive")].groupby("model")["rank"]
    return {
        "exact_worst": largest("exact"),
        "gibbs_worst": largest("gibbs"),
        "gibbs_all_categories": float(np.sqrt(len(categories)) * categories["ks_worst"].iloc[0]),
        "printed": largest("gibbs as printed"),
        "non_private_worst": largest("non-private"),
        "naive_in_tails_least": float(
            naive.apply(lambda u: ((u < TAILS) | (u > 1 - TAILS)).mean()).min()
        ),
        "ops_in_middle_flat_prior": in_middle(OPS),
        "ops_in_middle": in_middle(INFORMED_OPS),
    }


def draw(table: pd.DataFrame) -> Any:
    """Empirical distribution functions, with the band of a calibrated method."""
    count = int((table["method"] == OPS).sum())
    caption = (
        f"n = {N}, ε = {EPSILON}, {count} trials. Rank: share of draws below the truth. "
        "Grey: where all of a calibrated method's curve "
        "lies with probability 95 %. A curve that rises at both ends is overconfident, one that "
        "rises in the middle too diffuse."
    )
    title = "Ranks of the true parameter in each posterior (thesis Fig. 4.3)"
    figure, axes = grid(1, len(SHOWN), title, caption, sharey=True, height=3.4)
    low, high = uniform_band(count)
    level = np.arange(1, count + 1) / count
    for axis, model in zip(axes[0], SHOWN, strict=True):
        axis.fill_betweenx(level, low, high, color="#dddddd", lw=0)
        for method, group in table[table["model"] == model].groupby("method", sort=False):
            look = {**style(str(method)), "marker": ""}
            axis.step(np.sort(group["rank"]), level, where="post", **look)
        axis.set(title=model, xlabel="rank of the truth", xlim=(0, 1))
    axes[0, 0].set_ylabel("share of trials with a smaller rank")
    legend(figure, axes)
    return figure


FIGURE = Figure(
    "families-4.3", "thesis_families", "Distribution of the truth's ranks", run, draw, measure,
    study="families",
)  # fmt: skip

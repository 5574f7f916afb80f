"""Figure 3.3: naive MLE hangs on λ; learning from true tables does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from experiments.graphical_models import baselines
from experiments.reproduce.canvas import grid
from experiments.reproduce.figure import Figure
from experiments.reproduce.looks import legend, style
from experiments.reproduce.store import TrialStore
from experiments.thesis_graphical import setups
from noisewise.models.graphical_model import collective_em, maximum_likelihood


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Trial, method, λ: KL(truth‖model); ``cgm`` has no λ and one row."""
    rows: list[Mapping[str, Any]] = []
    for trial in range(settings["trials"]):
        rows += trials.cell({"trial": trial}, lambda t=trial: swept(settings, t))
    return pd.DataFrame(rows)


def swept(settings: Mapping[str, Any], trial: int) -> list[dict[str, Any]]:
    """One population and one release."""
    n, epsilon = settings["n"], settings["epsilon"]
    setup = setups.of(settings, "chain", trial, n)
    problem = setup.released(epsilon)
    common = {"n": n, "epsilon": epsilon}
    found = [
        {
            "method": "cgm",
            "lam": float("nan"),
            "kl": setup.true.kl(collective_em.run(problem)),
            **common,
        }
    ]
    for lam in settings["lambdas"]:
        fits = {
            "naive": maximum_likelihood.run(problem, lam),
            "non-private": baselines.matched(problem, setup.exact / n, lam),
        }
        found += [
            {"method": method, "lam": lam, "kl": setup.true.kl(model), **common}
            for method, model in fits.items()
        ]
    return found


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Medians over trials; "broad" is the range of λ within twice the best divergence, in tens."""
    median = table.groupby(["method", "lam"])["kl"].median()
    noisy, true = median["naive"], median["non-private"]

    def decades(curve: pd.Series) -> float:
        good = curve.index[curve <= 2 * curve.min()]
        return float(max(good) / min(good))

    aware = float(table.loc[table["method"] == "cgm", "kl"].median())
    return {
        "noisy_small_over_best": float(noisy.iloc[0] / noisy.min()),
        "noisy_large_over_best": float(noisy.iloc[-1] / noisy.min()),
        "true_small_over_best": float(true.iloc[0] / true.min()),
        "true_large_over_best": float(true.iloc[-1] / true.min()),
        "broad_true_over_noisy": decades(true) / decades(noisy),
        "cgm_over_best": aware / float(noisy.min()),
    }


def draw(table: pd.DataFrame) -> Any:
    """KL by λ, and cgm as a level line."""
    first = table.iloc[0]
    caption = (
        f"First-order chain, 10 nodes of 10 states, N = {int(first['n']):,}, ε = "
        f"{first['epsilon']:g}; medians of {table['trial'].nunique()} trials. cgm has no λ to tune."
    )
    title = "Effect of regularisation on naive MLE (thesis Fig. 3.3)"
    figure, axes = grid(1, 1, title, caption, width=7.0, height=3.4)
    axis = axes[0, 0]
    for method, own in table[table["method"] != "cgm"].groupby("method", sort=False):
        median = own.groupby("lam")["kl"].median()
        axis.plot(median.index, median, **style(str(method)))
    level = table.loc[table["method"] == "cgm", "kl"].median()
    axis.axhline(level, **{**style("cgm"), "marker": ""})
    axis.set(xscale="log", yscale="log", xlabel="λ", ylabel="KL(truth‖model), nats")
    legend(figure, axes)
    return figure


FIGURE = Figure(
    "graphical-3.3", "thesis_graphical", "Regularisation of naive MLE", run, draw, measure
)

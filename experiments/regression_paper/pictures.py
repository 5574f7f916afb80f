"""Pictures of the synthetic study, for either paper and any number of covariates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from experiments.regression_paper.methods import NAMES
from experiments.regression_paper.study import KINDS, pick
from experiments.reproduce.canvas import grid, legend_beside
from noisewise.diagnostics import ks_limit, share_band
from noisewise.plots import rank_ecdf

COLOURS = {
    "non-private": "#000000",
    "naive": "#c0392b",
    "gibbs-noisy": "#d68910",
    "gibbs-prior": "#7d8b2f",
    "gibbs-update": "#2e86c1",
    "mcmc-individual": "#8e44ad",
    "exact": "#117a4b",
}
MARKERS = dict(zip(NAMES, "sXv^oDP", strict=True))
FEWEST = 20
"""Trials without which calibration is not drawn: ranks of eight trials look wrong by chance."""
PARAMETERS = {"slope": "slope", "intercept": "intercept", "variance": "variance σ²"}
SENSITIVITIES = {"as printed": "noise as printed", "ours": "noise ours"}


def style(method: str) -> dict[str, Any]:
    """The same colour and mark in every picture."""
    ours = {"lw": 2.2, "zorder": 5} if method == "exact" else {"lw": 1.2}
    label = "exact (ours)" if method == "exact" else method
    return {"color": COLOURS[method], "marker": MARKERS[method], "ms": 5, "label": label, **ours}


def caption(table: pd.DataFrame, more: str = "") -> str:
    """Trials, and how many effective draws each method had: a median hides a chain that sticks."""
    ess: Any = table.groupby("method")["ess"].agg(["median", "min"])
    told = ", ".join(
        f"{m} {ess.at[m, 'median']:.0f} ({ess.at[m, 'min']:.0f})" for m in NAMES if m in ess.index
    )
    trials = table.groupby("method")["trials"].max()
    few = trials[trials < trials.max()]
    fewer = "".join(
        f" ({', '.join(some.index)}: at most {most})" for most, some in few.groupby(few)
    )
    return (
        f"{trials.max()} trials per cell{fewer}. {more} Noise by the sensitivity printed in the "
        f"paper, or by ours (E1). Effective draws, median and (in the worst cell): {told}."
    )


def curves(
    table: pd.DataFrame, title: str, along: Sequence[tuple[str, str, dict[str, Any]]], column: str,
    label: str,
) -> tuple[Any, Any]:  # fmt: skip
    """A row of panels per sensitivity and axis (column, its name, fixed values), by parameter."""
    noises = [s for s in SENSITIVITIES if (table["sensitivity"] == s).any()]
    rows = [(noise, *axis) for noise in noises for axis in along]
    figure, axes = grid(
        len(rows), 3, title, caption(table, _d(table) + _hidden(table)), sharey=True
    )
    table = table[table["trials"] >= FEWEST]
    for line, (noise, x, words, fixed) in zip(axes, rows, strict=True):
        for axis, kind in zip(line, KINDS, strict=True):
            some = pick(table, sensitivity=noise, kind=kind, **fixed)
            for method in NAMES:
                at = pick(some, method=method).groupby(x)[column].mean()
                if len(at):
                    axis.plot(at.index, at.to_numpy(), **style(method))
            axis.set_xscale("log")
            axis.set_xlabel(words, fontsize=9)
            axis.set_title(f"{PARAMETERS[kind]}, {SENSITIVITIES[noise]}", fontsize=8.5)
        line[0].set_ylabel(label, fontsize=9)
    return figure, axes


def calibration(table: pd.DataFrame, title: str, along: Sequence[Any]) -> Any:
    """KS distance of ranks from uniform: low is honest."""
    label = "distance of ranks\nfrom uniform (KS)"
    figure, axes = curves(table, title, along, "ks", label)
    limit = ks_limit(int(table["trials"].max()))
    for axis in axes.flat:
        axis.axhline(limit, color="grey", ls="--", lw=1, label="chance exceeds it in 5 %")
        axis.set_ylim(bottom=0)
    legend_beside(figure)
    return figure


def covering(table: pd.DataFrame, title: str, along: Sequence[Any]) -> Any:
    """Coverage of 95 % intervals, and what chance allows."""
    figure, axes = curves(table, title, along, "coverage", "share of 95 % intervals\nthat cover")
    low, high = share_band(0.95, int(table["trials"].max()))
    for axis in axes.flat:
        axis.axhspan(low, high, color="#dddddd", lw=0, zorder=0, label="95 % band of chance")
        axis.set_ylim(0, 1.03)
    legend_beside(figure)
    return figure


def qq(table: pd.DataFrame, title: str) -> Any:
    """Ranks against the diagonal, in the band of a calibrated posterior."""
    noises = [s for s in SENSITIVITIES if (table["sensitivity"] == s).any()]
    told = caption(table, _d(table) + _hidden(table))
    figure, axes = grid(len(noises), 3, title, told, height=2.75, width=2.9)
    table = table[table["trials"] >= FEWEST]
    for line, noise in zip(axes, noises, strict=True):
        for axis, kind in zip(line, KINDS, strict=True):
            some = pick(table, sensitivity=noise, kind=kind)
            shown = [m for m in NAMES if (some["method"] == m).any()]
            u = {m: pick(some, method=m)["u"].to_numpy() for m in shown}
            styles = {m: {"color": COLOURS[m]} for m in shown}
            rank_ecdf(u, axis=axis, styles=styles)
            axis.set_title(f"{PARAMETERS[kind]}, {SENSITIVITIES[noise]}", fontsize=8.5)
            axis.xaxis.label.set_size(8)
            axis.yaxis.label.set_size(8)
    legend_beside(figure)
    return figure


def utility(table: pd.DataFrame, title: str, along: Sequence[Any]) -> Any:
    """MMD² to the non-private posterior: low is useful."""
    noises = [s for s in SENSITIVITIES if (table["sensitivity"] == s).any()]
    figure, axes = grid(len(noises), len(along), title, caption(table, _d(table)), sharey=True)
    for line, noise in zip(axes, noises, strict=True):
        for axis, (x, words, fixed) in zip(line, along, strict=True):
            some = pick(table, sensitivity=noise, **fixed)
            for method in NAMES[1:]:
                at = pick(some, method=method).groupby(x)["mmd"].mean()
                if len(at):
                    axis.plot(at.index, at.to_numpy(), **style(method))
            axis.set_xscale("log")
            axis.set_ylim(bottom=0)
            axis.set_xlabel(words, fontsize=9)
            axis.set_title(SENSITIVITIES[noise], fontsize=8.5)
        line[0].set_ylabel("MMD² to the\nnon-private posterior", fontsize=9)
    legend_beside(figure)
    return figure


def running(table: pd.DataFrame, title: str) -> Any:
    """Seconds for one posterior, and effective draws per second."""
    more = (
        "Seconds of a batch over its trials; the fastest cell of each n, so that "
        "compilation does not count; mcmc-individual runs one release after the other."
    )
    figure, axes = grid(1, 2, title, caption(table, more), width=4)
    for method in NAMES:
        some = pick(table, method=method)
        if len(some):
            least = some.groupby("n")["seconds"].min()
            axes[0, 0].plot(least.index, least.to_numpy(), **style(method))
            cell = some.groupby(["n", "epsilon"])
            per = (cell["ess"].min() / cell["seconds"].min()).groupby("n").median()
            axes[0, 1].plot(per.index, per.to_numpy(), **style(method))
    for axis, label in zip(
        axes[0], ("seconds per posterior", "effective draws per second"), strict=True
    ):
        axis.set(xscale="log", yscale="log", xlabel="number of records n", ylabel=label)
    legend_beside(figure)
    return figure


def _hidden(table: pd.DataFrame) -> str:
    few = table[table["trials"] < FEWEST]["method"].unique()
    told = f" Not drawn: {', '.join(few)}; of so few trials chance alone makes a wild picture."
    return told if len(few) else ""


def _d(table: pd.DataFrame) -> str:
    d = int(table["d"].iloc[0])
    return "One covariate." if d == 1 else f"{d} covariates; of slopes the mean is shown."

"""The numbers that claims about the synthetic study speak of.

Named "quantity: method, sensitivity". A cell is one (n, ε); slopes are averaged first.
"""

from __future__ import annotations

import numpy as np
import pandas as pd


def measures(table: pd.DataFrame) -> dict[str, float]:
    """Of every method under every sensitivity in the table."""
    found: dict[str, float] = {}
    for (method, noise), some in table.groupby(["method", "sensitivity"]):
        method, noise = str(method), str(noise)
        told = f"{method}, {noise}"
        ks, naive = (_by_cell(table, m, noise, "ks") for m in (method, "naive"))
        found[f"mean KS: {told}"] = float(ks.mean())
        # Chance alone gives a KS that depends on the number of trials: this is what exceeds it.
        beyond = _by_cell(table, method, noise, "beyond")
        found[f"KS beyond chance: {told}"] = float(beyond.mean())
        # Against the same cells only: the individual method does not run in all of them.
        found[f"largest KS over naive's: {told}"] = float((ks / naive.reindex(ks.index)).max())
        found[f"smallest p, Bonferroni: {told}"] = float(
            min(1.0, some["p_value"].min() * len(some))
        )
        covered = some.groupby(["n", "epsilon", "kind"])["coverage"].mean()
        found[f"lowest coverage: {told}"] = float(covered.min())
        found[f"mean coverage: {told}"] = float(covered.mean())
        mmd, other = (_by_cell(table, m, noise, "mmd") for m in (method, "naive"))
        found[f"largest MMD over naive's: {told}"] = float((mmd / other.reindex(mmd.index)).max())
        found[f"mean MMD: {told}"] = float(mmd.mean())
        found[f"median ESS: {told}"] = float(some["ess"].median())
    found.update(_gain(table))
    return found


def growth(table: pd.DataFrame) -> dict[str, float]:
    """Seconds at the largest n over those at the smallest; and against Gibbs-SS-Update.

    Comparisons are at the largest n that both have.
    """
    found = {}
    # Of the parameter that mixes worst.
    cell = table.groupby(["method", "n", "epsilon"])
    per = cell["ess"].min() / cell["seconds"].min()
    least = table.groupby(["method", "n"])["seconds"].min()
    for method in table["method"].unique():
        mine = least[method]
        n = mine.index[-1]
        found[f"growth with n: {method}"] = float(mine.iloc[-1] / mine.iloc[0])
        found[f"seconds at the largest n: {method}"] = float(mine.iloc[-1])
        found[f"effective draws per second: {method}"] = float(per[method].median())
        if "gibbs-update" in least.index:
            other = least["gibbs-update"][n]
            found[f"seconds over gibbs-update's: {method}"] = float(mine.iloc[-1] / other)
            ratio = (per[method] / per["gibbs-update"]).median()
            found[f"effective draws per second over gibbs-update's: {method}"] = float(ratio)
    return found


def _by_cell(table: pd.DataFrame, method: str, noise: str, column: str) -> pd.Series:
    some = table[(table["method"] == method) & (table["sensitivity"] == noise)]
    by_kind = some.groupby(["n", "epsilon", "kind"])[column].mean()
    return by_kind.groupby(level=["n", "epsilon"]).mean()


def _gain(table: pd.DataFrame) -> dict[str, float]:
    """Utility that the smaller sensitivity buys, where both were run."""
    found = {}
    for method in table["method"].unique():
        mmd = [_by_cell(table, method, noise, "mmd") for noise in ("as printed", "ours")]
        if len(mmd[0]) and len(mmd[1]):
            found[f"MMD ours over as printed: {method}"] = float(np.mean(mmd[1]) / np.mean(mmd[0]))
    return found

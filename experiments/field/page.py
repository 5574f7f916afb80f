"""The page of the comparison, written from the table of a run.

Nothing in it is typed by hand but what methods are and why results are so (page-template.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.field.figure import MARGIN, OURS, Beaten, beaten_cells
from experiments.field.study import (
    BOOTSTRAP,
    CLASSICAL,
    GAUSSIAN,
    LAPLACE,
    MEDIAN,
    METHODS,
    PLUG_IN,
    RECORDS,
    ROBUST,
    WALD,
)

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = Path(__file__).parent / "page-template.md"
"""The words; names in braces stand for what the run gave."""
WITH_INTERVALS = (CLASSICAL, ROBUST, LAPLACE, GAUSSIAN, PLUG_IN, WALD, BOOTSTRAP, RECORDS)


def number(value: float) -> str:
    """Return a number with three decimals, fewer or a power of ten where it is large."""
    if value is None or not np.isfinite(value):
        return ""
    if abs(value) >= 1e4:
        return f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def ratio(value: float) -> str:
    """Return how many times as wide an interval is."""
    return f"{value:.2f}" if value < 10 else number(value)


def share(value: float) -> str:
    """Return a share in two digits, without the zero before the point."""
    if value is None or not np.isfinite(value):
        return ""
    return f"{value:.2f}".removeprefix("0") if value < 0.995 else "1.0"


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """Return a table."""
    rule = "|" + "---|" * len(head)
    return ["| " + " | ".join(head) + " |", rule, *("| " + " | ".join(r) + " |" for r in lines)]


def pivot(table: pd.DataFrame, column: str, how: str) -> pd.DataFrame:
    """Return methods by ε, tables put together by the function that ``how`` names."""
    kept = table.dropna(subset=column)
    grouped = kept.groupby(["method", "epsilon"])[column].agg(how).unstack()
    return grouped.reindex([m for m in METHODS if m in grouped.index])


def coverage_summary(table: pd.DataFrame) -> list[str]:
    """Return what is to be said of intervals, with the cells that fall short."""
    lines = []
    key = ["table", "epsilon"]
    base = table[table["method"] == CLASSICAL].set_index(key)["coverage"].astype(float)
    for name in WITH_INTERVALS:
        own = table[table["method"] == name].set_index(key)["coverage"].astype(float)
        low = own[own < 0.9]
        worse = low[low < base.reindex(low.index)]
        lines.append([
            name, share(own.mean()), share(own.min()), f"{len(low)} of {len(own)}",
            str(len(worse)) if name != CLASSICAL else "",
        ])  # fmt: skip
    head = ["method", "mean", "worst cell", "cells below .90", "of these below classical"]
    return markdown(head, lines)


def short_cells(table: pd.DataFrame) -> list[str]:
    """Return a line for every cell where our intervals cover less than .90."""
    base = table[table["method"] == CLASSICAL]
    without = dict(zip(_cells(base), base["coverage"], strict=True))
    lines = []
    for name in (LAPLACE, GAUSSIAN):
        own = table[table["method"] == name]
        for cell, (_, row) in zip(_cells(own), own.iterrows(), strict=True):
            if row["coverage"] < 0.9:
                each = " ".join(map(share, row["coverages"]))
                lines.append([row["table"], f"{row['epsilon']:g}", name, share(row["coverage"]),
                              each, share(without[cell])])  # fmt: skip
    if not lines:
        return []
    head = ["table", "ε", "method", "coverage", "slopes and intercept", "least squares, classical"]
    return markdown(head, lines)


def beaten_summary(table: pd.DataFrame) -> list[str]:
    """Return who predicts better than ours, and where: counts, then every such cell."""
    cells = len(table[["table", "epsilon"]].drop_duplicates())
    lines = []
    for name in OURS:
        mean, typical = (beaten_cells(table, name, c) for c in ("error", "error_median"))
        lines.append([name + ("" if name.endswith(MEDIAN) else ", mean"),
                      f"{len(mean)} of {cells}", f"{len(typical)} of {cells}"])  # fmt: skip
    head = ["our estimate", "cells beaten, mean of trials", "cells beaten, median of trials"]
    return markdown(head, lines)


def beaten_cells_table(table: pd.DataFrame) -> list[str]:
    """Return every cell where our posterior mean is beaten, with the median's error beside it."""
    lines = []
    for name in (LAPLACE, GAUSSIAN):
        for b in beaten_cells(table, name):
            lines.append(_beaten_line(table, name, b))
    head = ["table", "ε", "ours", "posterior mean", "posterior median", "best other", "its error"]
    return markdown(head, lines) if lines else []


def _beaten_line(table: pd.DataFrame, name: str, b: Beaten) -> list[str]:
    here = table[(table["table"] == b.table) & (table["epsilon"] == b.epsilon)]
    median = float(here[here["method"] == name + MEDIAN]["error"].iloc[0])
    noise = name.partition(", ")[2]
    return [b.table, f"{b.epsilon:g}", noise, number(b.ours), number(median), b.rival,
            number(b.error)]  # fmt: skip


def by_method(table: pd.DataFrame, column: str, how: str, shown: Any = number) -> list[str]:
    """Return methods by ε."""
    found = pivot(table, column, how)
    lines = [[str(m), *map(shown, row)] for m, row in zip(found.index, found.to_numpy(float),
                                                          strict=True)]  # fmt: skip
    return markdown(["method", *(f"ε = {e:g}" for e in found.columns)], lines)


def all_cells(table: pd.DataFrame) -> list[str]:
    """Return a section for every table: coverage, width and test error by method and ε."""
    lines = []
    for name, own in table.groupby("table", sort=False):
        first = own.iloc[0]
        drawn = f"n = {first['n']:,}, {first['trials']} trials a cell, seed {first['seed']}."
        lines += ["", f"### {name}", "", drawn, ""]
        epsilons = sorted(own["epsilon"].unique())
        body = []
        for method in METHODS:
            mine = own[own["method"] == method].set_index("epsilon")
            if len(mine):
                body.append([method, *(_cell(mine.loc[e]) if e in mine.index else ""
                                       for e in epsilons)])  # fmt: skip
        lines += markdown(["method", *(f"ε = {e:g}" for e in epsilons)], body)
    return lines


def _cell(row: Any) -> str:
    """Return ``coverage · width · error`` of one cell; the mean error too where it is another."""
    error = number(row["error_median"])
    if abs(row["error"] / row["error_median"] - 1) > 0.01:
        error += f" ({number(row['error'])})"
    if row["coverages"] is None or str(row["method"]).endswith(MEDIAN):
        return error
    width = float(np.exp(np.mean(np.log(row["width_median"]))))
    return f"{share(row['coverage'])} · {ratio(width)} · {error}"


def write(table: pd.DataFrame, path: Path, wanted: Sequence[str] = ()) -> None:
    """Write the page; the picture lies beside it under the same name.

    Args:
        table: of a run, finished or not.
        path: of the page.
        wanted: the names of all cells of a finished run; else those that have begun.
    """
    text = TEMPLATE.read_text(encoding="utf-8")
    wanted = wanted or list(dict.fromkeys(_cells(table)))
    table = finished(table)
    there = set(_cells(table))
    missing = [cell for cell in wanted if cell not in there]
    made = {
        "cells": str(len(table[["table", "epsilon"]].drop_duplicates())),
        "tables": str(table["table"].nunique()),
        "epsilons": ", ".join(f"{e:g}" for e in sorted(set(table["epsilon"]))),
        "trials": " or ".join(map(str, sorted(set(table["trials"])))),
        "seed": " and ".join(map(str, sorted(set(table["seed"])))),
        "picture": f"{path.stem}.png",
        "unfinished": _told(missing, len(wanted)),
        "summary": summary(table),
        "beaten summary": beaten_summary(table),
        "beaten cells": beaten_cells_table(table),
        "middle error": by_method(table, "error_median", "median"),
        "worst error": by_method(table, "error", "max"),
        "coverage": coverage_summary(table),
        "short cells": short_cells(table),
        "seconds": by_method(table, "seconds", "mean", seconds),
        "all cells": all_cells(table),
    }
    for name, value in made.items():
        text = text.replace(f"{{{name}}}", value if isinstance(value, str) else "\n".join(value))
    path.write_text(re.sub("\n{3,}", "\n\n", text).rstrip() + "\n", encoding="utf-8")


def _cells(table: pd.DataFrame) -> pd.Series[str]:
    return table["table"] + " at ε = " + table["epsilon"].map("{:g}".format)


def unfinished(table: pd.DataFrame) -> list[str]:
    """Return the cells in which noisewise, or all others, have not run."""
    ours = set(_cells(table[table["method"] == LAPLACE]))
    others = set(_cells(table[table["method"] == CLASSICAL]))
    return [cell for cell in dict.fromkeys(_cells(table)) if cell not in ours & others]


def finished(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of all other cells."""
    return table[~_cells(table).isin(unfinished(table))]


def _told(missing: Sequence[str], cells: int) -> str:
    if not missing:
        return ""
    return (
        f"**Not finished.** {len(missing)} of {cells} cells have not run yet and are left out "
        f"below: {', '.join(missing)}. Averages at one ε and another are "
        "therefore not over the same tables. The command above goes on where it stopped."
    )


def seconds(value: float) -> str:
    """Return seconds in two digits."""
    return "" if not np.isfinite(value) else f"{value:.2g}"


def summary(table: pd.DataFrame) -> list[str]:
    """Return the findings in sentences."""
    cells = len(table[["table", "epsilon"]].drop_duplicates())
    lines = []
    held = {}
    for name in WITH_INTERVALS:
        own = table[table["method"] == name]
        held[name] = own["coverage"].astype(float)
    told = []
    for name in (LAPLACE, GAUSSIAN):
        noise = name.partition(", ")[2]
        low = int((held[name] < 0.9).sum())
        told.append(f"{share(held[name].mean())} with {noise} noise (worst cell "
                    f"{share(held[name].min())}; below .90 in {low} of {cells})")  # fmt: skip
    lines.append("- **Intervals.** 95 % intervals of noisewise hold the table's own least squares "
                 f"in {' and '.join(told)}.")  # fmt: skip
    lines.append(
        f"- Classical intervals of least squares without privacy: {share(held[CLASSICAL].mean())}, "
        f"worst cell {share(held[CLASSICAL].min())}; robust ones {share(held[ROBUST].mean())}, "
        f"worst {share(held[ROBUST].min())}. From noisy sums: ignoring the noise "
        f"{share(held[PLUG_IN].mean())}, worst {share(held[PLUG_IN].min())}; corrected Wald "
        f"{share(held[WALD].mean())}, worst {share(held[WALD].min())}; bootstrap "
        f"{share(held[BOOTSTRAP].mean())}, worst {share(held[BOOTSTRAP].min())}."
    )
    for kind, suffix in (("mean", ""), ("median", MEDIAN)):
        found = [beaten_cells(table, name + suffix) for name in (LAPLACE, GAUSSIAN)]
        beaten = [len(cells_of) for cells_of in found]
        where = dict.fromkeys(f"{b.table} at ε = {b.epsilon:g}" for some in found for b in some)
        named = f" Where: {', '.join(where)}." if where else ""
        lines.append(
            f"- **Prediction by the posterior {kind}.** In {beaten[0]} of {cells} cells (Laplace "
            f"noise) and {beaten[1]} (Gaussian) another private method has a test error, averaged "
            f"over trials, that is more than {100 * MARGIN:.0f} % lower.{named}"
        )
    return lines

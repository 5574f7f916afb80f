"""The comparison as one figure of ``noisewise reproduce``: coverage and test error by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.field.study import (
    ADASSP,
    BOOSTED,
    BOOTSTRAP,
    CLASSICAL,
    GAUSSIAN,
    LAPLACE,
    LIBRARY,
    MEDIAN,
    METHODS,
    PLUG_IN,
    RECORDS,
    ROBUST,
    THEIL_SEN,
    WALD,
    others,
    ours,
)
from experiments.field.tables import populations
from experiments.reproduce.canvas import grid, legend_beside
from experiments.reproduce.figure import Figure
from experiments.reproduce.store import TrialStore

if TYPE_CHECKING:
    import pandas as pd

TITLE = "noisewise and other methods on the same tables"
STYLES = {
    CLASSICAL: ("#000000", "s", ":"),
    ROBUST: ("#777777", "D", ":"),
    LAPLACE: ("#117a4b", "o", "-"),
    LAPLACE + MEDIAN: ("#117a4b", "^", "--"),
    GAUSSIAN: ("#2e86c1", "o", "-"),
    GAUSSIAN + MEDIAN: ("#2e86c1", "^", "--"),
    PLUG_IN: ("#c0392b", "x", "-"),
    WALD: ("#d68910", "v", "-"),
    BOOTSTRAP: ("#8e44ad", "P", "-"),
    RECORDS: ("#a0522d", "*", "-"),
    ADASSP: ("#e377c2", "<", "-"),
    BOOSTED: ("#ad1457", ">", "-"),
    THEIL_SEN: ("#5d6d7e", "h", "-"),
    LIBRARY: ("#b5a642", "d", "-"),
}
"""A colour, a mark and a line for every method."""
WORST_SHOWN = 1e4
"""Test errors beyond are drawn here, at the upper edge of the picture."""


def rows(
    settings: Mapping[str, Any], trials: TrialStore, folder: Path | None = None
) -> list[dict[str, Any]]:
    """Return a row for every ε, table and method; with a folder, of its tables too."""
    parts = {"ours": ours, "others": others}
    found: list[dict[str, Any]] = []
    sources = [*settings["sources"], *(["folder"] if folder else [])]
    for epsilon in settings["epsilons"]:
        for columns in settings["columns"]:
            for source in sources:
                tables = populations(source, columns, folder)
                if not tables:
                    continue

                for part, study in parts.items():

                    def compute(study: Any = study, tables: Any = tables, at: Any = epsilon) -> Any:
                        return study(tables, at, settings["trials"], settings["seed"])

                    key = {"source": source, "columns": columns, "epsilon": epsilon, "part": part}
                    found += trials.cell(key, compute)
    return found


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Return the table of all cells but those of tables that are not at hand everywhere."""
    # Loaded here, so that the study runs where pandas is missing.
    import pandas as pd

    return pd.DataFrame(rows(settings, trials))


def draw(table: pd.DataFrame) -> Any:
    """Return coverage (left) and test error (right) against ε, by method, all tables together."""
    tables = list(dict.fromkeys(table["table"]))
    caption = (
        "Left: share of 95 % intervals of all coefficients of all tables that hold the table's own "
        "least squares; band: the worst and the best table, of noisewise with Laplace noise. "
        "Right: test error over least squares' without privacy, minus one; median of tables, and "
        "within a table the median of trials. "
        f"Tables: {', '.join(tables)}; {int(table['trials'].max())} trials a cell."
    )
    figure, axes = grid(1, 2, TITLE, caption, width=5.2, height=4.4)
    left, right = axes[0]
    own = table[table["method"] == LAPLACE].groupby("epsilon")["coverage"]
    band = own.agg(["min", "max"])
    left.fill_between(band.index, band["min"], band["max"], color="#117a4b", alpha=0.12, lw=0)
    for name in METHODS:
        mine = table[table["method"] == name]
        if not len(mine):
            continue
        colour, mark, line = STYLES[name]
        look: dict[str, Any] = {
            "color": colour, "marker": mark, "ls": line, "ms": 5, "label": name,
            "lw": 2.2 if name in (LAPLACE, GAUSSIAN) else 1.2,
        }  # fmt: skip
        covered = mine.dropna(subset="coverage").groupby("epsilon")["coverage"].mean()
        if len(covered) and not name.endswith(MEDIAN):
            left.plot(covered.index, covered.to_numpy(float), **look)
        if name not in (CLASSICAL, ROBUST):
            excess = mine.groupby("epsilon")["error_median"].median() - 1
            right.plot(excess.index, np.clip(excess, 1e-5, WORST_SHOWN), **look)
    left.axhline(0.95, color="grey", ls=":", lw=1)
    left.set(xscale="log", xlabel="ε", ylim=(-0.03, 1.03))
    left.set_title("coverage of 95 % intervals", fontsize=10)
    right.set(xscale="log", yscale="log", xlabel="ε")
    right.set_title("excess test error", fontsize=10)
    for axis in (left, right):
        shown = sorted(table["epsilon"].unique())
        axis.set_xticks(shown, [f"{e:g}" for e in shown])
        axis.minorticks_off()
    legend_beside(figure)
    return figure


def measure(table: pd.DataFrame) -> dict[str, float]:
    """Return coverage of ours over all cells, beside that of others, and who predicts better."""
    measures: dict[str, float] = {}
    key = ["table", "epsilon"]
    base = table[table["method"] == CLASSICAL].set_index(key)["coverage"]
    for name in (LAPLACE, GAUSSIAN):
        own = table[table["method"] == name].set_index(key)
        short = own["coverage"][(own["coverage"] < 0.9) & (own["coverage"] < base)]
        measures[f"least coverage, {name}"] = float(own["coverage"].min())
        measures[f"mean coverage, {name}"] = float(own["coverage"].mean())
        measures[f"cells below .90 and below least squares, {name}"] = float(len(short))
        measures[f"converged, {name}"] = float(own["converged"].astype(float).mean())
    for name in (PLUG_IN, WALD, BOOTSTRAP):
        other = table[table["method"] == name]["coverage"]
        measures[f"least coverage, {name}"] = float(other.min())
    for suffix in ("", MEDIAN):
        beaten = beaten_cells(table, LAPLACE + suffix) + beaten_cells(table, GAUSSIAN + suffix)
        measures[f"cells beaten by 5 %{suffix}"] = float(len(beaten))
    return measures


def beaten_cells(
    table: pd.DataFrame, ours: str, column: str = "error", rivals: Sequence[str] = ()
) -> list[tuple[str, float, str, float, float]]:
    """Return (table, ε, best other method, its error, ours) where that is more than 5 % better.

    Other methods are private, with at most our δ: pure noise is compared with pure noise.
    """
    from experiments.field.study import NEEDS_DELTA

    pure = ours not in NEEDS_DELTA
    others = rivals or [
        m for m in METHODS
        if not m.startswith(("noisewise", "least")) and not (pure and m in NEEDS_DELTA)
    ]  # fmt: skip
    found = []
    for (name, epsilon), cells in table.groupby(["table", "epsilon"], sort=False):
        errors = cells.set_index("method")[column]
        some = errors[[m for m in others if m in errors.index]]
        if len(some) and ours in errors.index and 1.05 * some.min() < errors[ours]:
            found.append((str(name), float(epsilon), str(some.idxmin()), float(some.min()),
                          float(errors[ours])))  # fmt: skip
    return found


FIGURE = Figure("field", "ours", TITLE, run, draw, measure)

"""The comparison as one figure of ``noisewise reproduce``: coverage and test error by method."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
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
from experiments.field.tables import SOURCES, populations
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
OURS = (LAPLACE, LAPLACE + MEDIAN, GAUSSIAN, GAUSSIAN + MEDIAN)
MARGIN = 0.05
"""Test errors that differ by less count as equal."""
WORST_SHOWN = 1e4
"""Test errors beyond are drawn here, at the upper edge of the picture."""


class NotFinished(Exception):
    """A cell that is in no journal yet."""


def _not_finished() -> list[Any]:
    raise NotFinished


def rows(
    settings: Mapping[str, Any],
    trials: TrialStore,
    folder: Path | None = None,
    finished: bool = False,
) -> list[dict[str, Any]]:
    """Return a row for every ε, table and method; with a folder, of its tables too.

    Few covariates come before many: what takes longest is last.
    With ``finished``, those of an earlier run alone, and nothing is computed.
    """
    parts = (("others", others), ("ours", ours))
    found: list[dict[str, Any]] = []
    sources = [*settings["sources"], *(["folder"] if folder else [])]
    sources.sort(key=SOURCES.index)
    for columns, source in itertools.product(settings["columns"], sources):
        tables = populations(source, columns, folder)
        if not tables:
            continue
        for (part, study), epsilon in itertools.product(parts, settings["epsilons"]):

            def compute(study: Any = study, tables: Any = tables, at: Any = epsilon) -> Any:
                return study(tables, at, settings["trials"], settings["seed"])

            key = {"source": source, "columns": columns, "epsilon": epsilon, "part": part}
            with contextlib.suppress(NotFinished):
                found += trials.cell(key, _not_finished if finished else compute)
    return found


def cell_names(settings: Mapping[str, Any], folder: Path | None = None) -> list[str]:
    """Return the names of all cells of a finished run, as the page has them."""
    sources = [*settings["sources"], *(["folder"] if folder else [])]
    return [
        f"{table.name} at ε = {epsilon:g}"
        for columns, source in itertools.product(settings["columns"], sources)
        for table in populations(source, columns, folder)
        for epsilon in sorted(settings["epsilons"])
    ]


def run(settings: Mapping[str, Any], trials: TrialStore) -> pd.DataFrame:
    """Return the table of all cells but those of tables that are not at hand everywhere."""
    # Loaded here, so that the study runs where pandas is missing.
    import pandas as pd

    return pd.DataFrame(rows(settings, trials))


def draw(table: pd.DataFrame) -> Any:
    """Return coverage (above) and test error (below) against ε, by method, all tables together."""
    tables = list(dict.fromkeys(table["table"]))
    caption = (
        "Above: share of 95 % intervals of all coefficients of all tables that hold the table's "
        "own least squares; band: the worst and the best table, of noisewise with Laplace noise. "
        "Below: test error over least squares' without privacy, minus one; median of tables, and "
        "within a table the median of trials. "
        f"Tables: {', '.join(tables)}; {int(table['trials'].max())} trials a cell."
    )
    figure, axes = grid(2, 1, TITLE, caption, width=7.5, height=3.8)
    upper, lower = axes[:, 0]
    own = table[table["method"] == LAPLACE].groupby("epsilon")["coverage"]
    band = own.agg(["min", "max"])
    upper.fill_between(band.index, band["min"], band["max"], color="#117a4b", alpha=0.12, lw=0)
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
            upper.plot(covered.index, covered.to_numpy(float), **look)
        if name not in (CLASSICAL, ROBUST):
            excess = mine.groupby("epsilon")["error_median"].median() - 1
            lower.plot(excess.index, np.clip(excess, 1e-5, WORST_SHOWN), **look)
    upper.axhline(0.95, color="grey", ls=":", lw=1)
    upper.set(xscale="log", xlabel="ε", ylim=(-0.03, 1.03))
    upper.set_title("coverage of 95 % intervals", fontsize=10)
    lower.set(xscale="log", yscale="log", xlabel="ε")
    lower.set_title("excess test error", fontsize=10)
    for axis in (upper, lower):
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
    for name in OURS:
        measures[f"cells beaten, {name}"] = float(len(beaten_cells(table, name)))
    return measures


@dataclass(frozen=True)
class Beaten:
    """A cell in which another private method predicts better than ours, and both test errors."""

    table: str
    epsilon: float
    rival: str
    error: float
    ours: float


def beaten_cells(
    table: pd.DataFrame, ours: str, column: str = "error", margin: float = MARGIN
) -> list[Beaten]:
    """Return the cells where the best other private method is better by more than the margin."""
    rivals = [m for m in METHODS if m not in OURS and m not in (CLASSICAL, ROBUST)]
    found = []
    for _, cells in table.groupby(["table", "epsilon"], sort=False):
        name, epsilon = cells["table"].iloc[0], cells["epsilon"].iloc[0]
        errors = cells.set_index("method")[column]
        some = errors[[m for m in rivals if m in errors.index]]
        best = float(some.min())
        if (1 + margin) * best < errors[ours]:
            rival = str(some.idxmin())
            found.append(Beaten(str(name), float(epsilon), rival, best, float(errors[ours])))
    return found


FIGURE = Figure("field", "ours", TITLE, run, draw, measure)

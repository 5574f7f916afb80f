"""``noisewise marginal RESULT``: the joint probabilities of some columns' levels, as a table."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated

import typer

from noisewise.artifact import ArgumentError
from noisewise.cli.console import frame_table, plain_console, show_json
from noisewise.cli.parsing import parse_names
from noisewise.cli.shared_options import (
    AsJson,
    ResultFile,
    TableFile,
    check_table,
    load_result,
    write_table,
)

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.inference import Result


def marginal(
    result: ResultFile,
    columns: Annotated[
        str, typer.Option(metavar="COLUMN,COLUMN", help="One column, or several jointly.")
    ],
    interval: Annotated[
        float, typer.Option(metavar="P", help="Of posteriors: the probability of each interval.")
    ] = 0.95,
    out: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """Show how probable every combination of some columns' levels is, one row per cell.

    Posteriors give intervals too: `lower` and `upper`.
    """
    if not 0 < interval < 1:
        raise ArgumentError(f"--interval: must be between 0 and 1, not {interval!r}")
    check_table(out)
    loaded = load_result(result)
    rows = marginal_rows(loaded, parse_names(columns), interval)
    if out is not None:
        write_table(rows, out)
        typer.echo(f"wrote {out}")
    elif as_json:
        show_json(rows.to_dict("records"))
    else:
        title = f"Probabilities of {columns}, method {loaded.method}"
        if "lower" in rows:
            title += f"; {interval:.0%} intervals"
        console = plain_console()
        console.print(title, style="bold")
        console.print(frame_table(rows, more="; --out writes them all"))


def marginal_rows(result: Result, columns: list[str], interval: float) -> pd.DataFrame:
    """Return one row per cell: its levels, ``probability`` and, of posteriors, the interval.

    Args:
        result: whose probabilities are asked for.
        columns: one column, or several jointly.
        interval: the probability of the intervals.
    """
    table = result.marginal(columns)
    probabilities = table.to_series()
    rows = probabilities.index.to_frame(index=False)
    rows[_unused("probability", columns)] = probabilities.to_numpy()
    if not result.has_intervals:
        return rows
    try:
        ends = result.interval(columns, interval)
    except ArgumentError as error:
        warnings.warn(f"no intervals: {error}", UserWarning, stacklevel=2)
        return rows
    (bound,) = set(ends.dims) - set(table.dims)
    for end in ("lower", "upper"):
        cells = ends.sel({bound: end}).transpose(*table.dims)
        rows[_unused(end, columns)] = cells.to_series().to_numpy()
    return rows


def _unused(name: str, columns: list[str]) -> str:
    """Return the name, with underscores added until no column of the data is called so."""
    while name in columns:
        name += "_"
    return name

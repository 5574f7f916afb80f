"""What a command shows: the consoles, JSON for scripts, tables, and a progress bar."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from noisewise.artifact.readable_numbers import readable

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.inference import Result
    from noisewise.models.base import Progress as ProgressCallback

MAX_ROWS = 40
"""Rows of a table on a terminal, about one screen (chosen)."""

PIPED_WIDTH = 10_000
"""Columns of what is no terminal: no line of a table is that long (chosen)."""

SECONDS_BETWEEN_LINES = 15.0
"""Seconds between two lines of progress, where there is no terminal for a bar (chosen)."""


def plain_console(*, stderr: bool = False) -> Console:
    """Return a console that shows text as it is.

    Names of columns, levels, datasets and files are the owner's: "[red]" in one is no colour, and
    ":cat:" no picture. In a pipe or a file nothing is wrapped, unless COLUMNS says how wide it is.
    """
    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPED_WIDTH
    return console


def say(line: str, style: str) -> None:
    """Print one line on standard error; however long, it is never broken into several."""
    plain_console(stderr=True).print(line, style=style, soft_wrap=True)


def show_json(value: object) -> None:
    """Print one JSON document on standard output, for scripts."""
    typer.echo(json.dumps(value, indent=2))


def tell_cautions(result: Result, console: Console) -> None:
    """Print what to know before the numbers of a result, a line each."""
    for caution in result.cautions:
        console.print(f"To know: {caution}.", soft_wrap=True)


def frame_table(frame: pd.DataFrame, title: str | None = None, more: str = "") -> Table:
    """Return a data frame as a table for a terminal.

    Args:
        frame: numbers are shown with four digits, those that are none as a dash, everything else
            as it is.
        title: stands above the table, if it has one.
        more: what to do to see the rest, where the table is cut.
    """
    table = Table(title=title, title_justify="left")
    numeric = {name: frame[name].dtype.kind == "f" for name in frame}
    for name, number in numeric.items():
        table.add_column(str(name), justify="right" if number else "left", overflow="fold")
    for row in frame.head(MAX_ROWS).itertuples(index=False):
        cells = zip(numeric.values(), row, strict=True)
        table.add_row(*(_number(cell) if number else str(cell) for number, cell in cells))
    if len(frame) > MAX_ROWS:
        table.caption = f"and {len(frame) - MAX_ROWS} more{more}"
    return table


def _number(value: float) -> str:
    return "-" if math.isnan(value) else readable(value)


@contextmanager
def reading(what: str) -> Iterator[ProgressCallback | None]:
    """Give a callback that moves a bar; None where standard error is not a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)

        def report(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=total)

        yield report


class LinesOfProgress:
    """Says now and then, in a line, how far it is; what takes less than that long says nothing."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.begin = self.last = time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        """Print a line if the last one is some time ago."""
        self.say(self.what, done, total)

    def about(self, task: str) -> ProgressCallback:
        """Return a callback whose lines name the task as well."""
        return lambda done, total: self.say(f"{task}, {self.what}", done, total)

    def say(self, what: str, done: int, total: int | None) -> None:
        """Print a line if the last one is some time ago."""
        now = time.monotonic()
        if now - self.last < SECONDS_BETWEEN_LINES:
            return
        self.last = now
        of = "" if total is None else f" of {total}"
        typer.echo(f"{now - self.begin:.0f} s: {what} {done}{of}", err=True)


def lines_of_progress(what: str) -> LinesOfProgress | None:
    """Return a callback that prints lines; None where a terminal has a bar."""
    return None if sys.stderr.isatty() else LinesOfProgress(what)

"""A progress bar on standard error for long readings; silent when nobody is watching."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from noisewise.privacy.sum_plan import Progress as Report


@contextmanager
def reading(what: str) -> Iterator[Report | None]:
    """A callback that moves a bar; None where standard error is not a terminal."""
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

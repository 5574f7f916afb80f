"""A progress bar on standard error; silent when nobody is watching."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from noisewise.models.base import Progress


@contextmanager
def reporting(progress: Progress | bool | None, what: str) -> Iterator[Progress | None]:
    """Give the callback to call while the context lasts, or None where nobody is watching.

    Args:
        progress: a callback, which is given as it is; True for a bar; False for none; None for a
            bar that vanishes at the end, if standard error is a terminal.
        what: the words beside the bar.
    """
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=progress is None) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

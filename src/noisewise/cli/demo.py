"""``noisewise demo``: the owner's half on shipped data, told in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noisewise.artifact import ArgumentError
from noisewise.cli.inspect import plain_console, show


def demo(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the demo's files.")
    ] = Path("demo-output"),
) -> None:
    """Release a regression from shipped data, under a budget ledger, and look at the file."""
    from noisewise import Release, datasets, release
    from noisewise.datasets.cirrhosis import BOUNDS
    from noisewise.release.ledger import open_ledger

    console = plain_console()
    _make(out)
    console.print(
        "1. The sensitive table: 46 US states, wine drinking and cirrhosis deaths "
        "(Brownlee 1965). Imagine each row were a person."
    )
    book = out / "ledger.db"
    with open_ledger(book, create=True) as ledger:
        if not any(a.dataset == "cirrhosis" for a in ledger.accounts()):
            ledger.set_budget("cirrhosis", epsilon=100.0, neighbours="replace-one")
    console.print(f"2. A ledger with a budget of epsilon = 100 for it: {book}")
    x, y = "wine_per_capita", "cirrhosis_death_rate"
    made = release.linear_regression(
        datasets.cirrhosis(),
        x=[x],
        y=y,
        bounds={c: BOUNDS[c] for c in (x, y)},
        epsilon=1.0,
        ledger=book,
        dataset="cirrhosis",
    )
    path = made.save(out / "release.json")
    console.print(
        f"3. Exact integer sums, noise from OpenDP, spend written down first. "
        f"The public file: {path}\n"
    )
    show(Release.load(path), console)
    console.print("\n4. That file is all an analyst ever sees. Look at it, and at the ledger, with")
    # To be copied: never broken into lines.
    console.print(f"   noisewise inspect {path}\n   noisewise ledger show {book}", soft_wrap=True)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"--out: {str(folder)!r} cannot be made: {error.strerror}") from None

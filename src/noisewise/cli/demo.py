"""``noisewise demo``: the owner's half on shipped data, told in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from noisewise.cli.inspect import show


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the demo's files.")] = Path("demo-output"),
) -> None:
    """Release a regression from shipped data, under a budget ledger, and look at the file."""
    from noisewise import Release, datasets, release
    from noisewise.datasets.cirrhosis import BOUNDS
    from noisewise.release.ledger import open_ledger

    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    console.print(
        "[bold]1.[/bold] The sensitive table: 46 US states, wine drinking and cirrhosis deaths "
        "(Brownlee 1965). Imagine each row were a person."
    )
    book = out / "ledger.db"
    with open_ledger(book, create=True) as ledger:
        if not any(a.dataset == "cirrhosis" for a in ledger.accounts()):
            ledger.set_budget("cirrhosis", epsilon=100.0, neighbours="replace-one")
    console.print(f"[bold]2.[/bold] A ledger with a budget of epsilon = 100 for it: {book}")
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
        f"[bold]3.[/bold] Exact integer sums, noise from OpenDP, spend written down first. "
        f"The public file: {path}\n"
    )
    show(Release.load(path), console)
    console.print(
        f"\n[bold]4.[/bold] That file is all an analyst ever sees. Look at it with\n"
        f"   noisewise inspect {path}\n   noisewise ledger show {book}"
    )

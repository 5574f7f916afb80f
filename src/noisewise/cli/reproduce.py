"""``noisewise reproduce``: every figure of the papers, and a verdict on every claim."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from rich.table import Table

from noisewise.artifact import ArgumentError
from noisewise.cli.console import plain_console

CHECKOUT = Path(__file__).parents[3]
"""The folder of the repository, where the package is run from one."""


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Figures; all of them unless named.")
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="Show the names of all figures and stop.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer trials, same code: minutes instead of hours.")
    ] = False,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Tables, pictures, provenance and verdicts.")
    ] = Path("results"),
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a page with all verdicts and pictures."),
    ] = None,
) -> None:
    """Regenerate figures of the papers and judge their claims.

    An interrupted run goes on where it stopped. Ends with status 1 if a claim that should hold does
    not, or one that is known to fail now holds.
    """
    figures = _experiments("catalogue").figures()
    if listing:
        for name, figure in figures.items():
            typer.echo(f"{name:28} {figure.paper}: {figure.title}")
        return
    for name in names or ():
        if name not in figures:
            raise ArgumentError(
                f"NAME: there is no figure {name!r}; see noisewise reproduce --list"
            )
    chosen = [figures[name] for name in names or figures]
    size = "quick" if quick else "full"
    start = time.perf_counter()
    tell = lambda what: typer.echo(what, err=True)  # noqa: E731
    outcomes = _experiments("runner").reproduce(chosen, size, out, tell)
    rows = [verdict.row() for outcome in outcomes for verdict in outcome.verdicts]
    show(rows)
    if page is not None:
        _experiments("page").write(page, list(figures.values()), size, out)
        typer.echo(f"wrote {page}")
    surprises = [row for row in rows if not row["as_expected"]]
    minutes = (time.perf_counter() - start) / 60
    typer.echo(
        f"{len(chosen)} figures, {len(rows)} claims, {len(surprises)} not as expected, "
        f"{minutes:.1f} minutes; files in {out}"
    )
    if surprises:
        raise typer.Exit(1)


def show(rows: list[dict[str, Any]]) -> None:
    """Print every claim with the paper's number, ours and the verdict."""
    table = Table(title="Claims of the papers", title_justify="left")
    for name in ("figure", "claim", "paper", "ours", "limit", "verdict"):
        table.add_column(name, overflow="fold", justify="right" if name == "ours" else "left")
    for row in rows:
        mark = "" if row["as_expected"] else f" (expected: {row['expected']})"
        table.add_row(
            row["figure"], row["claim"], row["paper"], f"{row['ours']:.3g}", row["limit"],
            row["verdict"] + mark,
        )  # fmt: skip
    plain_console().print(table)


def _experiments(module: str) -> ModuleType:
    """Import a module of the experiments, which lie beside the package in a checkout only."""
    if not (CHECKOUT / "experiments" / "reproduce").is_dir():
        raise ArgumentError(
            "reproduce: the experiments are part of the checkout, not of the installed package; "
            "clone the repository and run it there"
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.insert(0, str(CHECKOUT))
    return import_module(f"experiments.reproduce.{module}")

"""``noisewise infer RELEASE``: from a public file to a posterior file, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from noisewise.artifact import ArgumentError, Release
from noisewise.cli import options as o
from noisewise.cli.inspect import plain_console
from noisewise.cli.output import writable

if TYPE_CHECKING:
    from noisewise.inference import Result

MOST_ROWS = 40


def infer(
    releases: Annotated[
        list[Path],
        typer.Argument(metavar="RELEASE", help="A release file, or several of the same records."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the posterior goes (.nc).")
    ],
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Such as exact, gibbs or naive; left out, the best there is."
        ),
    ] = None,
    x: o.OtherX = None,
    y: o.OtherY = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    chains: Annotated[int, typer.Option(help="Independent chains.")] = 4,
    draws: Annotated[int, typer.Option(help="Draws kept per chain.")] = 1000,
    same_population: Annotated[
        bool,
        typer.Option(
            "--same-population",
            help="Several releases are of the same records. To be said, unless they name one "
            "dataset of one ledger.",
        ),
    ] = False,
    as_json: o.AsJson = False,
) -> None:
    """Infer a posterior that accounts for the noise, and keep it in a netCDF file.

    ArviZ and other tools read the file; `noisewise predict` predicts from it. A posterior that has
    not converged is kept all the same, with a warning on standard error.
    """
    given = [Release.load(path) for path in releases]
    if given[0].family == "graphical-model":
        raise ArgumentError(
            "release: a graphical model is fitted from Python, with nw.infer(release).save(path), "
            "and kept in a file of its own kind"
        )
    # Before any sampling: what cannot be written would be lost.
    writable(out, _is_posterior, "posterior")
    from noisewise.inference import infer as run

    post = run(
        given, method, x=x or None, y=y, seed=seed, chains=chains, draws=draws,
        same_population=same_population,
    )  # fmt: skip
    post.save(out)
    if as_json:
        o.show_json({"out": str(out), **summary(post)})
    else:
        show(post, out)
    if not post.converged:
        typer.echo(f"warning: {post.status}", err=True)


def _is_posterior(path: Path) -> bool:
    from noisewise.inference import load_posterior

    try:
        load_posterior(path)
    except ArgumentError:
        return False
    return True


def summary(post: Result) -> dict[str, Any]:
    """For scripts."""
    return {
        "method": post.method,
        "prior": getattr(post, "prior", ""),
        "guarantees": list(getattr(post, "guarantees", ())),
        "converged": post.converged,
        "status": post.status,
        "parameters": post.summary().reset_index().to_dict("records"),
    }


def show(post: Result, out: Path) -> None:
    """For a person at a terminal."""
    console = plain_console()
    console.print(f"Posterior of {post.title}, method {post.method}", style="bold")
    for guarantee in getattr(post, "guarantees", ()):
        console.print(guarantee)
    rows = post.summary().reset_index()
    table = Table(title="In the units of the data; 95 % intervals", title_justify="left")
    leading = [c for c in ("group", "parameter") if c in rows]
    for name in leading:
        table.add_column(name, overflow="fold")
    for name in ("mean", "sd", "lower", "upper"):
        table.add_column(name, justify="right")
    for _, row in rows.head(MOST_ROWS).iterrows():
        numbers = (f"{row[c]:.4g}" for c in ("mean", "sd", "lower", "upper"))
        table.add_row(*(str(row[c]) for c in leading), *numbers)
    if len(rows) > MOST_ROWS:
        table.caption = f"and {len(rows) - MOST_ROWS} more"
    console.print(table)
    console.print(post.status)
    console.print(f"wrote {out}", soft_wrap=True)

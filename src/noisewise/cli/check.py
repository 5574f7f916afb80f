"""``noisewise check RELEASE``: is a method trustworthy for a release with these settings?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from noisewise.artifact import ArgumentError, Release
from noisewise.cli import options as o
from noisewise.cli.inspect import plain_console
from noisewise.cli.output import is_page, writable

if TYPE_CHECKING:
    from noisewise.simulate import Check


def check(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file.")],
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A method to try; repeat. The usual ones unless named."),
    ] = None,
    x: o.OtherX = None,
    y: o.OtherY = None,
    trials: Annotated[int, typer.Option(help="Simulated releases for every method.")] = 200,
    seed: o.Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Keep the result (.json), for a report."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it as a page with pictures (.html).")
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """Simulate releases like this one, and see which methods find the truth where they say it is.

    Only the settings are used: number of records, epsilon, bounds, noise and prior. It costs no
    budget and looks at no number of the release.
    """
    given = Release.load(release)
    if out is not None:
        writable(out, _is_check, "check")
    if page is not None:
        writable(page, is_page, "page", "--page")
    from noisewise import report, simulate

    found = simulate.check(given, method or None, x=x or None, y=y, trials=trials, seed=seed)
    if out is not None:
        found.save(out)
    if page is not None:
        report.save(found, page)
    if as_json:
        o.show_json(json.loads(found.to_json()))
        return
    _show(found)
    for written in filter(None, (out, page)):
        typer.echo(f"wrote {written}")


def _is_check(path: Path) -> bool:
    from noisewise.simulate import load_check

    try:
        load_check(path)
    except ArgumentError:
        return False
    return True


def _show(found: Check) -> None:
    console = plain_console()
    said = found.settings
    console.print(
        f"{said['trials']} simulated releases of {said['what']}: {said['n']} records, "
        f"epsilon {said['epsilon']:g}"
    )
    table = Table(title="Do 95 % intervals hold the truth?", title_justify="left")
    table.add_column("method")
    table.add_column("parameter", overflow="fold")
    for name in ("coverage", "mean width", "p (ranks)"):
        table.add_column(name, justify="right")
    for m in found.methods:
        for i, name in enumerate(m.parameters):
            numbers = f"{m.coverage[i]:.3f}", f"{m.width[i]:.4g}", f"{m.p_values[i]:.3g}"
            table.add_row(m.method if i == 0 else "", name, *numbers)
    console.print(table)
    for m in found.methods:
        console.print(f"{m.method}: {m.verdict}", style="" if m.passed else "bold")
    console.print(found.advice)

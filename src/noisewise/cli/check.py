"""``noisewise check RELEASE``: is a method trustworthy for a release with these settings?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from noisewise.artifact import ArgumentError, Release
from noisewise.cli.console import plain_console, show_json
from noisewise.cli.shared_options import (
    AsJson,
    ModelOptions,
    OtherCovariates,
    OtherResponse,
    PageFile,
    PriorFile,
    SimulationSeed,
    check_page,
    check_writable,
    read_options,
    read_prior_option,
)

if TYPE_CHECKING:
    from noisewise.simulate import Check


def check(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file.")],
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A method to try; repeat. The usual ones unless named."),
    ] = None,
    x: OtherCovariates = None,
    y: OtherResponse = None,
    prior: PriorFile = None,
    option: ModelOptions = None,
    trials: Annotated[int, typer.Option(help="Simulated releases for every method.")] = 200,
    seed: SimulationSeed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Keep the result (.json), for a report."),
    ] = None,
    page: PageFile = None,
    as_json: AsJson = False,
) -> None:
    """Simulate releases like this one, and see which methods find the truth where they say it is.

    Only the settings are used: number of records, epsilon, bounds, noise and prior. It costs no
    budget and looks at no number of the release, but for a count of clamped records.
    """
    given = Release.load(release)
    if out is not None:
        check_writable(out, _is_check, "check")
    check_page(page, "--page")
    from noisewise import report, simulate

    result = simulate.check(
        given, method or None, prior=read_prior_option(prior), x=x or None, y=y, trials=trials,
        seed=seed, **read_options(option),
    )  # fmt: skip
    if out is not None:
        result.save(out)
    if page is not None:
        report.save(result, page)
    if as_json:
        show_json(json.loads(result.to_json()))
        return
    show_check(result)
    for written in filter(None, (out, page)):
        typer.echo(f"wrote {written}")


def _is_check(path: Path) -> bool:
    from noisewise.simulate import load_check

    try:
        load_check(path)
    except ArgumentError:
        return False
    return True


def show_check(result: Check) -> None:
    """Print what a check found for a person at a terminal."""
    console = plain_console()
    settings = result.settings
    console.print(
        f"{settings['trials']} simulated releases of {settings['what']}: {settings['n']} records, "
        f"epsilon {settings['epsilon']:g}"
    )
    for caution in result.cautions:
        console.print(f"To know: {caution}.")
    table = Table(title="Do 95 % intervals hold the truth?", title_justify="left")
    table.add_column("method")
    table.add_column("parameter", overflow="fold")
    for name in ("coverage", "mean width", "p (ranks)"):
        table.add_column(name, justify="right")
    for m in result.methods:
        for i, name in enumerate(m.parameters):
            numbers = f"{m.coverage[i]:.3f}", f"{m.width[i]:.4g}", f"{m.p_values[i]:.3g}"
            table.add_row(m.method if i == 0 else "", name, *numbers)
    console.print(table)
    for m in result.methods:
        console.print(f"{m.method}: {m.verdict}", style="" if m.passed else "bold")
    console.print(result.advice)

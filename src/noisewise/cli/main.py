"""``noisewise``: the verbs, and one place where errors become a message and an exit code."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from noisewise import __version__
from noisewise.artifact import NoisewiseError
from noisewise.cli import (
    check,
    demo,
    infer,
    inspect,
    ledger,
    plan,
    predict,
    release,
    report,
    reproduce,
)

app = typer.Typer(
    name="noisewise",
    help="Differentially private releases, and inference that is honest about their noise.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(release.app, name="release")
app.add_typer(ledger.app, name="ledger")
app.add_typer(plan.app, name="plan")
app.command("inspect")(inspect.inspect)
app.command("infer")(infer.infer)
app.command("predict")(predict.predict)
app.command("check")(check.check)
app.command("report")(report.report)
app.command("demo")(demo.demo)
app.command("reproduce")(reproduce.reproduce)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"noisewise {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and stop."
    ),
) -> None:
    """Differentially private releases, and inference that is honest about their noise."""


def run() -> None:
    """Entry point. Exit codes: 0 done, 1 refused (message on stderr), 2 wrong usage."""
    try:
        app()
    except NoisewiseError as error:
        # A name or path in the message is shown as it is, on one line, whatever is in it.
        plain = Console(stderr=True, soft_wrap=True, markup=False, highlight=False, emoji=False)
        plain.print(f"error: {error}", style="red")
        sys.exit(1)

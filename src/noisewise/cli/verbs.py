"""The verbs of ``noisewise``."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from noisewise import __version__
from noisewise.cli import (
    check,
    demo,
    infer,
    inspect,
    ledger,
    marginal,
    plan,
    predict,
    release,
    report,
    reproduce,
    sample,
)
from noisewise.cli.interrupts import end_by_interrupt


class Verbs(TyperGroup):
    """The group of all verbs; an interrupt ends it before Typer calls that an abortion."""

    def invoke(self, ctx: Any) -> Any:
        """Carry out the verb."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            end_by_interrupt()


app = typer.Typer(
    cls=Verbs,
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
app.command("sample")(sample.sample)
app.command("marginal")(marginal.marginal)
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

"""``noisewise``: the verbs, and one place where errors become a message and an exit code."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import typer

from noisewise import __version__
from noisewise.artifact import NoisewiseError
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
from noisewise.cli.console import say
from noisewise.cli.messages import command_flags, translate

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


def run() -> None:
    """Run the program. Exit codes: 0 done, 1 refused (message on stderr), 2 wrong usage."""
    speak = _shell_words(sys.argv[1:])

    def warn(message: Warning | str, *_: object, **__: object) -> None:
        # Without the line of code, which says nothing to whoever runs a command.
        say(f"warning: {speak(str(message))}", "yellow")

    with warnings.catch_warnings():
        warnings.showwarning = warn
        # Ours are for the person at the terminal: each once, whatever Python was told to do.
        warnings.filterwarnings("default", category=UserWarning, module="noisewise")
        try:
            app()
        except NoisewiseError as error:
            say(f"error: {speak(str(error))}", "red")
            sys.exit(1)


def _shell_words(arguments: list[str]) -> Callable[[str], str]:
    """Return the translation of messages for the command that these arguments ask for."""
    return lambda message: translate(message, command_flags(typer.main.get_command(app), arguments))

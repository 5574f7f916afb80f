"""The verbs of ``noisewise``."""

from __future__ import annotations

import typer

from noisewise import __version__
from noisewise.cli import demo, infer, inspect, ledger, plan_and_check, release, reproduce, results

SPELLINGS = {"neighbors": "neighbours"}
"""Other spellings of options."""

app = typer.Typer(
    name="noisewise",
    context_settings={"token_normalize_func": lambda word: SPELLINGS.get(word, word)},
    help="Differentially private releases, and inference that is honest about their noise.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(release.app, name="release")
app.add_typer(ledger.app, name="ledger")
app.add_typer(plan_and_check.app, name="plan")
app.command("inspect")(inspect.inspect)
app.command("infer")(infer.infer)
app.command("predict")(results.predict)
app.command("effects")(results.effects)
app.command("ranks")(results.ranks)
app.command("sample")(results.sample)
app.command("marginal")(results.marginal)
app.command("check")(plan_and_check.check)
app.command("report")(results.report)
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

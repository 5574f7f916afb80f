"""``noisewise release MODEL``: the owner's half, one command for every model of the registry."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from noisewise.artifact import NoisewiseError, Release, ReleaseError
from noisewise.cli import words
from noisewise.cli.console import reading, show_json
from noisewise.cli.messages import in_shell_words
from noisewise.cli.output_files import check_writable
from noisewise.cli.shared_options import AsJson
from noisewise.models import Model, Owner

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="Path, folder or glob of CSV, Parquet or Arrow files, or a database URL such as "
        "postgresql://host/db#table.",
    ),
]
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the release goes.")]


def release_command(model: Model) -> Any:
    """Return the command that releases for a model."""
    owner = model.owner()
    asked = (*owner.words, *words.privacy_words(owner))
    parameters = [
        words.keyword("source", Source, required=True),
        *(words.parameter(w, required=w.required, default=w.default) for w in asked),
        words.keyword("out", Out, required=True),
        words.keyword("as_json", AsJson, default=False),
    ]

    def run(source: str, out: Path, as_json: bool, **given: Any) -> None:
        check_writable(out, _is_release, "release")
        made = make_release(owner, source, given)
        finish(made, out, as_json, given.get("ledger"))

    return words.command(model.name, owner.summary, parameters, run)


app = typer.Typer(
    help="Turn a sensitive table into one public file.",
    no_args_is_help=True,
    cls=words.model_group(release_command),
)


def make_release(owner: Owner, source: object, given: dict[str, Any]) -> Release:
    """Read the options' text and call the release function, with a progress bar if it has one."""
    with reading("reading") as progress, in_shell_words(words.argument_flags(owner)):
        arguments = words.release_arguments(owner, given)
        if "progress" in inspect.signature(owner.release).parameters:
            arguments["progress"] = progress
        return owner.release(source, **arguments)


def _is_release(path: Path) -> bool:
    try:
        Release.load(path)
    except ReleaseError:
        return False
    return True


def finish(release: Release, out: Path, as_json: bool, ledger: str | None = None) -> None:
    """Save the release, and say what was promised."""
    try:
        release.save(out)
    except ReleaseError:
        # The budget is spent: what it bought must not be lost to a full disk.
        typer.echo(release.to_json())
        typer.echo("the release is on standard output instead", err=True)
        raise
    if as_json:
        spent = {"epsilon": release.guarantee.epsilon, "rho": release.guarantee.rho}
        show_json({"out": str(out), "family": release.family, **spent})
    else:
        typer.echo(f"wrote {out}: {release.statement()}{_booked(release, ledger)}")


def _booked(release: Release, ledger: str | None) -> str:
    """Return on which dataset it was booked: a slip of the account shows here, or never."""
    if release.receipt is None or ledger is None:
        return ""
    dataset = release.receipt.dataset
    return f" Booked on dataset {dataset!r}{_left(ledger, dataset)}."


def _left(ledger: str, dataset: str) -> str:
    from noisewise.privacy.ledger import open_ledger

    try:
        with open_ledger(ledger) as book:
            (account,) = (a for a in book.accounts() if a.dataset == dataset)
    except (NoisewiseError, ValueError):
        # The release is made and written: a ledger out of reach by now is no failure of it.
        return ""
    return f", where {account.parameter} {account.remaining:g} of {account.budget:g} is left"

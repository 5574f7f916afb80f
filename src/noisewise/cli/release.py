"""``noisewise release MODEL``: the owner's half, one command for every model of the registry."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from noisewise.artifact import ArgumentError, NoisewiseError, Release, ReleaseError
from noisewise.artifact.user_warnings import LargeEpsilonWarning
from noisewise.cli import model_commands
from noisewise.cli.console import reading, show_json
from noisewise.cli.messages import in_shell_words
from noisewise.cli.options import AsJson, check_writable, is_read_by
from noisewise.models import Model, Owner
from noisewise.privacy.ledger import Account, DefaultLedger, open_ledger, source_ledger
from noisewise.privacy.ledger.accounts import decimal

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="Path, folder or glob of CSV, Parquet or Arrow files, or a database URL such as "
        "postgresql://host/db#table.",
    ),
]
NoLedger = Annotated[
    bool,
    typer.Option(
        "--no-ledger",
        help="Do not count the spend. Else, without --ledger, it is counted in a ledger beside the "
        "data, or in your own folder.",
    ),
]
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the release goes.")]


def release_command(model: Model) -> TyperCommand:
    """Return the command that releases for a model."""
    owner = model.owner()
    asked = (*owner.words, *model_commands.privacy_words(owner))
    parameters = [
        model_commands.keyword("source", Source, required=True),
        *(model_commands.parameter(w, required=w.required, default=w.default) for w in asked),
        model_commands.keyword("no_ledger", NoLedger, default=False),
        model_commands.keyword("out", Out, required=True),
        model_commands.keyword("as_json", AsJson, default=False),
    ]

    def run(source: str, out: Path, as_json: bool, no_ledger: bool, **given: Any) -> None:
        check_writable(out, _is_release, "release")
        if "ledger" in owner.privacy:
            given["ledger"] = chosen_ledger(source, no_ledger, given)
        from noisewise.privacy.pipeline import Payment

        with Payment.held():
            made = make_release(owner, source, given)
            save(made, out)
        show(made, out, as_json, given.get("ledger"))

    return model_commands.command(model.name, owner.summary, parameters, run)


app = typer.Typer(
    help="Turn a sensitive table into one public file.",
    no_args_is_help=True,
    cls=model_commands.model_group(release_command),
)


def make_release(owner: Owner, source: object, given: dict[str, Any]) -> Release:
    """Read the options' text and call the release function, with a progress bar if it has one."""
    import pyarrow as pa

    with (
        reading("reading") as progress,
        in_shell_words(model_commands.argument_flags(owner)),
        warnings.catch_warnings(),
    ):
        # Arrow would take SIGINT for itself while it reads, and call it a failure.
        pa.enable_signal_handlers(False)
        # In Python a warning must do, for scripts that have always run; here somebody can answer.
        warnings.simplefilter("error", LargeEpsilonWarning)
        arguments = model_commands.release_arguments(owner, given)
        if "progress" in inspect.signature(owner.release).parameters:
            arguments["progress"] = progress
        try:
            return owner.release(source, **arguments)
        except LargeEpsilonWarning as warning:
            raise ArgumentError(str(warning)) from None


def _is_release(path: Path) -> bool:
    return is_read_by(Release.load, ReleaseError, path)


def chosen_ledger(
    source: str, no_ledger: bool, given: Mapping[str, Any]
) -> str | DefaultLedger | None:
    """Return the ledger that counts the spend: the one that is named, the source's own, or none."""
    named: str | None = given.get("ledger")
    if named is not None and no_ledger:
        raise ArgumentError("--no-ledger: contradicts --ledger; give one of them")
    # An account that is named needs a ledger that is named: the release function says so.
    if named is not None or no_ledger or given.get("dataset") is not None:
        return named
    return source_ledger(source)


def save(release: Release, out: Path) -> None:
    """Save the release; where that fails, print it."""
    try:
        release.save(out)
    except ReleaseError:
        # The budget is spent: what it bought must not be lost to a full disk.
        typer.echo(release.to_json())
        typer.echo("the release is on standard output instead", err=True)
        raise


def show(
    release: Release, out: Path, as_json: bool, ledger: str | DefaultLedger | None = None
) -> None:
    """Say what was promised, and what is spent in all."""
    accounts = _accounts(release, ledger)
    if as_json:
        spent = {"epsilon": release.guarantee.epsilon, "rho": release.guarantee.rho}
        show_json({"out": str(out), "family": release.family, **spent, **_booked_json(accounts)})
    else:
        typer.echo(f"wrote {out}: {release.statement()}{_booked(accounts, ledger)}")


def _accounts(release: Release, ledger: str | DefaultLedger | None) -> list[Account]:
    """Return the account that paid, and those that count other kinds of promises of the source."""
    if release.receipt is None or ledger is None:
        return []
    paid = release.receipt.dataset
    # The release is made and written: a ledger out of reach by now is no failure of it.
    with contextlib.suppress(NoisewiseError), open_ledger(ledger) as book:
        own = ledger.dataset if isinstance(ledger, DefaultLedger) else paid
        accounts = [a for a in book.accounts() if a.dataset in (paid, own) or _is_kind(a, own)]
        return sorted(accounts, key=lambda a: a.dataset != paid)
    return []


def _is_kind(account: Account, dataset: str) -> bool:
    return not account.capped and account.dataset.startswith(f"{dataset} (")


def _booked_json(accounts: list[Account]) -> dict[str, Any]:
    if not accounts:
        return {}
    paid, *_ = accounts
    budget = paid.budget if paid.capped else None
    return {"dataset": paid.dataset, "spent": paid.spent, "budget": budget}


def _booked(accounts: list[Account], ledger: str | DefaultLedger | None) -> str:
    """Return on which dataset it was booked: a slip of the account shows here, or never."""
    if not accounts:
        return ""
    paid, *others = accounts
    if paid.capped:
        return (
            f" Booked on dataset {paid.dataset!r}, where {paid.parameter} {paid.remaining:g} of "
            f"{paid.budget:g} is left."
        )
    where = str(ledger.path) if isinstance(ledger, DefaultLedger) else str(ledger)
    aside = f" ({ledger.aside})" if isinstance(ledger, DefaultLedger) and ledger.aside else ""
    total = f"{paid.parameter} {paid.spent:g} so far"
    more = _apart(paid, [a for a in others if a.spent])
    return f" Counted on dataset {paid.dataset!r} of {where}{aside}: {total}, no cap{more}."


def _apart(paid: Account, others: list[Account]) -> str:
    """Return what other kinds of promises cost, and all of it together where a rule is known.

    To replace a person is to remove one and add another: what is ε for either is at most 2 ε.
    """
    if not others:
        return ""
    listed = ", ".join(f"{a.parameter} {a.spent:g} in {a.dataset!r}" for a in others)
    steps = {"replace-one": 1, "add-remove": 2}
    accounts = [paid, *others]
    if all(
        a.accounting == "pure" and a.neighbours in steps and a.unit == paid.unit for a in accounts
    ):
        total = sum(steps[str(a.neighbours)] * a.spent_units for a in accounts)
        return (
            f"; apart from that, {listed}; together at most epsilon {decimal(total)} under "
            "replace-one neighbours"
        )
    verb = "does" if len(others) == 1 else "do"
    return f"; apart from that, {listed}, which {verb} not add up with it"

"""``noisewise ledger show | set | audit``: the owner's budgets, from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from noisewise.artifact import ArgumentError, Receipt, Release, ReleaseError
from noisewise.cli.console import plain_console, say, show_json
from noisewise.cli.options import AsJson
from noisewise.privacy.ledger import (
    Account,
    Cost,
    Entry,
    Finding,
    Ledger,
    cost_of,
    open_ledger,
)
from noisewise.privacy.ledger.accounts import NO_RELEASE, budget_words, decimal
from noisewise.privacy.ledger.default_ledger import FILE_NAME, users_ledger
from noisewise.privacy.ledger.spending_rules import asked_budget

app = typer.Typer(
    name="ledger", help="Privacy budgets: what may be spent, and what was.", no_args_is_help=True
)

RELATIONS = ("replace-one", "add-remove", "replace-one-within-COLUMN")
"""The neighbour relations that an account may keep to."""

Where = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER",
        help="Path of a SQLite ledger, or a postgresql:// URL (leave the password to PGPASSWORD "
        "or ~/.pgpass: other users of this machine can see command lines).",
    ),
]


@app.command()
def show(
    ledger: Annotated[
        str | None,
        typer.Argument(
            metavar="[LEDGER]",
            help="Path or postgresql:// URL of a ledger; if not given, the one of the data in this "
            "folder, else the one in your own folder.",
        ),
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="One account, with its history.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the accounts, or one account and every entry in its history."""
    if ledger is None:
        ledger = str(_kept_unasked())
        say(f"The ledger in {ledger}:", "dim")
    with open_ledger(ledger) as book:
        entries = () if dataset is None else book.entries(dataset)
        name = None if not entries else entries[0].dataset
        accounts = tuple(a for a in book.accounts() if name in (None, a.dataset))
        if as_json:
            show_json(
                {"ledger": book.id, "accounts": [_account_json(a) for a in accounts]}
                | ({} if dataset is None else {"entries": [_entry_json(e) for e in entries]})
            )
            return
        console = plain_console()
        console.print(_account_table(book, accounts))
        if dataset is not None:
            console.print(_entry_table(entries))


def _kept_unasked() -> Path:
    """Return the ledger that releases are counted in where none is named, as far as it is there."""
    places = (Path.cwd() / FILE_NAME, users_ledger())
    for path in places:
        if path.exists():
            return path
    raise ArgumentError(f"there is no ledger in {places[0]} or {places[1]}; name one")


@app.command("set")
def set_budget(
    ledger: Where,
    dataset: Annotated[str, typer.Option(help="The account: one per sensitive dataset.")],
    epsilon: Annotated[
        float | None, typer.Option(help="Budget for pure differential privacy (Laplace only).")
    ] = None,
    rho: Annotated[
        float | None, typer.Option(help="Budget for zCDP (Gaussian and Laplace).")
    ] = None,
    neighbours: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(RELATIONS)}; if not given, the first spend decides."),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="What is protected: record, or the COLUMN that says whose a record is; if not "
            "given, the first spend decides."
        ),
    ] = None,
) -> None:
    """Set or change a budget; the ledger is created if it is not there."""
    asked_budget(epsilon, rho)  # a mistake here must not leave an empty ledger behind
    within = neighbours is not None and neighbours.startswith("replace-one-within-")
    if neighbours not in (None, *RELATIONS[:2]) and not within:
        raise ArgumentError(
            f"--neighbours: must be one of {', '.join(RELATIONS)}, not {neighbours!r}"
        )
    with open_ledger(ledger, create=True) as book:
        account = book.set_budget(
            dataset, epsilon=epsilon, rho=rho, neighbours=neighbours, unit=unit
        )
        console = plain_console()
        console.print(_account_table(book, (account,)))
        if account.entries == 1:
            others = [repr(a.dataset) for a in book.accounts() if a.dataset != account.dataset]
            rest = f"the others are {', '.join(others)}" if others else "it is the only one"
            console.print(f"Opened a new account {account.dataset!r}; {rest}.", soft_wrap=True)


@app.command()
def audit(
    ledger: Where,
    releases: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RELEASE.json]...", help="Releases that must have been paid for."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check sums, hash chains and the receipts of releases; exit code 1 if anything is wrong."""
    paid, findings = _receipts(releases or [])
    with open_ledger(ledger) as book:
        findings += book.audit([(receipt, cost) for _, receipt, cost in paid])
        accounts = book.accounts()
        if as_json:
            show_json(_audit_json(book, findings, paid))
        else:
            plain_console().print(_account_table(book, accounts))
    if not as_json:
        _print_findings(findings, paid)
    if findings:
        raise typer.Exit(1)


Paid = list[tuple[Path, Receipt, Cost]]
"""Release files with the receipt and the cost that a ledger must have booked."""


def _receipts(paths: list[Path]) -> tuple[Paid, list[Finding]]:
    paid: Paid = []
    findings: list[Finding] = []
    seen: set[Release] = set()
    for path in paths:
        try:
            release = Release.load(path)
        except ReleaseError as error:
            findings.append(Finding(None, f"{path}: {error}"))
            continue
        if release in seen:  # a copy of a file is not a second release
            continue
        seen.add(release)
        if release.receipt is None:
            findings.append(Finding(None, f"{path}: no ledger paid for this release"))
        else:
            paid.append((path, release.receipt, cost_of(release.guarantee, release.unit)))
    return paid, findings


def _files(finding: Finding, paid: Paid) -> list[str]:
    return [str(path) for path, receipt, _ in paid if receipt.entry == finding.entry]


def _print_findings(findings: list[Finding], paid: Paid) -> None:
    console = plain_console()
    for finding in findings:
        files = _files(finding, paid)
        console.print(f"✗ {finding}" + (f" [{', '.join(files)}]" if files else ""))
    if not findings:
        console.print(f"Sound: budgets kept, histories intact, {len(paid)} release(s) paid for.")


def _audit_json(book: Ledger, findings: list[Finding], paid: Paid) -> dict[str, Any]:
    return {
        "ledger": book.id,
        "sound": not findings,
        "findings": [vars(finding) | {"files": _files(finding, paid)} for finding in findings],
    }


def _account_json(account: Account) -> dict[str, Any]:
    amounts = ("budget", "spent", "remaining")
    names = ("dataset", "accounting", *amounts, "neighbours", "unit", "entries")
    shown = {name: getattr(account, name) for name in names}
    return shown if account.capped else {**shown, "budget": None, "remaining": None}


def _entry_json(entry: Entry) -> dict[str, Any]:
    names = ("entry", "number", "kind", "accounting", "asked", "amount", "former", "neighbours")
    more = ("unit", "description", "created", "previous", "digest")
    return {name: getattr(entry, name) for name in names + more}


def _account_table(book: Ledger, accounts: tuple[Account, ...]) -> Table:
    table = Table(title=f"Ledger {book.id}", title_justify="left")
    for name in ("dataset", "in", "budget", "spent", "remaining", "neighbours", "unit"):
        right = name in ("budget", "spent", "remaining")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for a in accounts:
        remaining = decimal(a.remaining_units) if a.capped else ""
        amounts = budget_words(a.budget_units), decimal(a.spent_units), remaining
        open_still = "(first spend decides)"
        unit = a.unit or ("(not recorded)" if a.spent_units else open_still)
        table.add_row(a.dataset, a.parameter, *amounts, a.neighbours or open_still, unit)
    return table


def _entry_table(entries: tuple[Entry, ...]) -> Table:
    """Return the history; the entries' own names, which receipts hold, are in the JSON only."""
    table = Table("no.")
    table.add_column("when (UTC)", no_wrap=True)
    table.add_column("what")
    table.add_column("amount", justify="right", overflow="fold")
    table.add_column("description", overflow="fold")
    numbers = {e.entry: e.number for e in entries}
    for e in entries:
        old = "" if e.former_units is None else f"{budget_words(e.former_units)} → "
        # A note is written as a change of the budget to what it was.
        note = e.kind == "budget" and e.description.startswith(NO_RELEASE)
        kind, amount = ("note", "") if note else (e.kind, old + budget_words(e.units))
        when = e.created[:19].replace("T", " ")
        lost = e.description.removeprefix(NO_RELEASE).partition(":")[0] if note else ""
        # The table does not show the name of the spend that a note is about.
        words = (
            e.description.replace(lost, f"no. {numbers[lost]}")
            if lost in numbers
            else e.description
        )
        table.add_row(str(e.number), when, kind, amount, words)
    return table

"""A hash chain of entries: a history edited or cut afterwards does not pass an audit.

Each entry's SHA-256 covers all its columns and the digest before it; the first one builds on the
ledger's own name, the account's row holds the last. The chain has no key: it catches a row edited,
deleted or reordered, not an intruder who recomputes every digest or removes an account whole. The
receipts in the release files, which live elsewhere, catch those.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from noisewise.artifact import Receipt
from noisewise.privacy.ledger.accounts import PARAMETER, Account, Cost, Entry, Finding, decimal


def digest_of(entry: Entry) -> str:
    """Return SHA-256 over every column but the digest, in JSON (quoted, so that none merge)."""
    content = json.dumps(entry.columns(), separators=(",", ":"), default=repr)
    return hashlib.sha256(content.encode("ascii")).hexdigest()


def sealed(**columns: Any) -> Entry:
    """Return an entry with its digest."""
    open_entry = Entry(**columns, digest="")
    return replace(open_entry, digest=digest_of(open_entry))


def verify(ledger: str, account: Account, entries: Sequence[Entry]) -> Iterator[Finding]:
    """Replay a history, compare where it ends with the account's row, and yield what is wrong."""
    if not entries:
        yield Finding(account.dataset, "the account has no history: its entries were deleted")
        return
    replayed = replace(account, neighbours=None, unit=None, spent_units=0, entries=0, head=ledger)
    for entry in entries:
        broken = _broken_link(replayed, entry)
        if broken:
            # What follows an edited entry proves nothing, so the replay stops here.
            yield Finding(account.dataset, broken)
            return
        replayed = _applied(replayed, entry)
        if replayed.spent_units > replayed.budget_units:
            yield Finding(
                account.dataset,
                f"overdrawn at entry {entry.number}: spent {decimal(replayed.spent_units)} of "
                f"{decimal(replayed.budget_units)}",
            )
    for name, expected in vars(replayed).items():
        stored = getattr(account, name)
        if stored != expected:
            yield Finding(
                account.dataset,
                f"the account says {name} {stored!r}, its history says {expected!r}: "
                "the account was edited, or its last entries were deleted",
            )


def _broken_link(account: Account, entry: Entry) -> str | None:
    if entry.number != account.entries + 1:
        return f"entry {account.entries + 1} is missing: it was deleted"
    if entry.digest != digest_of(entry):
        return f"entry {entry.number} ({entry.entry}) was edited: its digest does not match"
    if entry.previous != account.head:
        return f"entry {entry.number} ({entry.entry}) does not follow the entry before it"
    if entry.number == 1 and entry.kind != "budget":
        return "the history does not begin with a budget"
    if entry.kind == "spend" and account.unit is not None and entry.unit != account.unit:
        return (
            f"entry {entry.number} ({entry.entry}) protects the unit {entry.unit!r}, the account "
            f"{account.unit!r} (a spend without a unit was made by version 0.1)"
        )
    return None


def _applied(account: Account, entry: Entry) -> Account:
    if entry.kind == "budget":
        changed = replace(account, accounting=entry.accounting, budget_units=entry.units)
    else:
        changed = replace(account, spent_units=account.spent_units + entry.units)
    return replace(
        changed,
        neighbours=entry.neighbours,
        unit=entry.unit or account.unit,
        entries=entry.number,
        head=entry.digest,
    )


def match(
    ledger: str, entries: Iterable[Entry], receipts: Iterable[tuple[Receipt, Cost]]
) -> Iterator[Finding]:
    """Yield releases that were not paid for: once, here, and in full."""
    spends = {entry.entry: entry for entry in entries if entry.kind == "spend"}
    claimed: set[str] = set()
    for receipt, cost in receipts:
        if receipt.ledger != ledger:
            yield Finding(
                None,
                f"the receipt {receipt.entry} is of another ledger ({receipt.ledger}); "
                f"this one is {ledger}",
                receipt.entry,
            )
            continue
        if receipt.entry in claimed:
            yield Finding(receipt.dataset, "one spend is claimed by two releases", receipt.entry)
        claimed.add(receipt.entry)
        problem = _mismatch(spends.get(receipt.entry), receipt, cost)
        if problem:
            yield Finding(receipt.dataset, problem, receipt.entry)


def _mismatch(entry: Entry | None, receipt: Receipt, cost: Cost) -> str | None:
    if entry is None or entry.dataset != receipt.dataset:
        return (
            f"the spend {receipt.entry} of a release is not here: deleted, never made, or this "
            "is an older copy of the ledger, put back"
        )
    if (entry.accounting, entry.asked) != (cost.accounting, cost.asked):
        # Written without interpreting the row, which may have been edited.
        paid = f"{PARAMETER.get(entry.accounting, entry.accounting)} {entry.asked}"
        return f"the spend {entry.entry} paid for {paid}, the release costs {cost}"
    if entry.neighbours != cost.neighbours:
        return (
            f"the spend {entry.entry} is under {entry.neighbours!r} neighbours, "
            f"the release under {cost.neighbours!r}"
        )
    if entry.unit not in (None, cost.unit):
        return f"the spend {entry.entry} is per {entry.unit!r}, the release per {cost.unit!r}"
    return None

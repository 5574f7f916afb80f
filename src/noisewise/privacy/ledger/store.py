"""Stores of a ledger: what one must offer, and the SQL that SQLite and PostgreSQL have in common.

A store gives two things: a transaction, and a way to run a statement in it. How a transaction is
begun, made durable and kept apart from others is all that differs, and is in the store's own file.
Statements here use ``?`` for parameters and types both databases know.

Version 0.1 had no column for the privacy unit. Its ledgers are read as if every unit were NULL, and
get the column with the first thing that is written to them. The version stays 1.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, fields
from typing import Any, Protocol

from noisewise.artifact import SourceError
from noisewise.privacy.ledger.accounts import Account, Entry

LEDGER_VERSION = 1
"""The version of the tables, kept in them; another one is refused."""

SCHEMA = (
    "CREATE TABLE noisewise_ledger (id TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL)",
    """CREATE TABLE noisewise_account (
        dataset TEXT NOT NULL PRIMARY KEY,
        accounting TEXT NOT NULL CHECK (accounting IN ('pure', 'zcdp')),
        neighbours TEXT,
        budget_units BIGINT NOT NULL,
        spent_units BIGINT NOT NULL,
        entries BIGINT NOT NULL,
        head TEXT NOT NULL,
        unit TEXT,
        CHECK (0 <= spent_units AND spent_units <= budget_units))""",
    """CREATE TABLE noisewise_entry (
        entry TEXT NOT NULL UNIQUE,
        dataset TEXT NOT NULL,
        number BIGINT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('budget', 'spend')),
        accounting TEXT NOT NULL,
        asked TEXT NOT NULL,
        units BIGINT NOT NULL,
        former_units BIGINT,
        neighbours TEXT,
        description TEXT NOT NULL,
        created TEXT NOT NULL,
        previous TEXT NOT NULL,
        digest TEXT NOT NULL,
        unit TEXT,
        CHECK (kind = 'budget' OR unit IS NOT NULL),
        PRIMARY KEY (dataset, number))""",
)
"""Statements that create the tables. The account's own check is a second safeguard: no statement,
ours or anyone's, can leave an account overdrawn."""

ADD_UNITS = (
    "ALTER TABLE noisewise_account ADD COLUMN unit TEXT",
    "ALTER TABLE noisewise_entry ADD COLUMN unit TEXT",
)
"""Statements that add what a ledger of version 0.1 lacks."""

CREATE_HINT = "create one with `noisewise ledger set LEDGER --dataset NAME --epsilon E`"
"""The remedy that errors name where there is no ledger."""


class Execute(Protocol):
    """Run one statement and give back its rows, if it has any."""

    def __call__(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows; ``?`` in the statement stands for a value."""
        ...


class Rows:
    """The ledger's tables within one transaction. ``lock`` is what claims an account's row.

    ``units``: whether there is a column for the privacy unit.
    """

    def __init__(self, execute: Execute, lock: str = "", *, units: bool = True) -> None:
        self._execute = execute
        self._lock = lock
        self._units = units

    def account(self, dataset: str) -> Account | None:
        """Return one account, kept from other writers until this transaction ends."""
        rows = self._execute(f"{self._all(Account)} WHERE dataset = ?{self._lock}", (dataset,))
        return Account(*rows[0]) if rows else None

    def accounts(self) -> tuple[Account, ...]:
        """Return all accounts, by name; sorted here because databases sort text differently."""
        rows = self._execute(self._all(Account))
        return tuple(sorted((Account(*row) for row in rows), key=_dataset))

    def entries(self, dataset: str) -> tuple[Entry, ...]:
        """Return the history of one account, oldest first."""
        rows = self._execute(f"{self._all(Entry)} WHERE dataset = ? ORDER BY number", (dataset,))
        return tuple(Entry(*row) for row in rows)

    def entry(self, name: str) -> Entry | None:
        """Return the entry of that name, whose account it may be."""
        rows = self._execute(f"{self._all(Entry)} WHERE entry = ?", (name,))
        return Entry(*rows[0]) if rows else None

    def strays(self) -> tuple[str, ...]:
        """Return datasets that have a history and no account."""
        rows = self._execute(
            "SELECT DISTINCT dataset FROM noisewise_entry "
            "WHERE dataset NOT IN (SELECT dataset FROM noisewise_account)"
        )
        return tuple(sorted(row[0] for row in rows))

    def _all(self, kind: type[Account] | type[Entry]) -> str:
        names = [field.name for field in fields(kind) if self._units or field.name != "unit"]
        return f"SELECT {', '.join(names)} FROM {_TABLES[kind]}"

    def open(self, account: Account) -> None:
        """Add an account unless it is there. A racing twin waits here until the first is done."""
        self._execute(
            f"INSERT INTO noisewise_account ({_columns(Account)}) VALUES ({_marks(Account)}) "
            "ON CONFLICT (dataset) DO NOTHING",
            astuple(account),
        )

    def append(self, after: Account, entry: Entry) -> None:
        """Write an entry and the account as it is after it."""
        self._execute(
            f"INSERT INTO noisewise_entry ({_columns(Entry)}) VALUES ({_marks(Entry)})",
            astuple(entry),
        )
        changes = ", ".join(f"{field.name} = ?" for field in fields(Account))
        self._execute(
            f"UPDATE noisewise_account SET {changes} WHERE dataset = ?",
            (*astuple(after), after.dataset),
        )


class Store(Protocol):
    """Where a ledger is kept."""

    @property
    def id(self) -> str:
        """Return the ledger's own name, a UUID given when it was created."""
        ...

    @property
    def place(self) -> str:
        """Return where it is, in words fit for an error message: never a password."""
        ...

    def reading(self) -> AbstractContextManager[Rows]:
        """Return a consistent view that no writer disturbs."""
        ...

    def writing(self) -> AbstractContextManager[Rows]:
        """Return a transaction alone with the accounts it reads, durable once it ends well."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def create_tables(execute: Execute) -> None:
    """Create an empty ledger and name it."""
    for statement in SCHEMA:
        execute(statement)
    execute(
        "INSERT INTO noisewise_ledger (id, version) VALUES (?, ?)",
        (str(uuid.uuid4()), LEDGER_VERSION),
    )


def identity(execute: Execute, place: str) -> str:
    """Return the ledger's name, once it is sure that this program can read it."""
    rows = execute("SELECT id, version FROM noisewise_ledger")
    if len(rows) != 1:
        raise SourceError(f"{place} is damaged: its ledger table has {len(rows)} rows, not 1")
    name, version = rows[0]
    if version != LEDGER_VERSION:
        raise SourceError(
            f"{place} has ledger version {version}; this noisewise reads version {LEDGER_VERSION}"
        )
    return str(name)


def _dataset(account: Account) -> str:
    return account.dataset


def _columns(kind: type[Account] | type[Entry]) -> str:
    return ", ".join(field.name for field in fields(kind))


def _marks(kind: type[Account] | type[Entry]) -> str:
    return ", ".join("?" for _ in fields(kind))


_TABLES = {Account: "noisewise_account", Entry: "noisewise_entry"}

"""The budget ledger: what may be spent on each dataset, and what was.

``accounts`` is the arithmetic, and says which names are one; ``spending_rules`` the decisions,
``hash_chain`` the audit, ``store`` the SQL both databases share; ``sqlite`` and ``postgres`` add
what differs; ``ledger`` is the ledger itself, ``default_ledger`` the one that is kept unasked.
"""

from __future__ import annotations

import os
from pathlib import Path

from noisewise.artifact import ArgumentError, Receipt
from noisewise.privacy.ledger.accounts import Account, Cost, Entry, Finding, cost_of
from noisewise.privacy.ledger.default_ledger import (
    CountingLedger,
    DefaultLedger,
    source_ledger,
)
from noisewise.privacy.ledger.ledger import Ledger
from noisewise.privacy.ledger.store import Store

__all__ = [
    "Account",
    "Cost",
    "DefaultLedger",
    "Entry",
    "Finding",
    "Ledger",
    "Receipt",
    "cost_of",
    "open_ledger",
    "source_ledger",
]


def open_ledger(where: str | os.PathLike[str] | DefaultLedger, *, create: bool = False) -> Ledger:
    """Open the ledger at a path (SQLite) or a ``postgresql://`` URL (PostgreSQL).

    A ledger that is not there is an error unless ``create`` is true: a mistyped path must not
    become a fresh, unspent budget. A source's default ledger is created as it is needed.
    """
    if isinstance(where, DefaultLedger):
        return CountingLedger(_store(where.path, create=True), where.dataset)
    return Ledger(_store(where, create))


def _store(where: str | os.PathLike[str], create: bool) -> Store:
    place = os.fspath(where) if isinstance(where, str | os.PathLike) else where
    if not isinstance(place, str) or not place or "\0" in place:
        raise ArgumentError(f"ledger={where!r}: expected a path or a postgresql:// URL")
    if place.startswith(("postgresql://", "postgres://")):
        from noisewise.privacy.ledger.postgres import PostgresStore

        return PostgresStore(place, create=create)
    if "://" in place:
        scheme = place.split("://", 1)[0]
        raise ArgumentError(
            f"ledger: a {scheme}:// URL is not supported; expected a path (SQLite) or a "
            "postgresql:// URL"
        )
    from noisewise.privacy.ledger.sqlite import SqliteStore

    return SqliteStore(Path(place), create=create)
